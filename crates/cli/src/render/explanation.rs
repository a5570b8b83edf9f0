//! Output of `cronhold why` and `cronhold holes`: sentences with hints.

use std::io::{self, Write};

use cronhold_api::{AnswerLine, HolesReport};

use super::{CellColour, LocalTimeFormat, counted};

/// Prints the lines of an explanation.
pub(crate) fn lines(lines: &[AnswerLine], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        match line.tone.as_str() {
            "answer" => writeln!(out, "{}", CellColour::Bold.paint(&line.text, colours))?,
            "advice" => writeln!(out, "  {}: {}", CellColour::Cyan.paint("hint", colours), line.text)?,
            _ => writeln!(out, "  {}", line.text)?,
        }
    }
    Ok(())
}

/// Prints occurrences without an outcome, and the period that was searched.
pub(crate) fn holes(
    holes: &HolesReport,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    lines(&holes.lines, colours, out)?;
    let jobs = counted(usize::try_from(holes.jobs).unwrap_or(usize::MAX), "job");
    let found = match usize::try_from(holes.found).unwrap_or(usize::MAX) {
        0 if !holes.unreadable.is_empty() => {
            let records = counted(holes.unreadable.len(), "record");
            CellColour::Red.paint(&format!("unknown: {records} cannot be read"), colours)
        }
        0 => CellColour::Green.paint("every occurrence has an outcome", colours),
        found => {
            let has = if found == 1 { "has" } else { "have" };
            CellColour::Red.paint(&format!("{} {has} no outcome", counted(found, "occurrence")), colours)
        }
    };
    writeln!(out, "{found} ({jobs}, from {} to {})", clock.at(holes.from), clock.at(holes.to))
}

#[cfg(test)]
mod tests {
    use super::super::jobs::tests::clock;
    use super::*;

    #[test]
    fn explanation_has_answers_details_and_advice() {
        let line = |tone: &str, text: &str| AnswerLine { tone: tone.to_owned(), text: text.to_owned() };
        let explanation = vec![
            line("answer", "`backup` runs now."),
            line("detail", "It started at 12:00."),
            line("advice", "`cronhold stop backup` ends it"),
        ];
        let now = clock().now;
        let mut out = Vec::new();
        lines(&explanation, false, &mut out).expect("written");
        for (found, jobs, lines) in [(0, 1, Vec::new()), (1, 2, explanation.clone()), (7, 2, Vec::new())] {
            let looked = HolesReport { from: now, to: now, jobs, found, lines, unreadable: Vec::new(), next: None };
            holes(&looked, &clock(), false, &mut out).expect("written");
        }
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
