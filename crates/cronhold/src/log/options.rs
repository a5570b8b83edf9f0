//! What is logged, and in which form.

use std::str::FromStr;

use cronhold_cli::{CliError, LogArgs, LogFormat};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::Targets;

use super::format::LineFormat;

/// The variable that holds the filter where the command line names none.
pub const VARIABLE: &str = "CRONHOLD_LOG";

/// What is logged, and in which form.
#[derive(Debug, Clone)]
pub struct LogOptions {
    format: LogFormat,
    colours: bool,
    filter: Targets,
}

impl LogOptions {
    /// Logs everything of a level and above.
    pub fn new(format: LogFormat, level: Level) -> Self {
        Self { format, colours: false, filter: Targets::new().with_default(level) }
    }

    /// Chooses the filter: `--log` first, then the level of a short form, then the variable `CRONHOLD_LOG`,
    /// then `info`.
    pub fn choose(args: &LogArgs, short_form: Option<Level>, variable: Option<&str>) -> Result<Self, CliError> {
        let (origin, filter) = match (&args.log, short_form, variable) {
            (Some(filter), _, _) => ("--log", filter.as_str()),
            (None, Some(level), _) => return Ok(Self::new(args.log_format, level)),
            (None, None, variable) => (VARIABLE, variable.unwrap_or_default()),
        };
        Self::parse(args.log_format, filter).map_err(|error| {
            CliError::usage(
                format!("{origin}: {error}"),
                "write a level and exceptions, such as `info,cronhold_server=debug`",
            )
        })
    }

    /// Whether text has colours, which only a terminal shows.
    pub fn with_colours(self, colours: bool) -> Self {
        Self { colours, ..self }
    }

    /// The arguments that make another process log the same.
    pub fn to_args(&self) -> Vec<String> {
        ["--log-format", self.format.as_str(), "--log", &self.filter.to_string()].map(str::to_owned).to_vec()
    }

    /// Logs what a filter such as `warn,cronhold_store_redis=debug` selects. Targets that it does not name are logged
    /// from `info` up. The error names the part that is invalid.
    pub fn parse(format: LogFormat, filter: &str) -> Result<Self, String> {
        // The parser of the library treats text that is not a level as a target, and logs everything of it.
        let is_invalid = |part: &&str| {
            let level = part.split_once('=').map_or(*part, |(_, level)| level);
            !part.trim().is_empty() && LevelFilter::from_str(level.trim()).is_err()
        };
        if let Some(part) = filter.split(',').find(is_invalid) {
            let levels = "off, error, warn, info, debug or trace";
            return Err(format!("`{}` is neither LEVEL nor TARGET=LEVEL, where LEVEL is {levels}", part.trim()));
        }
        let parts: Vec<&str> = filter.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            // The library takes an empty filter for `error`.
            return Ok(Self::new(format, Level::INFO));
        }
        let filter: Targets = parts.join(",").parse().map_err(|error| format!("invalid filter: {error}"))?;
        let filter = if filter.default_level().is_some() { filter } else { filter.with_default(Level::INFO) };
        Ok(Self { format, colours: false, filter })
    }

    pub(super) fn line_format(&self) -> LineFormat {
        LineFormat::new(self.format, self.colours)
    }

    /// Whether events of a call site are logged.
    pub(super) fn enables(&self, metadata: &Metadata<'_>) -> bool {
        // Nothing here uses spans.
        !metadata.is_span() && self.filter.would_enable(metadata.target(), metadata.level())
    }

    /// The least severe level that any target is logged with.
    pub(super) fn max_level(&self) -> LevelFilter {
        let targets = self.filter.iter().map(|(_, level)| level);
        targets.chain(self.filter.default_level()).max().unwrap_or(LevelFilter::OFF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_selects_by_target_and_level() {
        for (filter, redis, other) in [
            ("", Some(Level::INFO), Some(Level::INFO)),
            ("debug", Some(Level::DEBUG), Some(Level::DEBUG)),
            ("off", None, None),
            ("cronhold_store_redis=debug", Some(Level::DEBUG), Some(Level::INFO)),
            ("warn, cronhold_store_redis=trace,", Some(Level::TRACE), Some(Level::WARN)),
            ("cronhold=error", Some(Level::ERROR), Some(Level::ERROR)),
            ("cronhold_store_redis=off", None, Some(Level::INFO)),
        ] {
            let options = LogOptions::parse(LogFormat::Json, filter).expect(filter);
            let most = |target: &str| {
                let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
                levels.into_iter().find(|level| options.filter.would_enable(target, level))
            };
            assert_eq!(most("cronhold_store_redis::link"), redis, "{filter}");
            assert_eq!(most("cronhold_engine"), other, "{filter}");
            let again = LogOptions::parse(LogFormat::Json, &options.to_args()[3]).expect(filter);
            assert_eq!(again.filter, options.filter, "{filter}");
            assert!(options.max_level() >= redis.map_or(LevelFilter::OFF, LevelFilter::from_level), "{filter}");
        }
    }

    #[test]
    fn option_wins_over_short_form_and_variable() {
        for (option, short_form, variable, expected) in [
            (None, None, None, "info"),
            (None, None, Some("debug"), "debug"),
            (None, Some(Level::WARN), Some("debug"), "warn"),
            (Some("trace"), Some(Level::WARN), Some("debug"), "trace"),
        ] {
            let args = LogArgs { log: option.map(str::to_owned), log_format: LogFormat::Json };
            let options = LogOptions::choose(&args, short_form, variable).expect("valid");
            assert_eq!(options.to_args(), ["--log-format", "json", "--log", expected]);
        }
        let refused = LogOptions::choose(&LogArgs::default(), None, Some("dbug"));
        assert!(matches!(refused, Err(CliError::Usage { message, .. }) if message.starts_with("CRONHOLD_LOG: ")));
    }

    #[test]
    fn invalid_filter_is_refused() {
        for (filter, part) in [("dbug", "`dbug`"), ("info,redis", "`redis`"), ("redis=loud", "`redis=loud`")] {
            let error = LogOptions::parse(LogFormat::Json, filter).expect_err(filter);
            assert!(error.starts_with(part), "{error}");
        }
    }
}
