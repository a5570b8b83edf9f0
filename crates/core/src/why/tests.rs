//! Explanations of test scenes. In an expected text, a line with a detail begins with `-`, one with advice with `>`.

mod nodes;
mod past;
mod present;
pub(crate) mod scene;

use cronhold_schedule::Instant;

use super::{KnownRecords, Tone, why};
use scene::{id, time, world};

/// Compares the explanation of a scene at noon of the fifth with the expected text. Indentation is ignored.
fn assert_explanation(about: &str, known: &KnownRecords, at: Option<Instant>, expected: &str) {
    let world = world();
    let why = why(&id(), known, &world, time("05T12:00"), at);
    let lines = why.words(known, &world).into_iter().map(|line| {
        let before = match line.tone {
            Tone::Answer => "",
            Tone::Detail => "- ",
            Tone::Advice => "> ",
        };
        format!("{before}{}", line.text)
    });
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.collect::<Vec<_>>(), expected, "{about}");
}
