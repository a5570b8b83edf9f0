//! Maps of a job file that are one variant of an enum, and maps in which one key selects the variant. As in `record`,
//! each key is described once, and the compiler reports a field or a variant that has no line.
//!
//! To add a key to a variant, add the field to its type and a line to its `variant!`. To add a variant, add it to the
//! enum and a line to the `variants!` of its map.

/// Describes the keys of one variant of an enum, or of a type without a default, as a table and as a codec:
/// `HOW field = codec, default => key;` where HOW is
///
/// * `required`: the key must be present,
/// * `option`: the field is an `Option`, written if it is there,
/// * `value`: written unless it is the default,
/// * `always`: always written; the key may be absent.
///
/// A default that is not named is the default of the field's type. With `or SHAPE`, the value of the first key may be
/// written instead of the map.
macro_rules! variant {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $of:ident $(::$variant:ident)?
        = $name:literal, $noun:literal, $doc:literal;
     const $map:ident: $type:ty $(, or $short:expr)?;
     $($how:ident $field:ident = $codec:expr $(, $default:expr)? => $key:expr;)+) => {
        $(#[$meta])*
        $vis static $table: $crate::keys::KeyTable = $crate::keys::KeyTable {
            name: $name,
            noun: $noun,
            doc: $doc,
            one_of: &[],
            keys: &[$($crate::keys::variant::field!(@key $how, $key.of($codec.shape))),+],
        };

        pub(crate) const $map: $crate::keys::record::Codec<$type> = $crate::keys::record::Codec {
            shape: $crate::keys::variant::variant!(@shape $table $(, $short)?),
            read: |reader, item| {
                let fields = $crate::keys::variant::variant!(@open reader, item, $table $(, $short)?)?;
                $(let $field = $crate::keys::variant::field!(@read reader, fields, $codec, $key);)+
                Some($of $(::$variant)? {
                    $($field: $crate::keys::variant::field!(@value $how, $field $(, $default)?)),+
                })
            },
            write: |value| match value {
                $of $(::$variant)? { $($field),+ } => {
                    let mut map = serde_json::Map::new();
                    $($crate::keys::variant::field!(@write map, $how, $field, $codec, $key $(, $default)?);)+
                    serde_json::Value::Object(map)
                }
                $(_ => unreachable!(concat!("the value is not ", stringify!($variant))),)?
            },
        };
    };
    (@shape $table:ident) => { $crate::keys::ValueShape::Map(&$table) };
    (@shape $table:ident, $short:expr) => {
        $crate::keys::ValueShape::Either(&[$short, $crate::keys::ValueShape::Map(&$table)])
    };
    (@open $reader:ident, $item:ident, $table:ident) => { $reader.fields($item, &$table) };
    (@open $reader:ident, $item:ident, $table:ident, $short:expr) => { $reader.fields_or_first($item, &$table) };
}

/// Describes a map in which exactly one key selects the variant of an enum: `Variant(value) = codec => key;` where the
/// codec is of the value, boxed or not, or `Variant {..} = codec => key;` where the codec is of the enum, such as that
/// of a `variant!`. With `Outer { field: Enum }` as the type, other fields of `Outer` follow in braces; their keys are
/// described as in `variant!` and can stand beside every variant. The codec is a static, because a map can be a value
/// inside of itself.
macro_rules! variants {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $enum:ident = $name:literal, $noun:literal, $doc:literal;
     static $map:ident;
     $($variant:ident $form:tt = $codec:expr => $key:expr;)+) => {
        $(#[$meta])*
        $vis static $table: $crate::keys::KeyTable = $crate::keys::KeyTable {
            name: $name,
            noun: $noun,
            doc: $doc,
            one_of: &[$(&[$key.name]),+],
            keys: &[$($key.of($codec.shape)),+],
        };

        pub(crate) static $map: $crate::keys::record::Codec<$enum> = $crate::keys::record::Codec {
            shape: $crate::keys::ValueShape::Map(&$table),
            read: |reader, item| {
                let fields = reader.fields(item, &$table)?;
                $crate::keys::variant::variants!(@read reader, fields, $enum, $($variant $form = $codec => $key;)+)
            },
            write: |value| {
                let (key, value) =
                    $crate::keys::variant::variants!(@write value, $enum, $($variant $form = $codec => $key;)+);
                serde_json::Value::Object(serde_json::Map::from_iter([(key.to_owned(), value)]))
            },
        };
    };
    ($(#[$meta:meta])* $vis:vis static $table:ident: $outer:ident { $inner:ident: $enum:ident }
        = $name:literal, $noun:literal, $doc:literal;
     static $map:ident;
     $($variant:ident $form:tt = $codec:expr => $key:expr;)+
     { $($how:ident $field:ident = $common:expr $(, $default:expr)? => $common_key:expr;)+ }) => {
        $(#[$meta])*
        $vis static $table: $crate::keys::KeyTable = $crate::keys::KeyTable {
            name: $name,
            noun: $noun,
            doc: $doc,
            one_of: &[$(&[$key.name]),+],
            keys: &[
                $($key.of($codec.shape),)+
                $($crate::keys::variant::field!(@key $how, $common_key.of($common.shape))),+
            ],
        };

        pub(crate) static $map: $crate::keys::record::Codec<$outer> = $crate::keys::record::Codec {
            shape: $crate::keys::ValueShape::Map(&$table),
            read: |reader, item| {
                let fields = reader.fields(item, &$table)?;
                let $inner =
                    $crate::keys::variant::variants!(@read reader, fields, $enum, $($variant $form = $codec => $key;)+);
                $(let $field = $crate::keys::variant::field!(@read reader, fields, $common, $common_key);)+
                Some($outer {
                    $inner: $inner?,
                    $($field: $crate::keys::variant::field!(@value $how, $field $(, $default)?)),+
                })
            },
            write: |value| {
                let $outer { $inner, $($field),+ } = value;
                let (key, value) =
                    $crate::keys::variant::variants!(@write $inner, $enum, $($variant $form = $codec => $key;)+);
                let mut map = serde_json::Map::from_iter([(key.to_owned(), value)]);
                $($crate::keys::variant::field!(@write map, $how, $field, $common, $common_key $(, $default)?);)+
                serde_json::Value::Object(map)
            },
        };
    };
    (@read $reader:ident, $fields:ident, $enum:ident, $($variant:ident $form:tt = $codec:expr => $key:expr;)+) => {
        $fields.kind().and_then(|(kind, item)| {
            $(if kind == const { $key.name } {
                let value = ($codec.read)($reader, item);
                $crate::keys::variant::variants!(@wrap value, $enum, $variant $form)
            } else)+ {
                None
            }
        })
    };
    (@wrap $read:ident, $enum:ident, $variant:ident {..}) => { $read };
    (@wrap $read:ident, $enum:ident, $variant:ident ($value:ident)) => {
        $read.map(|$value| $enum::$variant($value.into()))
    };
    (@wrap $read:ident, $enum:ident, $variant:ident ($inner:ident::$inner_variant:ident($value:ident))) => {
        $read.map(|$value| $enum::$variant($inner::$inner_variant($value.into())))
    };
    (@write $whole:ident, $enum:ident, $($variant:ident $form:tt = $codec:expr => $key:expr;)+) => {
        match $whole {
            $($enum::$variant $form => {
                let value = $crate::keys::variant::variants!(@part $whole, $form);
                (const { $key.name }, ($codec.write)(value))
            })+
        }
    };
    (@part $whole:ident, {..}) => { $whole };
    (@part $whole:ident, ($value:ident)) => { $value };
    (@part $whole:ident, ($inner:ident::$inner_variant:ident($value:ident))) => { $value };
}

/// One key of a `variant!`, or one that stands beside the variants of a `variants!`.
macro_rules! field {
    (@key required, $key:expr) => { $key.required() };
    (@key $how:ident, $key:expr) => { $key };
    (@read $reader:ident, $fields:ident, $codec:expr, $key:expr) => {
        $fields.get(const { $key.name }).and_then(|item| ($codec.read)($reader, item))
    };
    (@value required, $field:ident) => { $field? };
    (@value option, $field:ident) => { $field };
    (@value $how:ident, $field:ident) => { $field.unwrap_or_default() };
    (@value $how:ident, $field:ident, $default:expr) => { $field.unwrap_or_else(|| $default) };
    (@write $map:ident, option, $field:ident, $codec:expr, $key:expr) => {
        if let Some(value) = $field {
            $map.insert(const { $key.name }.to_owned(), ($codec.write)(value));
        }
    };
    (@write $map:ident, value, $field:ident, $codec:expr, $key:expr) => {
        $crate::keys::variant::field!(@write $map, value, $field, $codec, $key, Default::default())
    };
    (@write $map:ident, value, $field:ident, $codec:expr, $key:expr, $default:expr) => {
        if !$crate::keys::variant::is_equal($field, &$default) {
            $map.insert(const { $key.name }.to_owned(), ($codec.write)($field));
        }
    };
    (@write $map:ident, $how:ident, $field:ident, $codec:expr, $key:expr) => {
        $map.insert(const { $key.name }.to_owned(), ($codec.write)($field));
    };
}

/// Comparison with a default whose type follows from the field.
pub(super) fn is_equal<T: PartialEq>(value: &T, default: &T) -> bool {
    value == default
}

pub(crate) use {field, variant, variants};
