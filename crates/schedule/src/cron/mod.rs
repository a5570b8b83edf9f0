//! Cron, in two dialects with one internal form: expressions of five to seven fields, and named fields.

mod bits;
mod expression;
mod fields;
mod hashed;
mod item;
mod search;
mod set;

pub(crate) use bits::{CronBits, NTH_LAST, NTH_PER_WEEKDAY, YEAR_MAX, YEAR_MIN, YearSet};
pub use expression::CronExpr;
pub use fields::FieldsExpr;
pub(crate) use search::CronTimes;
pub(crate) use set::{distance, monday_first, runs, values};
