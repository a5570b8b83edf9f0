//! A table of nodes.

use std::io::{self, Write};

use cronhold_api::NodeSummary;
use cronhold_schedule::Span;

use super::{LocalTimeFormat, TextTable};

/// Clock differences up to this are not printed.
const SKEW_SHOWN: Span = Span::from_millis(100);

/// Prints the table.
pub(crate) fn table(
    nodes: &[NodeSummary],
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = TextTable::new(&["NODE", "ID", "SINCE", "HEARTBEAT", "RUNS", "LABELS", "NOTES"]);
    let live = || nodes.iter().filter(|node| !node.gone && !node.zone_data.is_empty());
    let have_other_zones = live().any(|node| live().any(|other| other.zone_data != node.zone_data));
    for node in nodes {
        let mut notes: Vec<String> = Vec::new();
        if node.is_this {
            notes.push("this node".to_owned());
        }
        if node.gone {
            notes.push("gone".to_owned());
        }
        if node.draining {
            notes.push("draining".to_owned());
        }
        if let Some(problem) = node.keeper_problem.as_ref().filter(|_| !node.gone) {
            notes.push(format!("starts nothing: {problem}"));
        }
        if let Some(skew) = node.skew_ms.filter(|_| !node.gone).and_then(skew) {
            notes.push(skew);
        }
        if have_other_zones && !node.gone && !node.zone_data.is_empty() {
            notes.push(format!("zone data {}", node.zone_data));
        }
        table.row([
            node.name.clone().into(),
            node.id.clone().into(),
            clock.both(node.since).into(),
            clock.relative(node.beat).into(),
            node.runs.to_string().into(),
            node.labels.join(" ").into(),
            notes.join(", ").into(),
        ]);
    }
    table.write(colours, out)
}

/// The clock difference in words, or `None` if it is negligible.
fn skew(millis: i64) -> Option<String> {
    let by = Span::from_millis(millis.unsigned_abs());
    let way = if millis > 0 { "ahead" } else { "behind" };
    (by > SKEW_SHOWN).then(|| format!("clock {by} {way}"))
}

#[cfg(test)]
mod tests {
    use super::super::jobs::tests::clock;
    use super::*;

    #[test]
    fn nodes_are_shown_in_a_table() {
        let node = |name: &str, is_this: bool, draining: bool, gone: bool| NodeSummary {
            id: "019a".to_owned(),
            name: name.to_owned(),
            incarnation: 3,
            since: clock().now.minus(Span::from_secs(7_200)),
            beat: clock().now.minus(Span::from_secs(3)),
            labels: vec!["gpu".to_owned(), "eu".to_owned()],
            draining,
            gone,
            skew_ms: Some(if draining { -1_250 } else { 100 }),
            zone_data: "2026e".to_owned(),
            keeper_problem: (gone || !draining).then(|| "the keeper does not reply".to_owned()),
            runs: if gone { 0 } else { 12 },
            is_this,
        };
        let mut out = Vec::new();
        let nodes =
            [node("one", true, false, false), node("two", false, true, false), node("three", false, true, true)];
        table(&nodes, &clock(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
        // Zone data is worth a note only if it differs.
        let mut out = Vec::new();
        let older = NodeSummary { zone_data: "2025b".to_owned(), ..node("two", false, false, false) };
        table(&[node("one", true, false, false), older], &clock(), false, &mut out).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("does not reply, zone data 2026e") && text.contains("zone data 2025b"), "{text}");
    }
}
