//! The part of a port that a step has loaded, and how much of it the step has read.

use std::collections::VecDeque;

use cronhold_core::task::{PortAddress, PortItem, PortTarget, TaskAct};
use cronhold_store::tasks::PortWindow;

/// A port that a step reads.
#[derive(Debug)]
pub(crate) struct PortBuffer {
    /// The position of the first item, before the step has read any.
    first: u64,
    /// Items that the step has read.
    taken: u64,
    /// Items that are loaded and not read.
    items: VecDeque<PortItem>,
    /// Items that the port had when the step began.
    size: u64,
    pub(crate) default: Option<PortItem>,
}

impl PortBuffer {
    pub(super) fn new(window: PortWindow) -> Self {
        let PortWindow { size, position, items, default, .. } = window;
        Self { first: position, taken: 0, items: items.into(), size, default }
    }

    /// A port that the template creates when it is used.
    pub(super) const fn on_demand(default: Option<PortItem>) -> Self {
        Self { first: 0, taken: 0, items: VecDeque::new(), size: 0, default }
    }

    /// Items that are left to read.
    pub(crate) const fn left(&self) -> u64 {
        self.size - self.taken
    }

    /// The position of the first item that the port had when the step began, and how many it had.
    pub(crate) const fn range(&self) -> (u64, u64) {
        (self.first, self.size)
    }

    /// The position from which items have to be loaded before the next can be read; `None` if it is loaded or there is
    /// none.
    pub(super) fn missing_from(&self) -> Option<u64> {
        (self.items.is_empty() && self.left() > 0).then_some(self.first + self.taken)
    }

    /// Adds items that were loaded from the position that was missing. Items that came after the step began are left
    /// to the next one.
    pub(super) fn add(&mut self, items: Vec<PortItem>) {
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        self.items.extend(items.into_iter().take(left));
    }

    /// Reads the next item that is loaded.
    pub(super) fn take(&mut self) -> Option<PortItem> {
        let item = self.items.pop_front()?;
        self.taken += 1;
        Some(item)
    }

    /// The act that takes what the step has read.
    pub(super) fn to_act(&self, port: &PortAddress) -> Option<TaskAct> {
        let PortAddress { task, direction, port } = port.clone();
        let target = PortTarget::new(task, direction, port);
        (self.taken > 0).then_some(TaskAct::Take { port: target, position: self.first, count: self.taken })
    }
}
