//! Arbitrary text as a template, bound to a few values: either an error with a position, or a text of bounded length,
//! in bounded time.

#![no_main]

use std::sync::{Arc, OnceLock};

use cronhold_core::Template;
use cronhold_core::template::Bindings;
use cronhold_fuzz::{calendars, check_mistake};
use cronhold_schedule::ZoneRegistry;
use libfuzzer_sys::fuzz_target;

fn bindings() -> &'static Bindings {
    static BINDINGS: OnceLock<Bindings> = OnceLock::new();
    BINDINGS.get_or_init(|| {
        let world = Bindings::new(Arc::new(ZoneRegistry::bundled()), Arc::new(calendars().clone()));
        let named = world.with("region", "us".to_owned()).with("date", "2026-03-29".to_owned());
        named.with("time", "2026-03-29T01:00:00Z".to_owned()).with("a", "{{ region }}".to_owned())
    })
}

fuzz_target!(|text: &str| {
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => return check_mistake(text, &error),
    };
    assert_eq!(template.text(), text);
    assert!(template.required_names().is_subset(&template.names()));
    match template.bind(bindings()) {
        Ok(bound) if template.is_literal() => assert_eq!(bound, text),
        // The same values yield the same text.
        Ok(bound) => assert_eq!(template.bind(bindings()).as_ref(), Ok(&bound)),
        Err(error) => check_mistake(text, &error),
    }
});
