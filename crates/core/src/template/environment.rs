//! The template engine: its functions, filters, tests and limits. All templates share one engine, which is created on
//! first use and does not depend on a run. Only filters whose result is not much larger than their input are included.

use std::sync::{Arc, OnceLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, filters, tests};

use super::bindings::{FunctionContext, WORLD};
use super::{calendars, dates, texts};

/// The most instructions that one template may execute.
pub(super) const FUEL: u64 = 5_000;

/// The deepest nesting of calls inside one template.
const RECURSION_MAX: usize = 20;

/// Functions that a template can call.
pub(super) const FUNCTIONS: [&str; 11] = [
    "calendar",
    "date",
    "format_date",
    "from_local",
    "get_calendar",
    "range",
    "shift_days",
    "to_date",
    "to_local",
    "to_utc",
    "weekday",
];

/// Filters that a template can use.
pub(super) const FILTERS: [&str; 25] = [
    "abs",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "first",
    "float",
    "int",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "max",
    "min",
    "quote",
    "replace",
    "reverse",
    "round",
    "split",
    "string",
    "tojson",
    "trim",
    "upper",
];

/// Tests that a template can use after `is`.
pub(super) const TESTS: [&str; 12] = [
    "defined",
    "divisibleby",
    "endingwith",
    "even",
    "in",
    "integer",
    "none",
    "number",
    "odd",
    "startingwith",
    "string",
    "undefined",
];

/// The engine that all templates share.
pub(super) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(build)
}

/// An error of one of our functions; its text is shown to users unchanged.
pub(super) fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Zones and calendars, from the bindings of the template.
pub(super) fn world(state: &State<'_, '_>) -> Result<Arc<FunctionContext>, Error> {
    let found = state.lookup(WORLD).and_then(|value| value.downcast_object::<FunctionContext>());
    found.ok_or_else(|| refused("zones and calendars are not available here"))
}

fn build() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_debug(false);
    // A text keeps its trailing newline, whether it holds expressions or not.
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default());
    environment.set_unknown_method_callback(texts::method);
    add_filters(&mut environment);
    add_tests(&mut environment);
    add_functions(&mut environment);
    environment
}

fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("abs", filters::abs);
    environment.add_filter("bool", filters::bool);
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("count", filters::length);
    environment.add_filter("d", filters::default);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("float", filters::float);
    environment.add_filter("int", filters::int);
    environment.add_filter("join", texts::join);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("list", filters::list);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("max", filters::max);
    environment.add_filter("min", filters::min);
    environment.add_filter("quote", texts::quote);
    environment.add_filter("replace", texts::replace);
    environment.add_filter("reverse", filters::reverse);
    environment.add_filter("round", filters::round);
    environment.add_filter("split", filters::split);
    environment.add_filter("string", filters::string);
    environment.add_filter("tojson", texts::to_json);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
}

fn add_tests(environment: &mut Environment<'static>) {
    environment.add_test("defined", tests::is_defined);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("even", tests::is_even);
    environment.add_test("in", tests::is_in);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("none", tests::is_none);
    environment.add_test("number", tests::is_number);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("string", tests::is_string);
    environment.add_test("undefined", tests::is_undefined);
}

fn add_functions(environment: &mut Environment<'static>) {
    // A param named `date` or `calendar` is common and hides the function, so each has a second name.
    environment.add_function("calendar", calendars::calendar);
    environment.add_function("get_calendar", calendars::calendar);
    environment.add_function("date", dates::to_date);
    environment.add_function("to_date", dates::to_date);
    environment.add_function("format_date", dates::format_date);
    environment.add_function("from_local", dates::from_local);
    environment.add_function("range", texts::range);
    environment.add_function("shift_days", dates::shift_days);
    environment.add_function("to_local", dates::to_local);
    environment.add_function("to_utc", dates::to_utc);
    environment.add_function("weekday", dates::weekday);
}

#[cfg(test)]
mod tests_of_lists {
    use super::*;

    #[test]
    fn lists_match_the_environment() {
        let expressions = FILTERS
            .iter()
            .map(|name| format!("1 | {name}"))
            .chain(TESTS.iter().map(|name| format!("1 is {name}")))
            .chain(FUNCTIONS.iter().map(|name| format!("{name}()")));
        for text in expressions {
            let compiled = environment().compile_expression(&text).expect(&text);
            if let Err(error) = compiled.eval(()) {
                let unknown = [ErrorKind::UnknownFilter, ErrorKind::UnknownTest, ErrorKind::UnknownFunction];
                assert!(!unknown.contains(&error.kind()), "{text}: {error}");
            }
        }
    }
}
