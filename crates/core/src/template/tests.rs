//! Tests of binding: templates, and the texts or errors that they give.

use std::sync::Arc;

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{CalendarExpr, ZoneRegistry};
use proptest::prelude::*;
use proptest::sample::select;

use super::environment::FUNCTIONS;
use super::*;

fn bindings() -> Bindings {
    let mut calendars = CalendarSet::new();
    let expression = CalendarExpr::parse("Mon-Fri").expect("valid");
    let weekdays = calendars.compile(&expression).expect("weekdays");
    calendars.insert("work", weekdays);
    Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(calendars))
        .with("region", "us")
        .with("day", "2026-03-29")
        .with("list", "a,b,c")
        .with("nominal_time", "2026-03-29T01:30:00Z")
        .with("attempt", 2u32)
}

#[test]
fn templates_bind_to_the_expected_texts() {
    for (text, expected) in [
        ("plain { text } %}", "plain { text } %}"),
        ("load --region {{ region }}", "load --region us"),
        ("{{ region | upper }} {{ region|replace('u', 'x') }}\n", "US xs\n"),
        ("{{ missing | default('none') }}", "none"),
        ("{% if missing is defined %}yes{% else %}no{% endif %}", "no"),
        ("{% for x in list | split(',') %}<{{ x }}>{% endfor %}", "<a><b><c>"),
        ("{{ list | split(',') | join(' ') }}", "a b c"),
        ("{{ attempt + 1 }} {{ 'retry' if attempt > 1 }}", "3 retry"),
        ("{{ '<&>' }}", "<&>"),
        ("rm {{ \"a; b's\" | quote }} {{ region | quote }} {{ '' | quote }}", r"rm 'a; b'\''s' us ''"),
        ("{{ 'a \"b\"' | tojson }} {{ attempt | tojson }}", r#""a \"b\"" 2"#),
        ("{{ day.replace('-', '') }} {{ list.split(',') | last }}", "20260329 c"),
        ("{{ region.startswith('u') }} {{ ' x '.strip().upper() }}", "True X"),
        ("{% for n in range(3, 0, -1) %}{{ n }}{% endfor %}", "321"),
        ("{% raw %}{{ .UsedNames }}{% endraw %}", "{{ .UsedNames }}"),
        ("a{# note #}b", "ab"),
        ("{{ to_date(nominal_time) }} {{ date(day) }}", "2026-03-29 2026-03-29"),
        ("{{ shift_days(day, 3) }} {{ shift_days(day, -29) }}", "2026-04-01 2026-02-28"),
        ("{{ weekday(day) }}", "Sunday"),
        ("{{ format_date(day, '%Y%m%d') }} {{ format_date(nominal_time, '%H:%M') }}", "20260329 01:30"),
        ("{{ to_local(nominal_time, 'Europe/Berlin') }}", "2026-03-29T03:30:00+02:00"),
        ("{{ to_local(nominal_time, 'America/New_York').date }}", "2026-03-28"),
        ("{{ to_local(nominal_time, 'America/New_York').time }}", "21:30:00"),
        ("{{ from_local(day, '02:30', 'Europe/Berlin') }}", "2026-03-29T01:00:00Z"),
        ("{{ from_local('2026-10-25', '02:30', 'Europe/Berlin') }}", "2026-10-25T00:30:00Z"),
        ("{{ to_utc('2026-03-29T01:30:00+01:00') }}", "2026-03-29T00:30:00Z"),
        ("{{ calendar('work').before(day) }} {{ get_calendar('work').after(day) }}", "2026-03-27 2026-03-30"),
        ("{{ calendar('work').shift(day, 2) }} {{ calendar('work').contains(day) }}", "2026-03-31 False"),
    ] {
        let template = Template::parse(text).expect(text);
        assert_eq!(template.bind(&bindings()).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn syntax_errors_have_a_range() {
    for (text, at, message) in [
        ("a {{ b", "", "template: "),
        ("a {{ b c }}", "c", "template: "),
        ("{% if x %}", "", "template: "),
        ("{{ x ! y }}", "", "template: "),
    ] {
        let error = Template::parse(text).expect_err(text);
        assert!(error.message.starts_with(message), "{text}: {error}");
        assert!(error.hint.is_some(), "{text}");
        assert!(text[error.at.clone()].contains(at), "{text}: {:?} {error}", error.at);
    }
    let long = format!("{}{{{{ x }}}}", "a".repeat(TEXT_MAX));
    assert!(Template::parse(&long).expect_err("long").message.contains("at most 65536 bytes"));
    assert!(Template::parse(&long.replace("{{", "--")).is_ok());
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(Template::parse(&deep).is_err());
}

#[test]
fn bind_errors_name_their_cause() {
    for (text, at, message) in [
        ("a {{ regoin }}", "regoin", "`regoin` is not defined (did you mean `region`?)"),
        ("{{ zebra }}", "zebra", "names are attempt, day, list, nominal_time, region"),
        ("{{ shift_days('soon', 1) }}", "", "`soon` is not a date"),
        ("{{ shift_days(day, 3999999) }}", "", "between the years"),
        ("{{ to_local(nominal_time, 'Mars') }}", "", "there is no time zone `Mars`"),
        ("{{ to_utc(day) }}", "", "is not an instant"),
        ("{{ calendar('moon').before(day) }}", "", "there is no calendar `moon`"),
        ("{{ calendar('work').until(day) }}", "", "not `until`"),
        ("{{ calendar('work').shift(day) }}", "", "takes a date and a number"),
        ("{{ format_date(day, '%Q%H%z') }}", "", "cannot format"),
        ("{% for x in range(999) %}{% for y in range(999) %}{% endfor %}{% endfor %}", "", "takes too long"),
        ("{{ range(1001) }}", "", "more than 1000 numbers"),
        ("{{ range(1, 2, 0) }}", "", "cannot be 0"),
        ("{{ region.shout() }}", "", "a text has no such method"),
        ("{{ list | split(',') | quote }}", "", "`quote` takes a text"),
        ("{{ missing | upper }}", "", "not defined"),
        ("{{ missing | quote }}", "", "not defined"),
        ("{{ region() }}", "", ""),
    ] {
        let outcome = Template::parse(text).and_then(|template| template.bind(&bindings()));
        let error = outcome.expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(text[error.at.clone()].contains(at), "{text}: {:?}", error.at);
    }
}

#[test]
fn results_and_values_are_bounded() {
    let big = bindings().with("big", "x".repeat(60_000));
    let many = Template::parse("{% for x in range(50) %}{{ big }}{% endfor %}").expect("valid");
    assert_eq!(many.bind(&big).expect_err("large").message, "the result has more than 1048576 bytes");
    let squared = Template::parse("{{ big | replace('x', big) }}").expect("valid");
    assert!(squared.bind(&big).expect_err("large").message.contains("`replace` gives more"));
    let template = Template::parse("{{ big }}").expect("valid");
    assert!(template.bind(&big.with("other", "x".repeat(6_000))).expect_err("large").message.contains("at most 65536"));
}

#[test]
fn used_names_are_listed() {
    for (text, names, required) in [
        ("plain", "", ""),
        ("{{ region }}/{{ date }}", "date region", "date region"),
        ("{{ date('2026-01-01') }}", "", ""),
        ("{{ calendar('x').before(date) }}", "date", "date"),
        ("{{ a | default(b) }}", "a b", "b"),
        ("{% for x in xs | split %}{{ x }}{{ loop.index }}{% endfor %}", "xs", "xs"),
    ] {
        let template = Template::parse(text).expect(text);
        assert_eq!(template.names(), names.split_whitespace().collect(), "{text}");
        assert_eq!(template.required_names(), required.split_whitespace().collect(), "{text}");
    }
    let template = Template::parse("date {{ 'date' ~ dated }} {{ date }}").expect("valid");
    assert_eq!(template.place_of("date"), Some(29..33));
    assert_eq!(template.place_of("other"), None);
}

#[test]
fn literal_is_bound_to_its_own_text() {
    let literal = Template::literal("docker ps --format {{.UsedNames}}");
    assert!(literal.is_literal());
    assert_eq!(literal.bind(&bindings()).as_deref(), Ok("docker ps --format {{.UsedNames}}"));
    assert!(literal.names().is_empty());
    assert_eq!(Template::parse("a"), Ok(Template::literal("a")));
    // A raw part is the same text.
    let raw = |text: &str| Template::parse(&format!("{{% raw %}}{text}{{% endraw %}}")).expect("a template");
    assert_eq!(raw("docker ps --format {{.UsedNames}}"), literal);
    assert!(!raw("a{% endraw %}{{ b }}{% raw %}").is_literal());
}

#[test]
fn templates_differ_by_text_and_by_literal_or_live() {
    let live = |text| Template::parse(text).expect(text);
    assert_eq!(live("{{ a }}"), live("{{ a }}"));
    assert_ne!(live("{{ a }}"), Template::literal("{{ a }}"));
    assert_ne!(live("{{ a }}"), live("{{a}}"));
    assert!(live("{{ a }}") < live("{{ b }}") && live("{{ b }}") > Template::literal("a"));
    // A million jobs have about ten million templates.
    assert_eq!(size_of::<Template>(), 16);
}

/// The pieces of random templates.
const PIECES: [&str; 36] = [
    "{{ ",
    " }}",
    "{%- ",
    "{% ",
    " %}",
    "-%}",
    "{# ",
    " #}",
    "raw",
    "endraw",
    "{% raw %}",
    "{% endraw %}",
    "if ",
    "else",
    "{% endif %}",
    "for x in ",
    "{% endfor %}",
    "region",
    " day ",
    "missing",
    "'",
    "\"",
    "\\",
    " ~ ",
    " + ",
    ", ",
    "(",
    ")",
    "[",
    "]",
    " | upper",
    "range",
    " is defined",
    "}",
    "{",
    "\n",
];

fn random_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => select(&PIECES[..]).prop_map(str::to_owned), 1 => "\\PC"];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Complete expressions with random text between them, so that many are accepted.
fn random_template() -> impl Strategy<Value = String> {
    let expression = prop_oneof![
        random_text(),
        random_text().prop_map(|inside| format!("{{{{ {inside} }}}}")),
        random_text().prop_map(|inside| format!("{{% raw %}}{inside}{{% endraw %}}")),
        random_text().prop_map(|inside| format!("{{# {inside} #}}{{{{ region }}}}")),
        random_text().prop_map(|inside| format!("{{{{ '{inside}' ~ day }}}}")),
        Just("{%- if missing is defined -%}{{ missing }}{% endif %}".to_owned()),
        Just("{% for x in list | split(',') %}{{ x ~ loop.index }}{% endfor %}".to_owned()),
    ];
    proptest::collection::vec(expression, 1..4).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn any_text_binds_or_has_an_error_range_inside_it(text in random_template()) {
        match Template::parse(&text).and_then(|template| template.bind(&bindings())) {
            Ok(_) => {}
            Err(error) => prop_assert!(text.get(error.at.clone()).is_some(), "{error} {:?}", error.at),
        }
    }

    /// The static check must have seen everything that the engine interprets as an expression.
    #[test]
    fn check_finds_every_name_that_the_engine_finds(text in random_template()) {
        if let (Ok(parsed), Ok(shape)) = (environment().template_from_str(&text), shape::check(&text)) {
            for name in parsed.undeclared_variables(false) {
                prop_assert!(shape.plain.contains_key(&name) || FUNCTIONS.contains(&name.as_str()), "{name} in {text}");
            }
        }
    }
}
