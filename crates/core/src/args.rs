//! Arguments of runs: strings by name in one canonical order. Conditions identify runs by job and args, so equal args
//! must have equal text. Binding reports all errors of the given args at once.

use std::collections::BTreeMap;
use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::{Param, ParamType, TemplateScope};
use crate::name_map::NameMap;

/// Longest value of an argument in bytes.
pub const ARG_MAX: usize = 32 * 1024;

/// Longest name of a param in characters.
const NAME_MAX: usize = 64;

/// Arguments in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Args(BTreeMap<String, String>);

/// One error in the args of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgError {
    /// A param without a default has no value.
    #[error("the param `{name}` needs a value{}", choices_hint(.choices))]
    Missing {
        name: String,
        /// Allowed values; empty if any value is allowed.
        choices: Vec<String>,
    },
    /// There is no such param.
    #[error("there is no param `{name}`{}", unknown_hint(.meant.as_deref(), .params))]
    Unknown {
        /// The name as given.
        name: String,
        /// A similar name or value that exists; `None` if there is none.
        meant: Option<String>,
        /// The params of the job.
        params: Vec<String>,
    },
    /// The value is not one of the choices.
    #[error("`{}` is not a choice for `{name}`{}", shortened(.value), meant_hint(.meant.as_deref(), .choices))]
    NotAChoice {
        name: String,
        /// The value as given.
        value: String,
        /// A similar name or value that exists; `None` if there is none.
        meant: Option<String>,
        /// Allowed values; never empty.
        choices: Vec<String>,
    },
    /// The value is not one of the param's type.
    #[error("`{}` is not {} for `{name}` ({})", shortened(.value), .kind.noun().0, .kind.noun().1)]
    WrongType {
        name: String,
        /// The value as given.
        value: String,
        /// The type of the param.
        kind: ParamType,
    },
    /// The value does not match the param's pattern.
    #[error("`{}` does not match the pattern `{pattern}` of `{name}`", shortened(.value))]
    NoMatch {
        name: String,
        /// The value as given.
        value: String,
        /// The pattern of the param.
        pattern: String,
    },
    /// The value is too long.
    #[error("the value of `{name}` has {bytes} bytes; {ARG_MAX} are allowed (pass large values in a file)")]
    TooLong {
        name: String,
        /// The length of the value.
        bytes: usize,
    },
}

/// All errors in the args of a run; at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct ArgErrors(pub Vec<ArgError>);

impl Args {
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of an argument; `None` if there is no such argument.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The canonical form: JSON without whitespace, ordered by name. Equal args have equal text.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).expect("a map of strings is always JSON")
    }

    /// Reads the canonical form; `None` if the text is not JSON of this form.
    pub fn from_canonical(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A digest of the args. Equal args have equal digests.
    pub fn digest(&self) -> u64 {
        let hash = Sha256::digest(self.canonical());
        hash.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// Binds args to a job's params. Given args take precedence over automatic ones, which the schedule provides, and
    /// automatic ones over defaults. Automatic args that are not params of the job are left out; a given arg that is
    /// not a param is an error.
    pub fn bind<'a>(
        params: &NameMap<Param>,
        given: impl IntoIterator<Item = (&'a String, &'a String)>,
        automatic: &BTreeMap<String, String>,
    ) -> Result<Self, ArgErrors> {
        let given: BTreeMap<&str, &String> = given.into_iter().map(|(name, value)| (name.as_str(), value)).collect();
        let mut errors: Vec<ArgError> =
            given.keys().filter(|name| !params.contains_key(name)).map(|name| unknown(name, params)).collect();
        let mut args = BTreeMap::new();
        for (name, param) in params {
            let value = given.get(name.as_str()).copied().or_else(|| automatic.get(name)).or(param.default.as_ref());
            match value.map(|value| check_arg(name, param, value)) {
                Some(Ok(value)) => drop(args.insert(name.clone(), value.to_owned())),
                Some(Err(error)) => errors.push(error),
                None => errors.push(ArgError::Missing { name: name.clone(), choices: param.choices.clone() }),
            }
        }
        if errors.is_empty() { Ok(Self(args)) } else { Err(ArgErrors(errors)) }
    }
}

impl FromIterator<(String, String)> for Args {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// Prints `date=2026-03-29 region=us`; ambiguous values are quoted.
impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            let plain = |sign: char| sign.is_alphanumeric() || "-_.:/,+@%".contains(sign);
            if !value.is_empty() && value.chars().all(plain) {
                write!(f, "{blank}{name}={value}")?;
            } else {
                write!(f, "{blank}{name}={value:?}")?;
            }
        }
        Ok(())
    }
}

/// Whether a text is a valid name in templates and environments: letters, digits and `_`, not beginning with a digit.
pub fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Checks the name of a param: it must be valid in templates and environment variables, and must not be a name that
/// every run has.
pub fn check_param_name(name: &str) -> Result<(), TextError> {
    let whole = 0..name.len();
    if !is_identifier(name) {
        return Err(TextError::new(whole, format!("`{}` cannot be the name of a param", shortened(name)))
            .hint("names are letters, digits and `_`, and do not begin with a digit"));
    }
    if name.len() > NAME_MAX {
        return Err(TextError::new(whole, format!("the name of a param can have at most {NAME_MAX} characters")));
    }
    if TemplateScope::Run.has(name) {
        return Err(TextError::new(whole, format!("`{name}` cannot be the name of a param"))
            .hint("this name is reserved: every run has it"));
    }
    Ok(())
}

/// Checks a value for a param: its length, and whether type, pattern and choices allow it.
pub fn check_arg<'a>(name: &str, param: &Param, value: &'a str) -> Result<&'a str, ArgError> {
    if value.len() > ARG_MAX {
        return Err(ArgError::TooLong { name: name.to_owned(), bytes: value.len() });
    }
    let (own_name, own_value) = (|| name.to_owned(), || value.to_owned());
    if !param.kind.accepts(value) {
        return Err(ArgError::WrongType { name: own_name(), value: own_value(), kind: param.kind });
    }
    if let Some(pattern) = param.pattern.as_ref().filter(|pattern| !pattern.matches(value)) {
        let pattern = pattern.as_str().to_owned();
        return Err(ArgError::NoMatch { name: own_name(), value: own_value(), pattern });
    }
    if !param.choices.is_empty() && !param.choices.iter().any(|choice| choice == value) {
        return Err(ArgError::NotAChoice {
            name: name.to_owned(),
            value: value.to_owned(),
            meant: did_you_mean(value, param.choices.iter().map(String::as_str)).map(str::to_owned),
            choices: param.choices.clone(),
        });
    }
    Ok(value)
}

fn unknown(name: &str, params: &NameMap<Param>) -> ArgError {
    ArgError::Unknown {
        name: name.to_owned(),
        meant: did_you_mean(name, params.keys().map(String::as_str)).map(str::to_owned),
        params: params.keys().cloned().collect(),
    }
}

fn unknown_hint(meant: Option<&str>, params: &[String]) -> String {
    match (meant, params) {
        (Some(meant), _) => format!(" (did you mean `{meant}`?)"),
        (None, []) => " (the job has no params)".to_owned(),
        (None, params) => format!(" (params are {})", params.join(", ")),
    }
}

fn meant_hint(meant: Option<&str>, choices: &[String]) -> String {
    match meant {
        Some(meant) => format!(" (did you mean `{meant}`?)"),
        None => choices_hint(choices),
    }
}

fn choices_hint(choices: &[String]) -> String {
    if choices.is_empty() { String::new() } else { format!(" (choices are {})", choices.join(", ")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(text: &str) -> BTreeMap<String, String> {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').expect("name=value"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// `region` with default and choices, `date` required, `kind` with choices only.
    fn params() -> NameMap<Param> {
        let choices = |text: &str| text.split(' ').map(str::to_owned).collect();
        NameMap::from([
            ("region".to_owned(), Param { default: Some("us".into()), choices: choices("us eu"), ..Param::default() }),
            ("date".to_owned(), Param::default()),
            ("kind".to_owned(), Param { choices: choices("full delta"), ..Param::default() }),
        ])
    }

    #[test]
    fn args_bind_to_params_or_report_all_errors() {
        for (given, automatic, expected) in [
            ("date=1 kind=full", "", Ok("date=1 kind=full region=us")),
            ("kind=full", "date=2 tz=UTC", Ok("date=2 kind=full region=us")),
            ("date=1 kind=delta region=eu", "date=2", Ok("date=1 kind=delta region=eu")),
            ("kind=full", "", Err("the param `date` needs a value")),
            ("date=1", "", Err("the param `kind` needs a value (choices are full, delta)")),
            ("date=1 kind=ful", "", Err("`ful` is not a choice for `kind` (did you mean `full`?)")),
            ("date=1 kind=zebra", "", Err("`zebra` is not a choice for `kind` (choices are full, delta)")),
            ("date=1 kind=full", "region=asia", Err("`asia` is not a choice for `region` (choices are us, eu)")),
            ("date=1 kind=full regoin=eu", "", Err("there is no param `regoin` (did you mean `region`?)")),
            (
                "zebra=1 kind=x",
                "",
                Err("there is no param `zebra` (params are date, kind, region); the param `date` needs a value; \
                     `x` is not a choice for `kind` (choices are full, delta)"),
            ),
        ] {
            let bound = Args::bind(&params(), &map(given), &map(automatic));
            let found = bound.map(|args| args.to_string()).map_err(|errors| errors.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{given} / {automatic}");
        }
        let long = BTreeMap::from([("a".to_owned(), "x".repeat(ARG_MAX + 1))]);
        let params = NameMap::from([("a".to_owned(), Param::default())]);
        assert!(Args::bind(&params, &long, &BTreeMap::new()).expect_err("long").to_string().contains("32769 bytes"));
        let none = Args::bind(&NameMap::new(), &map("a=1"), &BTreeMap::new()).expect_err("no params");
        assert_eq!(none.to_string(), "there is no param `a` (the job has no params)");
    }

    #[test]
    fn args_are_checked_against_type_and_pattern() {
        let pattern = Some(crate::job::ArgPattern::parse("[A-Z]{3}").expect("a pattern"));
        let of = |kind| Param { kind, ..Param::default() };
        let params = NameMap::from([
            ("count".to_owned(), of(ParamType::Int)),
            ("day".to_owned(), of(ParamType::Date)),
            ("full".to_owned(), Param { default: Some("false".to_owned()), ..of(ParamType::Bool) }),
            ("symbol".to_owned(), Param { pattern, ..Param::default() }),
        ]);
        for (given, automatic, expected) in [
            ("count=3 symbol=ABC", "day=2026-03-29", Ok("count=3 day=2026-03-29 full=false symbol=ABC")),
            (
                "count=03 day=today full=yes symbol=AB",
                "",
                Err("`03` is not a whole number for `count` (write digits without leading zeros, such as 42 or -7); \
                     `today` is not a date for `day` (write year-month-day, such as 2026-03-29); \
                     `yes` is not a boolean for `full` (write true or false); \
                     `AB` does not match the pattern `[A-Z]{3}` of `symbol`"),
            ),
            (
                "count=3 symbol=ABC",
                "day=2026-03-29T00:00:00Z",
                Err("`2026-03-29T00:00:00Z` is not a date for `day` (write year-month-day, such as 2026-03-29)"),
            ),
        ] {
            let bound = Args::bind(&params, &map(given), &map(automatic));
            let found = bound.map(|args| args.to_string()).map_err(|errors| errors.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{given} / {automatic}");
        }
    }

    #[test]
    fn args_have_one_canonical_form() {
        let args: Args =
            [("b", "2"), ("a", "x \"y\"\n")].map(|(a, b)| (a.to_owned(), b.to_owned())).into_iter().collect();
        assert_eq!(args.canonical(), r#"{"a":"x \"y\"\n","b":"2"}"#);
        assert_eq!(args.to_string(), r#"a="x \"y\"\n" b=2"#);
        assert_eq!(Args::new().canonical(), "{}");
    }

    #[test]
    fn param_names_are_checked() {
        assert!(check_param_name("region_2").is_ok());
        for bad in ["", "2x", "a-b", "a b", "ü", "run_id", &"x".repeat(65)] {
            assert!(check_param_name(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn canonical_form_reads_back(
            pairs in proptest::collection::btree_map("\\PC{0,5}", "\\PC{0,5}|[\\x00-\\x20\"\\\\]{0,5}", 0..5),
        ) {
            let args: Args = pairs.into_iter().collect();
            prop_assert_eq!(Args::from_canonical(&args.canonical()), Some(args));
        }
    }
}
