//! Reads conditions that have rules of their own.

use cronhold_core::job::Requirement;
use cronhold_core::record::PoolName;

use super::reader::{JobReader, NamedNode};
use crate::keys::{SKIP_DUPLICATE_MAP, WINDOW_MAP};
use crate::yaml::YamlValue;

impl JobReader<'_> {
    pub(crate) fn skip_duplicate(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        if matches!(item.node.value, YamlValue::Map(_)) {
            return (SKIP_DUPLICATE_MAP.read)(self, item);
        }
        self.only_true(item)?;
        Some(Requirement::SkipDuplicate { states: Requirement::DUPLICATE_STATES_DEFAULT.to_vec() })
    }

    /// The name of a pool.
    pub(crate) fn pool(&mut self, item: NamedNode<'_>) -> Option<PoolName> {
        let text = self.text(item)?;
        self.parsed(item, PoolName::parse(text))
    }

    pub(crate) fn window(&mut self, item: NamedNode<'_>) -> Option<Requirement> {
        let window = (WINDOW_MAP.read)(self, item)?;
        if let (Requirement::Window { from, until, calendar: None, .. }, Some(node)) = (&window, item.node.get("until"))
            && from == until
        {
            let until = NamedNode { name: "until", node };
            return self.refuse(
                until,
                "the window begins and ends at the same time",
                "leave the condition out, or name a `calendar` for whole days",
            );
        }
        Some(window)
    }
}
