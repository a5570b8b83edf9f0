//! What a template is bound to: values by name, and the zones and calendars that its functions use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_schedule::calendar::CalendarSet;
use minijinja::Value;
use minijinja::value::Object;
use serde_json::Value as Json;

/// Key under which functions find their context. It contains a space, so no template can use it as a name.
pub(super) const WORLD: &str = "the world";

/// Values by name with zones and calendars. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bindings {
    scope: Arc<BoundScope>,
}

/// A value that a name is bound to. Args are texts; responses of remote services can be any JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundValue {
    Null,
    Bool(bool),
    Number(i64),
    /// Any other number.
    Float(f64),
    Text(String),
    /// Values in order.
    List(Vec<BoundValue>),
    /// Values by name.
    Map(BTreeMap<String, BoundValue>),
}

impl Bindings {
    /// Bindings without names, with these zones and calendars for functions.
    pub fn new(zones: Arc<ZoneRegistry>, calendars: Arc<CalendarSet>) -> Self {
        let world = Value::from_object(FunctionContext { zones, calendars });
        Self { scope: Arc::new(BoundScope { values: BTreeMap::new(), bytes: 0, world }) }
    }

    /// The same bindings with one more name. If the name is already bound, the new value replaces the old one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<BoundValue>) -> Self {
        let value = value.into();
        let scope = Arc::make_mut(&mut self.scope);
        let bytes = value.size();
        let before = scope.values.insert(name.into(), (bytes, value.into_value()));
        scope.bytes = scope.bytes.saturating_sub(before.map_or(0, |(bytes, _)| bytes)).saturating_add(bytes);
        self
    }

    /// Names that are bound.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scope.values.keys().map(String::as_str)
    }

    /// Whether a name is bound.
    pub fn has(&self, name: &str) -> bool {
        self.scope.values.contains_key(name)
    }

    /// The size of all values in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.scope.bytes
    }

    pub(super) fn value(&self) -> Value {
        Value::from_dyn_object(Arc::clone(&self.scope))
    }
}

impl BoundValue {
    /// A JSON value as templates see it.
    pub fn of_json(value: Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Self::Number(whole),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text),
            Json::Array(items) => Self::List(items.into_iter().map(Self::of_json).collect()),
            Json::Object(entries) => {
                Self::Map(entries.into_iter().map(|(name, value)| (name, Self::of_json(value))).collect())
            }
        }
    }

    /// The approximate size in bytes when the value is printed.
    fn size(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Float(_) => 24,
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(|item| item.size() + 2).sum(),
            Self::Map(entries) => entries.iter().map(|(name, value)| name.len() + value.size() + 6).sum(),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Null => Value::from(()),
            Self::Bool(value) => Value::from(value),
            Self::Number(value) => Value::from(value),
            Self::Float(value) => Value::from(value),
            Self::Text(text) => Value::from(text),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Map(entries) => {
                Value::from_pairs(entries.into_iter().map(|(name, value)| (name, value.into_value())))
            }
        }
    }
}

impl From<&str> for BoundValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for BoundValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for BoundValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for BoundValue {
    fn from(number: u32) -> Self {
        Self::Number(i64::from(number))
    }
}

/// The object in which the engine looks up names.
#[derive(Debug, Clone)]
struct BoundScope {
    /// Each value with its size in bytes.
    values: BTreeMap<String, (usize, Value)>,
    bytes: usize,
    world: Value,
}

impl Object for BoundScope {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == WORLD { Some(self.world.clone()) } else { self.values.get(key).map(|(_, value)| value.clone()) }
    }
}

/// Zones and calendars for functions.
pub(super) struct FunctionContext {
    pub(super) zones: Arc<ZoneRegistry>,
    pub(super) calendars: Arc<CalendarSet>,
}

impl fmt::Debug for FunctionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FunctionContext")
    }
}

impl Object for FunctionContext {}
