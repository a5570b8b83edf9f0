//! Answers in words: what is to be said, and what may be done about it.

use std::io::{self, Write};

use cronhold_api::{Holes, Line};

use super::{Colour, Wall, counted};

/// The lines of an answer.
pub(crate) fn lines(lines: &[Line], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        match line.tone.as_str() {
            "answer" => writeln!(out, "{}", Colour::Bold.paint(&line.text, colours))?,
            "advice" => writeln!(out, "  {}: {}", Colour::Cyan.paint("hint", colours), line.text)?,
            _ => writeln!(out, "  {}", line.text)?,
        }
    }
    Ok(())
}

/// Occurrences without an outcome, and where they were looked for.
pub(crate) fn holes(holes: &Holes, wall: &Wall, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    lines(&holes.lines, colours, out)?;
    let jobs = counted(usize::try_from(holes.jobs).unwrap_or(usize::MAX), "job");
    let found = match usize::try_from(holes.found).unwrap_or(usize::MAX) {
        0 => Colour::Green.paint("every occurrence has an outcome", colours),
        found => {
            let has = if found == 1 { "has" } else { "have" };
            Colour::Red.paint(&format!("{} {has} no outcome", counted(found, "occurrence")), colours)
        }
    };
    writeln!(out, "{found} ({jobs}, from {} to {})", wall.at(holes.from), wall.at(holes.to))
}

#[cfg(test)]
mod tests {
    use super::super::jobs::tests::wall;
    use super::*;

    #[test]
    fn answers_and_what_to_do() {
        let line = |tone: &str, text: &str| Line { tone: tone.to_owned(), text: text.to_owned() };
        let said = vec![
            line("answer", "`backup` runs now."),
            line("detail", "It started at 12:00."),
            line("advice", "`cronhold stop backup` ends it"),
        ];
        let now = wall().now;
        let mut out = Vec::new();
        lines(&said, false, &mut out).expect("written");
        for (found, jobs, lines) in [(0, 1, Vec::new()), (1, 2, said.clone()), (7, 2, Vec::new())] {
            let looked = Holes { from: now, to: now, jobs, found, lines, next: None };
            holes(&looked, &wall(), false, &mut out).expect("written");
        }
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
