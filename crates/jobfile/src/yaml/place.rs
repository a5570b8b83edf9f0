//! Maps a place inside a text to its place in the file, so that a mistake in a cron expression points at the character
//! and not at the whole value.

use std::ops::Range;

use super::{TextStyle, YamlScalar};

/// The place in `source` of the bytes `at` of the scalar at `span`. If escapes or folding make that place unclear, the
/// whole scalar.
pub(crate) fn inside(source: &str, span: &Range<usize>, scalar: &YamlScalar, at: &Range<usize>) -> Range<usize> {
    let Some(written) = source.get(span.clone()) else { return span.clone() };
    match scalar.style {
        TextStyle::Plain if written == scalar.text => shifted(span, 0, at),
        TextStyle::Quoted if written.get(1..written.len().saturating_sub(1)) == Some(scalar.text.as_str()) => {
            shifted(span, 1, at)
        }
        TextStyle::Literal => literal(source, span, &scalar.text, at).unwrap_or_else(|| first_line(source, span)),
        _ => span.clone(),
    }
}

/// The part of a place on its first line, for values that span several lines.
pub(crate) fn first_line(source: &str, span: &Range<usize>) -> Range<usize> {
    let end = source.get(span.clone()).and_then(|written| written.find('\n')).map_or(span.end, |at| span.start + at);
    span.start..end
}

fn shifted(span: &Range<usize>, by: usize, at: &Range<usize>) -> Range<usize> {
    let start = (span.start + by + at.start).min(span.end);
    start..(span.start + by + at.end).clamp(start, span.end)
}

/// In a block after `|`, the lines of the text are the lines of the file from the first one with content, each without
/// its indentation.
fn literal(source: &str, span: &Range<usize>, text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let before = text.get(..at.start)?;
    let line_number = before.matches('\n').count();
    let column = at.start - before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.split('\n').nth(line_number)?;
    let has_header = source[span.start..].starts_with('|');
    let mut offset = source[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    // Without its header the scalar begins at its first line that is not empty.
    let skipped = text.len() - text.trim_start_matches('\n').len();
    let lines = if has_header { line_number + 1 } else { line_number.checked_sub(skipped)? };
    for _ in 0..lines {
        offset += source.get(offset..)?.find('\n')? + 1;
    }
    let written = source.get(offset..)?.split('\n').next()?;
    let indent = written.strip_suffix(line)?.len();
    let start = offset + indent + column;
    let len = (at.end - at.start).min(line.len().saturating_sub(column));
    Some(start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{YamlValue, parse};

    /// What the file shows at the place of the first `x` of the value of `k`.
    fn shown(source: &str) -> &str {
        let (root, _) = parse("x.yaml", source);
        let root = root.expect("a tree");
        let node = root.get("k").expect("k");
        let YamlValue::Scalar(scalar) = &node.value else { panic!("{source} has no text") };
        let start = scalar.text.find('x').expect("an x");
        &source[inside(source, &node.span, scalar, &(start..start + 2))]
    }

    #[test]
    fn places_inside_a_text_map_to_the_file() {
        for source in [
            "k: a xy b",
            "k: 'a xy b'",
            "k: \"a xy b\"",
            "{k: xy}",
            "k: |\n  a\n  b xy\n  c\n",
            "k: |-\n    xy\n",
            "k: |2\n   xy\n",
            "k: |\n\n  a\n\n  xy\n",
            "k: |\n  ä xy\n",
        ] {
            assert_eq!(shown(source), "xy", "{source}");
        }
        assert_eq!(shown("k: 'it''s xy'"), "'it''s xy'");
        assert_eq!(shown("k: \"\\t xy\""), "\"\\t xy\"");
        assert_eq!(shown("k: a\n  xy"), "a\n  xy");
    }
}
