//! Answers to questions about scenes. A line of an answer that is a detail begins with `-`, advice begins with `>`.

mod nodes;
mod past;
mod present;
pub(crate) mod scene;

use cronhold_schedule::Instant;

use super::{KnownRecords, Tone, why};
use scene::{id, time, world};

/// Compares what is said about a scene at noon of the fifth. Blanks before lines do not count.
fn assert_told(about: &str, known: &KnownRecords, at: Option<Instant>, expected: &str) {
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
