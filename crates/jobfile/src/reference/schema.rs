//! The JSON Schema of a job file (draft 2020-12), for editors that complete and check keys. It checks less than the reader:
//! neither cron expressions nor templates.

use serde_json::{Map, Value, json};

use crate::keys::{JOB, KeySpec, KeyTable, TABLES, ValueShape};
use crate::size;

/// Generates the schema.
pub fn schema() -> Value {
    let definitions: Map<String, Value> =
        TABLES.iter().skip(1).map(|table| (table.name.to_owned(), object(table))).collect();
    let mut root = object(&JOB);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Cronhold job");
    root["$defs"] = Value::Object(definitions);
    root
}

fn object(table: &KeyTable) -> Value {
    let mut properties = Map::new();
    for key in table.keys {
        properties.insert(key.name.to_owned(), property(key));
        for alias in key.aliases {
            let mut value = property(key);
            value["description"] = json!(format!("Another name of `{}`.", key.name));
            properties.insert((*alias).to_owned(), value);
        }
    }
    let mut object = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    let mut rules: Vec<Value> =
        table.keys.iter().filter(|key| key.required).map(|key| any_required(std::iter::once(key))).collect();
    if !table.one_of.is_empty() {
        let groups = table.one_of.iter().map(|group| any_required(group.iter().filter_map(|name| table.key(name))));
        rules.push(json!({"oneOf": groups.collect::<Vec<_>>()}));
    }
    if !rules.is_empty() {
        object["allOf"] = json!(rules);
    }
    object
}

/// A rule that one of the names of some keys is present.
fn any_required<'k>(keys: impl Iterator<Item = &'k KeySpec>) -> Value {
    let names = keys.flat_map(|key| std::iter::once(&key.name).chain(key.aliases));
    let mut rules: Vec<Value> = names.map(|name| json!({"required": [name]})).collect();
    if rules.len() == 1 { rules.remove(0) } else { json!({"anyOf": rules}) }
}

fn property(key: &KeySpec) -> Value {
    let mut value = shape(&key.shape);
    let default = key.default.map(|default| format!(" Default: {default}.")).unwrap_or_default();
    value["description"] = json!(format!("{}{default}", key.meaning()));
    value
}

fn shape(shape_: &ValueShape) -> Value {
    match shape_ {
        ValueShape::Text | ValueShape::Moment | ValueShape::Expression => json!({"type": ["string", "number"]}),
        ValueShape::Value | ValueShape::Template => json!({"type": ["string", "number", "boolean"]}),
        ValueShape::Bool => json!({"type": "boolean"}),
        ValueShape::True => json!({"const": true}),
        ValueShape::Null => json!({"type": "null"}),
        ValueShape::Whole { least, most } => json!({"type": "integer", "minimum": least, "maximum": most}),
        ValueShape::Number { least } => json!({"type": "number", "minimum": least}),
        ValueShape::Span => json!({"anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9.]+\s*[A-Za-zµ]*(\s*[0-9.]+\s*[A-Za-zµ]+)*\s*$"},
        ]}),
        ValueShape::Size { least } => json!({"anyOf": [
            {"type": "integer", "minimum": least, "maximum": size::MOST},
            {"type": "string", "pattern": size::PATTERN},
        ]}),
        ValueShape::Time => json!({"type": "string", "pattern": r"^[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?$"}),
        ValueShape::Pattern { regex, .. } => json!({"type": "string", "pattern": regex}),
        ValueShape::Word(words) => json!({"enum": words}),
        ValueShape::List(items) => json!({"type": "array", "items": shape(items)}),
        ValueShape::Some(items) => json!({"type": "array", "items": shape(items), "minItems": 1}),
        ValueShape::Map(table) => json!({"$ref": format!("#/$defs/{}", table.name)}),
        ValueShape::Names { regex: "", value } => json!({"type": "object", "additionalProperties": shape(value)}),
        ValueShape::Names { regex, value } => {
            json!({"type": "object", "propertyNames": {"pattern": regex}, "additionalProperties": shape(value)})
        }
        ValueShape::Either(shapes) => json!({"anyOf": shapes.iter().map(shape).collect::<Vec<_>>()}),
    }
}
