//! Schedules: rules that yield instants. A schedule computes the first instant strictly after a given one. It is pure:
//! no clock, no files, no randomness. Time zone data and calendars are parameters.

pub mod calendar;
pub mod civil;
pub mod cron;
mod daily;
pub mod hash;
mod instant;
mod lint;
mod phrase;
mod print;
mod schedule;
mod span;
mod spec;
pub mod text;
mod walk;
mod window;
mod words;
mod zone;

pub use calendar::CalendarExpr;
pub use civil::{Day, TimeOfDay, WallTime};
pub use instant::Instant;
pub use lint::{JobHistory, LintKind, LintWarning, lint};
pub use schedule::{CompileContext, CompileError, Schedule};
pub use span::Span;
pub use spec::{
    DailyInterval, DailyTiming, DayShift, FoldPolicy, GapPolicy, SHIFT_MAX, ScheduleSpec, SpecError, TimeBound, Timing,
    WindowEdge,
};
pub use text::TextError;
pub use zone::{OffsetChange, Zone, ZoneRegistry};
