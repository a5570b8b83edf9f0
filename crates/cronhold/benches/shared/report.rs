//! The results: one JSON line for each as soon as it is measured, and a table of all at the end.

use serde_json::json;

/// A measured value and its target.
#[derive(Debug, Clone)]
struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
}

/// The target of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// All values of one call.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Row>);

impl Report {
    /// Adds a value without a target.
    pub(crate) fn note(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.put(Row { what: what.into(), value, unit, target: None });
    }

    /// Adds a value with its target.
    pub(crate) fn compare(&mut self, what: impl Into<String>, value: f64, unit: &'static str, target: Target) {
        self.put(Row { what: what.into(), value, unit, target: Some(target) });
    }

    fn put(&mut self, row: Row) {
        let (least, most) = match row.target {
            Some(Target::AtLeast(least)) => (Some(least), None),
            Some(Target::AtMost(most)) => (None, Some(most)),
            None => (None, None),
        };
        let line = json!({"what": row.what, "value": row.value, "unit": row.unit, "at_least": least, "at_most": most});
        println!("{line}");
        self.0.push(row);
    }

    /// Whether a target is missed, in the first row that starts with `from` or a later row.
    pub(crate) fn has_missed(&self, from: &str) -> bool {
        let rows = self.0.iter().skip_while(|row| !row.what.starts_with(from));
        rows.into_iter().any(|row| match row.target {
            Some(Target::AtLeast(least)) => row.value < least,
            Some(Target::AtMost(most)) => row.value > most,
            None => false,
        })
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        println!();
        for Row { what, value, unit, target } in &self.0 {
            let digits = if *value < 100.0 { 2 } else { 0 };
            let verdict = match target {
                Some(Target::AtLeast(least)) => format!("{}  at least {least}", hit(value >= least)),
                Some(Target::AtMost(most)) => format!("{}  at most {most}", hit(value <= most)),
                None => String::new(),
            };
            let line = format!("{what:<58} {value:>12.digits$} {unit:<8} {verdict}");
            println!("{}", line.trim_end());
        }
    }
}

fn hit(is_hit: bool) -> &'static str {
    if is_hit { "hit   " } else { "MISSED" }
}
