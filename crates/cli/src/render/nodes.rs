//! Nodes, one line each.

use std::io::{self, Write};

use cronhold_api::Node;

use super::{Table, Wall};

/// The nodes.
pub(crate) fn table(nodes: &[Node], wall: &Wall, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&["NODE", "ID", "SINCE", "HEARD OF", "STARTS", "RUNS", "LABELS", "NOTES"]);
    for node in nodes {
        let mut notes = Vec::new();
        if node.is_this {
            notes.push("answers");
        }
        if node.gone {
            notes.push("gone");
        }
        if node.draining {
            notes.push("drains");
        }
        table.row([
            node.name.clone().into(),
            node.id.clone().into(),
            wall.both(node.since).into(),
            wall.away(node.beat).into(),
            node.incarnation.to_string().into(),
            node.runs.to_string().into(),
            node.labels.join(" ").into(),
            notes.join(", ").into(),
        ]);
    }
    table.write(colours, out)
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::super::jobs::tests::wall;
    use super::*;

    #[test]
    fn nodes_in_a_table() {
        let node = |name: &str, is_this: bool, draining: bool, gone: bool| Node {
            id: "019a".to_owned(),
            name: name.to_owned(),
            incarnation: 3,
            since: wall().now.minus(Span::from_secs(7_200)),
            beat: wall().now.minus(Span::from_secs(3)),
            labels: vec!["gpu".to_owned(), "eu".to_owned()],
            draining,
            gone,
            runs: if gone { 0 } else { 12 },
            is_this,
        };
        let mut out = Vec::new();
        let nodes =
            [node("one", true, false, false), node("two", false, true, false), node("three", false, true, true)];
        table(&nodes, &wall(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
