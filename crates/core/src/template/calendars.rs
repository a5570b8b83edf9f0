//! Calendars inside templates: `calendar('us-business - freeze').before(date)`.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::CalendarExpr;
use cronhold_schedule::calendar::Calendar;
use minijinja::value::Object;
use minijinja::{Error, State, Value};

use super::dates::{day_of, day_value};
use super::environment::{refused, world};

/// `calendar('name')`: a calendar, or an expression of calendars.
pub(super) fn calendar(state: &State<'_, '_>, text: &str) -> Result<Value, Error> {
    let world = world(state)?;
    let days = CalendarExpr::parse(text).and_then(|expression| world.calendars.compile(&expression));
    let days = days.map_err(|error| refused(error.to_string()))?;
    Ok(Value::from_object(CalendarValue { text: text.to_owned(), days }))
}

/// A calendar as a value of a template.
struct CalendarValue {
    text: String,
    days: Calendar,
}

impl fmt::Debug for CalendarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Object for CalendarValue {
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        let wanted = match method {
            "contains" | "before" | "after" => 1,
            "shift" => 2,
            _ => {
                let message = format!("a calendar has `contains`, `before`, `after` and `shift`, not `{method}`");
                return Err(refused(message));
            }
        };
        let (Some(day), true) = (args.first(), args.len() == wanted) else {
            let expected = if wanted == 1 { "a date" } else { "a date and a number of days" };
            return Err(refused(format!("`{method}` of a calendar takes {expected}")));
        };
        let day = day_of(day)?;
        let found = match method {
            "contains" => return Ok(Value::from(self.days.contains(day))),
            "before" => self.days.prev(day),
            "after" => self.days.next(day),
            _ => self
                .days
                .shift(day, i32::try_from(args[1].clone()).map_err(|_| refused("a shift must be a whole number"))?),
        };
        found.map(day_value).ok_or_else(|| refused(format!("the calendar `{}` has no such day near {day}", self.text)))
    }
}
