//! A map of a job file that is one type: each key is described once, with the field that it stands for and the codec that
//! reads and writes it. The reader, the writer, the JSON Schema and the reference all follow from that description.
//!
//! To add a key, add the field to the type and a line to the `record!` of its map.

use serde_json::{Map, Value as Json};

use super::{KeySpec, KeyTable, ValueShape};
use crate::read::{Fields, JobReader, NamedNode};

/// How the value of a key is read and written, and its accepted form.
pub(crate) struct Codec<V: 'static> {
    /// The accepted values, for the schema and the reference.
    pub(crate) shape: ValueShape,
    /// Reads a value, or reports what is wrong with it and returns `None`.
    pub(crate) read: fn(&mut JobReader<'_>, NamedNode<'_>) -> Option<V>,
    /// Writes a value so that `read` reads it back.
    pub(crate) write: fn(&V) -> Json,
}

/// A type that is a map in a job file.
pub(crate) trait KeyedRecord: Sized + 'static {
    /// Its keys.
    const TABLE: &'static KeyTable;
    /// How each key of the table is read into the type and written from it, in the same order.
    const FIELDS: &'static [Accessor<Self>];
}

/// How one key is read into a field of `T` and written from it.
pub(crate) struct Accessor<T: 'static> {
    /// Reads a value into the field. If the value is invalid, it reports that, leaves the field as it is and returns
    /// false.
    pub(crate) read: fn(&mut JobReader<'_>, NamedNode<'_>, &mut T) -> bool,
    /// Writes the field of the first value. `None` if it equals the field of the second value, which has all defaults.
    pub(crate) write: fn(&T, &T) -> Option<Json>,
}

impl JobReader<'_> {
    /// Reads a map over a value that has all defaults; `None` if a required key is missing or invalid.
    pub(crate) fn record<T: KeyedRecord>(&mut self, item: NamedNode<'_>, mut defaults: T) -> Option<T> {
        self.record_into(item, &mut defaults)?.then_some(defaults)
    }

    /// Reads every key of a map that is valid into its field, and returns whether all required keys are there and valid;
    /// `None` if it is not a map.
    pub(crate) fn record_into<T: KeyedRecord>(&mut self, item: NamedNode<'_>, record: &mut T) -> Option<bool> {
        let fields = self.fields(item, T::TABLE)?;
        Some(self.fields_into(&fields, record))
    }

    /// Like `record`, or reads the value of the first key if it is given instead of the map.
    pub(crate) fn record_or_first<T: KeyedRecord>(&mut self, item: NamedNode<'_>, mut defaults: T) -> Option<T> {
        let fields = self.fields_or_first(item, T::TABLE)?;
        self.fields_into(&fields, &mut defaults).then_some(defaults)
    }

    fn fields_into<T: KeyedRecord>(&mut self, fields: &Fields<'_>, record: &mut T) -> bool {
        let mut is_complete = true;
        for (key, accessor) in T::TABLE.keys.iter().zip(T::FIELDS) {
            let is_read = fields.get(key.name).is_some_and(|item| (accessor.read)(self, item, record));
            is_complete &= is_read || !key.required;
        }
        is_complete
    }
}

/// Writes a record without the keys that equal `defaults`.
pub(crate) fn write_record<T: KeyedRecord>(record: &T, defaults: &T) -> Json {
    let mut map = Map::new();
    for (key, accessor) in T::TABLE.keys.iter().zip(T::FIELDS) {
        if let Some(value) = (accessor.write)(record, defaults) {
            map.insert(key.name.to_owned(), value);
        }
    }
    Json::Object(map)
}

/// A key of a `record!`. The codec supplies the shape.
pub(super) const fn key(name: &'static str, doc: &'static str) -> KeySpec {
    KeySpec::new(name, ValueShape::Null, doc)
}

/// Describes the keys of a type: `HOW field = codec => key;` where HOW is
///
/// * `value`: written unless it is the default,
/// * `option`: the field is an `Option`, written if it is there,
/// * `always`: always written.
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $type:ty = $name:literal, $noun:literal, $doc:literal;
     $($how:ident $field:ident = $codec:expr => $key:expr;)+) => {
        $(#[$meta])*
        $vis static $table: $crate::keys::KeyTable = $crate::keys::KeyTable {
            name: $name,
            noun: $noun,
            doc: $doc,
            one_of: &[],
            keys: &[$($key.of($codec.shape)),+],
        };

        impl $crate::keys::record::KeyedRecord for $type {
            const TABLE: &'static $crate::keys::KeyTable = &$table;
            const FIELDS: &'static [$crate::keys::record::Accessor<Self>] =
                &[$($crate::keys::record::accessor!($how, $field, $codec)),+];
        }
    };
}

/// The accessor of one field.
macro_rules! accessor {
    (@read $field:ident, $codec:expr, $value:ident => $stored:expr) => {
        |reader, item, record| match ($codec.read)(reader, item) {
            Some($value) => {
                record.$field = $stored;
                true
            }
            None => false,
        }
    };
    (value, $field:ident, $codec:expr) => {
        $crate::keys::record::Accessor {
            read: $crate::keys::record::accessor!(@read $field, $codec, value => value),
            write: |record, defaults| {
                (record.$field != defaults.$field).then(|| ($codec.write)(&record.$field))
            },
        }
    };
    (always, $field:ident, $codec:expr) => {
        $crate::keys::record::Accessor {
            read: $crate::keys::record::accessor!(@read $field, $codec, value => value),
            write: |record, _| Some(($codec.write)(&record.$field)),
        }
    };
    (option, $field:ident, $codec:expr) => {
        $crate::keys::record::Accessor {
            read: $crate::keys::record::accessor!(@read $field, $codec, value => Some(value)),
            write: |record, _| record.$field.as_ref().map($codec.write),
        }
    };
}

pub(crate) use {accessor, record};
