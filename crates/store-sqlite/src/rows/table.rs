//! The tables of records: their names, their columns in the order in which cells are written and read, and the
//! statements that follow from them.

use std::sync::LazyLock;

use cronhold_core::record::RecordKind;

/// A table with records of one kind; the table of runs also contains spans of skips. Locks have a table of their own
/// layout, and there are no foreign runs in this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordTable {
    Pause,
    Jobs,
    JobStates,
    Cursors,
    Backlogs,
    Identities,
    Runs,
    Nodes,
    Actions,
    Pools,
    Triggers,
}

/// The columns of a table.
#[derive(Debug)]
pub(crate) struct TableLayout {
    pub(crate) name: &'static str,
    /// The first columns; `version` follows them.
    pub(crate) key: &'static [&'static str],
    /// The columns after `version`.
    pub(crate) rest: &'static [&'static str],
    /// Columns of the rest that rarely change for a key. An update that does not set them does not touch their indexes.
    pub(crate) fixed: &'static [&'static str],
}

impl RecordTable {
    /// All tables, in the order of their numbers.
    pub(crate) const ALL: [Self; 11] = [
        Self::Pause,
        Self::Jobs,
        Self::JobStates,
        Self::Cursors,
        Self::Backlogs,
        Self::Identities,
        Self::Runs,
        Self::Nodes,
        Self::Actions,
        Self::Pools,
        Self::Triggers,
    ];

    /// The table for a kind of record.
    pub(crate) const fn of(kind: RecordKind) -> Option<Self> {
        match kind {
            RecordKind::Pause => Some(Self::Pause),
            RecordKind::Job => Some(Self::Jobs),
            RecordKind::JobState => Some(Self::JobStates),
            RecordKind::Cursor => Some(Self::Cursors),
            RecordKind::Backlog => Some(Self::Backlogs),
            RecordKind::Identity => Some(Self::Identities),
            RecordKind::Run | RecordKind::SkipSpan => Some(Self::Runs),
            RecordKind::Node => Some(Self::Nodes),
            RecordKind::Action => Some(Self::Actions),
            RecordKind::Pool => Some(Self::Pools),
            RecordKind::Triggers => Some(Self::Triggers),
            RecordKind::Lock | RecordKind::Foreign => None,
        }
    }

    /// The statement for a whole row by its key, which is the most frequent one.
    pub(crate) fn load(self) -> &'static str {
        static LOADS: LazyLock<Vec<String>> =
            LazyLock::new(|| RecordTable::ALL.iter().map(|table| table.layout().load()).collect());
        &LOADS[self as usize]
    }

    pub(crate) const fn layout(self) -> &'static TableLayout {
        match self {
            Self::Pause => &super::pause::LAYOUT,
            Self::Jobs => &super::job::LAYOUT,
            Self::JobStates => &super::job_state::LAYOUT,
            Self::Cursors => &super::cursor::LAYOUT,
            Self::Backlogs => &super::backlog::LAYOUT,
            Self::Identities => &super::identity::LAYOUT,
            Self::Runs => &super::run::LAYOUT,
            Self::Nodes => &super::node::LAYOUT,
            Self::Actions => &super::action::LAYOUT,
            Self::Pools => &super::pool::LAYOUT,
            Self::Triggers => &super::triggers::LAYOUT,
        }
    }
}

impl TableLayout {
    /// The number of columns.
    pub(crate) const fn width(&self) -> usize {
        self.key.len() + 1 + self.rest.len()
    }

    /// The columns in their order.
    pub(crate) fn columns(&self) -> String {
        let all: Vec<String> = self.all().map(quoted).collect();
        all.join(", ")
    }

    /// `SELECT` of whole rows, without its conditions.
    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.columns(), self.name)
    }

    /// A whole row by its key.
    pub(crate) fn load(&self) -> String {
        format!("{} WHERE {}", self.select(), self.key_matches())
    }

    /// The version of a row by its key.
    pub(crate) fn version(&self) -> String {
        format!("SELECT version FROM {} WHERE {}", self.name, self.key_matches())
    }

    /// Inserts a row that must not exist; changes nothing if it does. The parameters are all cells.
    pub(crate) fn insert(&self) -> String {
        let parameters: Vec<String> = (1..=self.width()).map(|number| format!("?{number}")).collect();
        let (name, columns) = (self.name, self.columns());
        format!("INSERT INTO {name} ({columns}) VALUES ({}) ON CONFLICT DO NOTHING", parameters.join(", "))
    }

    /// Replaces a row if it has the given version. The parameters are all cells and then that version.
    pub(crate) fn update(&self) -> String {
        let all: Vec<String> = self.all().enumerate().skip(self.key.len()).map(equation).collect();
        let (name, version) = (self.name, self.width() + 1);
        format!("UPDATE {name} SET {} WHERE {} AND version = ?{version}", all.join(", "), self.key_matches())
    }

    /// Like `update`, for a row whose fixed columns do not change; changes nothing if they do.
    pub(crate) fn update_fixed(&self) -> String {
        let is_fixed = |(_, column): &(usize, &str)| self.fixed.contains(column);
        let (fixed, others): (Vec<_>, Vec<_>) = self.all().enumerate().skip(self.key.len()).partition(is_fixed);
        let [fixed, others] = [fixed, others].map(|columns| columns.into_iter().map(equation).collect::<Vec<_>>());
        let terms = std::iter::once(self.key_matches()).chain(fixed).collect::<Vec<_>>().join(" AND ");
        format!("UPDATE {} SET {} WHERE {terms} AND version = ?{}", self.name, others.join(", "), self.width() + 1)
    }

    /// Deletes a row if it has the given version. The parameters are its key and then that version.
    pub(crate) fn delete(&self) -> String {
        format!("DELETE FROM {} WHERE {} AND version = ?{}", self.name, self.key_matches(), self.key.len() + 1)
    }

    fn all(&self) -> impl Iterator<Item = &'static str> {
        self.key.iter().copied().chain(["version"]).chain(self.rest.iter().copied())
    }

    fn key_matches(&self) -> String {
        self.key.iter().copied().enumerate().map(equation).collect::<Vec<_>>().join(" AND ")
    }
}

/// A column and its parameter.
fn equation((index, column): (usize, &str)) -> String {
    format!("{} = ?{}", quoted(column), index + 1)
}

/// A column's name in quotes, because some are SQL keywords.
fn quoted(column: &str) -> String {
    if column == "by" { "\"by\"".to_owned() } else { column.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_follow_from_the_layout() {
        let layout = TableLayout { name: "things", key: &["a", "b"], rest: &["c", "by", "d"], fixed: &["c"] };
        for (found, expected) in [
            (layout.load(), "SELECT a, b, version, c, \"by\", d FROM things WHERE a = ?1 AND b = ?2"),
            (layout.version(), "SELECT version FROM things WHERE a = ?1 AND b = ?2"),
            (
                layout.insert(),
                "INSERT INTO things (a, b, version, c, \"by\", d) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            ),
            (
                layout.update(),
                "UPDATE things SET version = ?3, c = ?4, \"by\" = ?5, d = ?6 WHERE a = ?1 AND b = ?2 AND version = ?7",
            ),
            (
                layout.update_fixed(),
                "UPDATE things SET version = ?3, \"by\" = ?5, d = ?6 \
                 WHERE a = ?1 AND b = ?2 AND c = ?4 AND version = ?7",
            ),
            (layout.delete(), "DELETE FROM things WHERE a = ?1 AND b = ?2 AND version = ?3"),
        ] {
            assert_eq!(found, expected);
        }
    }
}
