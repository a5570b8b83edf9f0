//! Programs: what runs do in the world. A kind of program takes tasks and answers with reports; who carries tasks and
//! reports between it and a node is not its concern, so that it can be tested without one.

mod noop;

pub use noop::Noops;
