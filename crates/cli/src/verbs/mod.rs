//! One file per verb: its arguments, its help, and what it does.

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod keeper;
pub(crate) mod lint;
pub(crate) mod next;
pub(crate) mod store;
pub(crate) mod up;
