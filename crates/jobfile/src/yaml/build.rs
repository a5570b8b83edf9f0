//! Builds the tree from the parser's events: copies aliases within a budget, applies merge keys, and reports duplicate
//! keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};

use super::{
    DEPTH_MAX, FILE_BYTES_MAX, MISTAKES_MAX, NODES_MAX, TextStyle, YamlEntry, YamlNode, YamlScalar, YamlValue,
};
use crate::mistake::Mistake;

/// Parses one document. The tree is absent if the text is not YAML at all. Otherwise it is there even if there are
/// mistakes, so that readers of the tree can report theirs as well.
pub(crate) fn parse(file: &str, text: &str) -> (Option<YamlNode>, Vec<Mistake>) {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, but a job file can have at most {FILE_BYTES_MAX}", text.len());
        return (None, vec![Mistake::new(file, 0..0, message)]);
    }
    let mut builder = TreeBuilder::new(file, text);
    let options = granit_parser::options! { emit_unresolved_aliases: true, emit_comments: false };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => {
                if builder.take(event, &span).is_err() {
                    return (None, builder.mistakes);
                }
            }
            Err(error) => {
                let mistake = syntax(file, text, &error);
                builder.mistakes.push(mistake);
                return (None, builder.mistakes);
            }
        }
    }
    let root = builder.root.take().unwrap_or(YamlNode { value: YamlValue::Null, span: 0..0 });
    (Some(root), builder.mistakes)
}

/// Parsing ends early, because the rest of the file cannot be read sensibly.
struct StopReading;

struct TreeBuilder<'t> {
    file: &'t str,
    text: &'t str,
    stack: Vec<OpenCollection>,
    /// Complete nodes that have an anchor.
    anchors: BTreeMap<usize, (YamlNode, Extent)>,
    root: Option<YamlNode>,
    documents: usize,
    nodes: usize,
    mistakes: Vec<Mistake>,
}

/// The size of a subtree.
#[derive(Debug, Clone, Copy)]
struct Extent {
    nodes: usize,
    height: usize,
}

impl Extent {
    const ONE: Self = Self { nodes: 1, height: 1 };
}

/// A collection that is not complete yet.
struct OpenCollection {
    start: usize,
    /// Where its last child ended, which is where a block collection ends.
    end: usize,
    flow: bool,
    anchor: usize,
    extent: Extent,
    content: CollectionContent,
}

enum CollectionContent {
    List(Vec<YamlNode>),
    Map { entries: Vec<YamlEntry>, merges: Vec<YamlNode>, key: Option<PendingKey>, broken: bool },
}

/// A key that waits for its value.
enum PendingKey {
    Text(String, Range<usize>),
    Merge,
    /// Reported already; its value is dropped.
    Broken,
}

impl<'t> TreeBuilder<'t> {
    fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            stack: Vec::new(),
            anchors: BTreeMap::new(),
            root: None,
            documents: 0,
            nodes: 0,
            mistakes: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), StopReading> {
        let at = self.range(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let mistake =
                        Mistake::new(self.file, at, "a file contains one job, but a second document begins here")
                            .hint("move the second job to a separate file");
                    return self.stop(mistake);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                self.tagged(tag.as_deref(), &at);
                self.nodes += 1;
                return self.finish(scalar(text, style, is_text, at), anchor, Extent::ONE);
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.tagged(tag.as_deref(), &at);
                return self.open(at, style, anchor, CollectionContent::List(Vec::new()));
            }
            Event::MappingStart(style, anchor, tag) => {
                self.tagged(tag.as_deref(), &at);
                let content =
                    CollectionContent::Map { entries: Vec::new(), merges: Vec::new(), key: None, broken: false };
                return self.open(at, style, anchor, content);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.close(at.end),
            Event::Alias(anchor) => return self.alias(anchor, at),
            Event::UnresolvedAlias(name) => {
                self.report(
                    Mistake::new(self.file, at.clone(), format!("there is no anchor `&{name}` before this alias"))
                        .hint("quote the text if `*` is part of it"),
                );
                self.nodes += 1;
                return self.finish(YamlNode { value: YamlValue::Broken, span: at }, 0, Extent::ONE);
            }
            // The remaining events are presentation.
            _ => {}
        }
        Ok(())
    }

    /// Reports tags, which are not supported except for plain values.
    fn tagged(&mut self, tag: Option<&Tag>, at: &Range<usize>) {
        let plain = ["str", "int", "float", "bool", "null", "seq", "map"];
        if tag.is_some_and(|tag| !plain.iter().any(|known| tag.is_yaml_core_schema_tag(known))) {
            let mistake = Mistake::new(self.file, at.clone(), "a tag has no meaning in a job file");
            self.report(mistake.hint("remove the tag that begins with `!`, or quote the text if it is part of it"));
        }
    }

    fn open(
        &mut self,
        at: Range<usize>,
        style: StructureStyle,
        anchor: usize,
        content: CollectionContent,
    ) -> Result<(), StopReading> {
        if self.stack.len() >= DEPTH_MAX {
            return self.stop(too_deep(self.file, at));
        }
        self.nodes += 1;
        self.stack.push(OpenCollection {
            start: at.start,
            end: at.end,
            flow: style == StructureStyle::Flow,
            anchor,
            extent: Extent::ONE,
            content,
        });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), StopReading> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let span = frame.start..if frame.flow { end } else { frame.end };
        let value = match frame.content {
            CollectionContent::List(items) => YamlValue::List(items),
            CollectionContent::Map { broken: true, .. } => YamlValue::Broken,
            CollectionContent::Map { entries, merges, .. } => self.map(entries, merges),
        };
        self.finish(YamlNode { value, span }, frame.anchor, frame.extent)
    }

    /// Entries without duplicates, and then those that merge keys add.
    fn map(&mut self, entries: Vec<YamlEntry>, merges: Vec<YamlNode>) -> YamlValue {
        let mut seen: BTreeMap<String, Range<usize>> = BTreeMap::new();
        let mut kept: Vec<YamlEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(first) = seen.get(&entry.key) {
                let mistake = Mistake::new(self.file, entry.key_span, format!("duplicate key `{}`", entry.key))
                    .hint("keep one of them")
                    .related(first.clone(), "first here");
                self.report(mistake);
            } else {
                seen.insert(entry.key.clone(), entry.key_span.clone());
                kept.push(entry);
            }
        }
        for merge in merges {
            let sources = match merge.value {
                YamlValue::List(sources) => sources,
                value => vec![YamlNode { value, span: merge.span }],
            };
            for source in sources {
                match source.value {
                    YamlValue::Map(entries) => {
                        for entry in entries {
                            if !seen.contains_key(&entry.key) {
                                seen.insert(entry.key.clone(), entry.key_span.clone());
                                kept.push(entry);
                            }
                        }
                    }
                    YamlValue::Broken => {}
                    _ => self.report(
                        Mistake::new(self.file, source.span, "`<<` needs a map, or a list of maps")
                            .hint("name an anchor of a map, such as `<<: *defaults`"),
                    ),
                }
            }
        }
        YamlValue::Map(kept)
    }

    fn alias(&mut self, anchor: usize, at: Range<usize>) -> Result<(), StopReading> {
        let Some((node, extent)) = self.anchors.get(&anchor) else {
            let mistake = Mistake::new(self.file, at, "this alias refers to a value that contains it");
            return self.stop(mistake);
        };
        if self.stack.len() + extent.height > DEPTH_MAX {
            return self.stop(too_deep(self.file, at));
        }
        // The budget is checked before the copy is made, so that nested aliases cannot exhaust memory.
        if self.nodes + extent.nodes > NODES_MAX {
            return self.stop(too_many(self.file, at));
        }
        let (node, extent) = (node.clone(), *extent);
        self.nodes += extent.nodes;
        self.finish(node, 0, extent)
    }

    /// Attaches a complete node as an item, a key, a value or the root. The caller has counted it.
    fn finish(&mut self, node: YamlNode, anchor: usize, extent: Extent) -> Result<(), StopReading> {
        if self.nodes > NODES_MAX {
            return self.stop(too_many(self.file, node.span));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), extent));
        }
        let Some(mut frame) = self.stack.pop() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.extent.nodes += extent.nodes;
        frame.extent.height = frame.extent.height.max(extent.height + 1);
        frame.end = frame.end.max(node.span.end);
        self.attach(&mut frame, node);
        self.stack.push(frame);
        Ok(())
    }

    fn attach(&mut self, frame: &mut OpenCollection, node: YamlNode) {
        match &mut frame.content {
            CollectionContent::List(items) => items.push(node),
            CollectionContent::Map { entries, merges, key, broken } => match key.take() {
                None => *key = Some(self.key(node, frame.start)),
                Some(PendingKey::Text(key, key_span)) => entries.push(YamlEntry { key, key_span, value: node }),
                Some(PendingKey::Merge) => merges.push(node),
                Some(PendingKey::Broken) => *broken = true,
            },
        }
    }

    fn key(&mut self, node: YamlNode, map_start: usize) -> PendingKey {
        match node.value {
            YamlValue::Scalar(YamlScalar { text, style: TextStyle::Plain }) if text == "<<" => PendingKey::Merge,
            YamlValue::Scalar(scalar) => PendingKey::Text(scalar.text, node.span),
            YamlValue::Broken => PendingKey::Broken,
            YamlValue::Map(_) if self.text[map_start..].starts_with("{{") => {
                let end = self.text[map_start..].find("}}").map_or(node.span.end, |at| map_start + at + 2);
                let written = cronhold_schedule::text::shortened(&self.text[map_start..end]);
                let mistake = Mistake::new(self.file, map_start..end, "without quotes YAML reads `{{ … }}` as a map")
                    .hint(format!("quote the whole text: \"{written}\""));
                self.report(mistake);
                PendingKey::Broken
            }
            _ => {
                let found = node.found();
                let mistake = Mistake::new(self.file, node.span, format!("a key must be a text, but this is {found}"));
                self.report(mistake);
                PendingKey::Broken
            }
        }
    }

    fn range(&self, span: &Span) -> Range<usize> {
        let start = span.start.byte_offset().unwrap_or(0).min(self.text.len());
        let end = span.end.byte_offset().unwrap_or(start).clamp(start, self.text.len());
        start..end
    }

    fn report(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(mistake);
        }
    }

    fn stop(&mut self, mistake: Mistake) -> Result<(), StopReading> {
        self.mistakes.push(mistake);
        Err(StopReading)
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, is_text: bool, span: Range<usize>) -> YamlNode {
    let style = match style {
        ScalarStyle::Plain if is_text => TextStyle::Quoted,
        ScalarStyle::Plain => TextStyle::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => TextStyle::Quoted,
        ScalarStyle::Literal => TextStyle::Literal,
        ScalarStyle::Folded => TextStyle::Folded,
    };
    let value = match (style, text.as_ref()) {
        (TextStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => YamlValue::Null,
        _ => YamlValue::Scalar(YamlScalar { text: text.into_owned(), style }),
    };
    YamlNode { value, span }
}

fn too_deep(file: &str, at: Range<usize>) -> Mistake {
    Mistake::new(file, at, format!("values are nested more than {DEPTH_MAX} deep"))
}

fn too_many(file: &str, at: Range<usize>) -> Mistake {
    Mistake::new(file, at, format!("the file contains more than {NODES_MAX} values, aliases counted in full"))
}

/// A syntax error of the parser, with a hint for the most frequent causes.
fn syntax(file: &str, text: &str, error: &ScanError) -> Mistake {
    let mut start = error.marker().byte_offset().unwrap_or(0).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let end = text[start..].chars().next().filter(|c| *c != '\n').map_or(start, |c| start + c.len_utf8());
    let mistake = Mistake::new(file, start..end, format!("this is not YAML: {}", error.info()));
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let hint = if line.contains("{{") {
        "a text needs quotes if it begins with `{{ … }}`, or contains it inside `[…]` or `{…}`"
    } else if line.contains('\t') {
        "indent with spaces; YAML does not allow tabs there"
    } else {
        match error.kind() {
            _ if error.info().contains("quote") => "close the quote, and write a quote inside it as `''` or `\\\"`",
            ErrorKind::UnclosedFlowCollection { .. } => "close the bracket",
            _ if line.matches(": ").count() > 1 => "a text that contains `: ` needs quotes",
            _ => "keys of one map have the same indentation; a text with special characters needs quotes",
        }
    };
    mistake.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        let (node, mistakes) = parse("x.yaml", text);
        assert_eq!(mistakes, [], "{text}");
        node.expect("a tree").to_json().to_string()
    }

    fn first_mistake(text: &str) -> String {
        let (_, mistakes) = parse("x.yaml", text);
        let mistake = mistakes.first().unwrap_or_else(|| panic!("no mistake in {text}"));
        format!("`{}` {}", text[mistake.at.clone()].lines().next().unwrap_or_default(), mistake.message)
    }

    #[test]
    fn reads_the_core_schema_strictly() {
        for (text, expected) in [
            ("a: 1", r#"{"a":1}"#),
            ("a: '1'", r#"{"a":"1"}"#),
            ("on: no", r#"{"on":"no"}"#),
            ("{a: true, b: True, c: yes}", r#"{"a":true,"b":"True","c":"yes"}"#),
            ("a: 10:30", r#"{"a":"10:30"}"#),
            ("a: 017", r#"{"a":"017"}"#),
            ("a: 0o17", r#"{"a":15}"#),
            ("a: !!str 17", r#"{"a":"17"}"#),
            ("a:\nb: ~\nc: ''", r#"{"a":null,"b":null,"c":""}"#),
            ("a: |\n  x\n  y\n", r#"{"a":"x\ny\n"}"#),
            ("- 1.5\n- [x, {y: z}]", r#"[1.5,["x",{"y":"z"}]]"#),
            ("", "null"),
            ("# nothing", "null"),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn aliases_are_copied_and_merge_keys_applied() {
        assert_eq!(json("a: &x {k: 1}\nb: *x"), r#"{"a":{"k":1},"b":{"k":1}}"#);
        assert_eq!(json("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}"), r#"{"a":{"k":1,"l":2},"b":{"k":3,"l":2}}"#);
        assert_eq!(
            json("- &x {k: 1}\n- &y {k: 2, m: 4}\n- {<<: [*x, *y]}"),
            r#"[{"k":1},{"k":2,"m":4},{"k":1,"m":4}]"#
        );
        assert_eq!(json("'<<': 1"), r#"{"<<":1}"#);
    }

    #[test]
    fn syntax_mistakes_have_their_place() {
        for (text, expected) in [
            ("a: 1\nb: 2\na: 3", "`a` duplicate key `a`"),
            ("a: {{ x }}", "`{{ x }}` without quotes YAML reads `{{ … }}` as a map"),
            ("a: *x", "`*x` there is no anchor `&x` before this alias"),
            ("a: &x [*x]", "`*x` this alias refers to a value that contains it"),
            ("a: 1\n---\nb: 2", "`---` a file contains one job, but a second document begins here"),
            ("[a]: 1", "`[a]` a key must be a text, but this is a list"),
            ("a: {<<: 1}", "`1` `<<` needs a map, or a list of maps"),
        ] {
            assert_eq!(first_mistake(text), expected, "{text}");
        }
    }

    #[test]
    fn exponential_aliases_are_rejected() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(first_mistake(&text).ends_with("the file contains more than 100000 values, aliases counted in full"));
        let mut text = "a0: &a0 [x]\n".to_owned();
        for level in 1..100 {
            text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert!(first_mistake(&text).ends_with("values are nested more than 64 deep"));
        assert!(
            first_mistake(&format!("{}{}", "[".repeat(100), "]".repeat(100)))
                .ends_with("values are nested more than 64 deep")
        );
        assert!(first_mistake(&" ".repeat(FILE_BYTES_MAX + 1)).contains("at most 1048576"));
    }

    #[test]
    fn block_collections_end_with_their_last_child() {
        let text = "a:\n  b: 1\n  c: 2\n\n# comment\nd: 3\n";
        let (node, _) = parse("x.yaml", text);
        let node = node.expect("a tree");
        assert_eq!(&text[node.get("a").expect("a").span.clone()], "b: 1\n  c: 2");
        assert_eq!(&text[node.span], "a:\n  b: 1\n  c: 2\n\n# comment\nd: 3");
    }
}
