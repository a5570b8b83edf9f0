//! Renders mistakes as text: with the lines of the file, as compilers do, or on one line for editors and logs.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use cronhold_schedule::text::visible;

use crate::mistake::{Mistake, line_column};

/// Whether colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// With colours for a terminal.
    Coloured,
}

/// Bytes before and after a mistake that are searched for the surrounding lines. The limit keeps the cost of a mistake in
/// a large file low.
const CONTEXT_BYTES: usize = 4096;

/// Renders a mistake with its lines; `text` is the whole text of the file.
pub fn render(mistake: &Mistake, text: &str, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let at = bounded(text, &mistake.at);
    let related = mistake.related.as_ref().map(|(range, label)| (bounded(text, range), label.as_str()));
    let shown = window(text, &at, related.as_ref().map(|(range, _)| range));
    let (first_line, _) = line_column(text, shown.start);
    let inside = |range: &Range<usize>| range.start - shown.start..range.end - shown.start;
    let file = visible(&mistake.file);
    let mut snippet = Snippet::source(&text[shown.clone()])
        .line_start(first_line)
        .path(&*file)
        .annotation(AnnotationKind::Primary.span(inside(&at)));
    if let Some((range, label)) = &related {
        snippet = snippet.annotation(AnnotationKind::Context.span(inside(range)).label(*label));
    }
    let mut group = Level::ERROR.primary_title(mistake.message.as_str()).element(snippet);
    if let Some(hint) = &mistake.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    renderer.render(&[group])
}

/// Renders a mistake on one line: `file:line:column: message (hint)`.
pub fn render_line(mistake: &Mistake, text: &str) -> String {
    let (line, column) = line_column(text, mistake.at.start);
    let hint = mistake.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}:{line}:{column}: {}{hint}", visible(&mistake.file), mistake.message)
}

/// Limits a range to the text and to the boundaries of characters.
fn bounded(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = floor(text, range.start);
    let end = floor(text, range.end.max(start));
    start..end.max(start)
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Whole lines around the places.
fn window(text: &str, at: &Range<usize>, related: Option<&Range<usize>>) -> Range<usize> {
    let first = related.map_or(at.start, |range| range.start.min(at.start));
    let last = related.map_or(at.end, |range| range.end.max(at.end));
    let from = floor(text, first.saturating_sub(CONTEXT_BYTES));
    let until = floor(text, last.saturating_add(CONTEXT_BYTES));
    let start = if from == 0 { 0 } else { text[..first].rfind('\n').map_or(0, |newline| newline + 1) };
    let end = if until == text.len() { until } else { text[last..].find('\n').map_or(text.len(), |at| last + at) };
    start..end
}
