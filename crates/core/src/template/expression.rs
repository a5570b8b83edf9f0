//! A single expression with a boolean result, such as `answer.state == "COMPLETED"`. It has the syntax, rules and
//! limits of the part between `{{` and `}}` in a template.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::{Serialize, Serializer};

use super::environment::environment;
use super::errors::{bind_error, check_length, check_values, syntax_error};
use super::names::UsedNames;
use super::{Bindings, shape};

/// The hint for syntax errors.
const HINT: &str = "write for example answer.state == \"COMPLETED\"";

/// A boolean expression over bound values. Expressions with equal texts are equal.
#[derive(Clone)]
pub struct Expression {
    text: Box<str>,
    names: UsedNames,
}

impl Expression {
    /// Parses an expression. Everything that does not depend on bound values is checked here.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_length("an expression", text)?;
        if let Some(at) = ["{{", "{%", "{#"].iter().filter_map(|opening| text.find(opening)).min() {
            let error = TextError::new(at..at + 2, format!("`{}` is not needed in an expression", &text[at..at + 2]));
            return Err(error.hint(HINT));
        }
        let compiled = environment().compile_expression(text);
        let compiled = compiled.map_err(|error| syntax_error("expression", text, &error, HINT))?;
        let shape = shape::check_expression(text)?;
        Ok(Self { text: text.into(), names: UsedNames::new(compiled.undeclared_variables(false), &shape) })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names that it uses, other than functions.
    pub fn names(&self) -> BTreeSet<&str> {
        self.names.all()
    }

    /// Names that must be bound: those that it uses without a default or an `is defined` test.
    pub fn required_names(&self) -> BTreeSet<&str> {
        self.names.required()
    }

    /// The range of the first use of a name; `None` if the text does not use it.
    pub fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.names.place_of(name)
    }

    /// Whether the expression is true for these values. As in templates, an undefined name is an error, not `false`.
    pub fn eval(&self, bindings: &Bindings) -> Result<bool, TextError> {
        check_values(&self.text, bindings)?;
        let compiled = environment().compile_expression(&self.text);
        let value = compiled.and_then(|compiled| compiled.eval(bindings.value()));
        match value {
            Ok(value) if value.is_undefined() => {
                let whole = 0..self.text.len();
                Err(TextError::new(whole, format!("`{}` is not defined", shortened(&self.text)))
                    .hint("add `| default(false)` if it may be absent"))
            }
            Ok(value) => Ok(value.is_true()),
            Err(error) => Err(bind_error(&self.text, &error, bindings)),
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use cronhold_schedule::ZoneRegistry;
    use cronhold_schedule::calendar::CalendarSet;
    use proptest::prelude::*;

    use super::super::BoundValue;
    use super::*;

    fn bindings() -> Bindings {
        let answer = BTreeMap::from([
            ("state".to_owned(), BoundValue::from("DONE")),
            ("code".to_owned(), BoundValue::from(0i64)),
            ("late".to_owned(), BoundValue::Bool(false)),
            ("tags".to_owned(), BoundValue::List(vec!["a".into(), "b".into()])),
        ]);
        let world = Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(CalendarSet::new()));
        world.with("answer", BoundValue::Map(answer)).with("region", "us")
    }

    #[test]
    fn expressions_evaluate_to_booleans() {
        for (text, expected) in [
            ("answer.state == 'DONE'", true),
            ("answer.state in ['FAILED', \"EXPIRED\"]", false),
            ("answer.code == 0 and not answer.late", true),
            ("answer.late", false),
            ("answer.error | default(false)", false),
            ("answer.error is defined or answer.tags | length > 1", true),
            ("answer.state.startswith('DO') and '}}' != region", true),
            (" region == 'us'\n", true),
        ] {
            let expression = Expression::parse(text).expect(text);
            assert_eq!(expression.eval(&bindings()), Ok(expected), "{text}");
            assert_eq!(expression.text(), text);
        }
    }

    #[test]
    fn expression_errors_have_a_range() {
        for (text, at, message) in [
            ("", "", "expression: "),
            ("answer.state ==", "", "expression: "),
            ("answer.state = 1", "=", "expression: "),
            ("a b", "b", "expression: "),
            ("a }} {{ b", "{{", "`{{` is not needed"),
            ("a }}", "}", ""),
            ("a | uper", "uper", "there is no filter `uper` (did you mean `upper`?)"),
            ("a * 2", "*", "`*` cannot be used"),
            ("{'a': 1}", "{", "`{` cannot be used"),
        ] {
            let error = Expression::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(text[error.at.clone()].contains(at), "{text}: {:?} {error}", error.at);
        }
        assert!(Expression::parse(&"a ".repeat(super::super::TEXT_MAX)).is_err());
    }

    #[test]
    fn unbound_names_are_errors() {
        for (text, message) in [
            ("answer.error", "`answer.error` is not defined (add `| default(false)` if it may be absent)"),
            ("answr.state == 1", "is not defined"),
            ("answer.error.code == 1", "is not defined"),
        ] {
            let error = Expression::parse(text).expect(text).eval(&bindings()).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn used_names_are_listed() {
        let expression = Expression::parse("answer.a == b and c | default(1) and weekday(d)").expect("valid");
        assert_eq!(expression.names(), BTreeSet::from(["answer", "b", "c", "d"]));
        assert_eq!(expression.required_names(), BTreeSet::from(["answer", "b", "d"]));
        assert_eq!(expression.place_of("b"), Some(12..13));
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_has_an_error_range_inside_it(text in "[ab.|=()'\"{}\\[\\] ~+\\PC]{0,20}") {
            match Expression::parse(&text).and_then(|expression| expression.eval(&bindings())) {
                Ok(_) => {}
                Err(error) => prop_assert!(text.get(error.at.clone()).is_some(), "{error} {:?}", error.at),
            }
        }
    }
}
