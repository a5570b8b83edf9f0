//! Tables of text in and text out.

mod inputs;
mod names;
mod ports;
mod statuses;
mod units;
mod values;
