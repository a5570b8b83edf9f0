//! Reads Go's gob, in which castle-cron stores its jobs, as JSON. A stream describes its types before its values, so that
//! fields are known by their names. Only what a Job struct can contain is read: structs, slices, texts, bytes, numbers
//! and times.

use std::collections::BTreeMap;

use cronhold_schedule::Instant;
use serde_json::{Map, Value, json};

use super::ForeignForm;

/// Types inside of types, at most.
const DEPTH_MAX: usize = 16;

/// Elements of a slice and fields of a struct, at most.
const ITEMS_MAX: u64 = 100_000;

/// Seconds from the year 1, from which Go counts, to 1970.
const SECONDS_TO_1970: i64 = 62_135_596_800;

/// Ids of Go's own types.
const BOOL: i64 = 1;
const INT: i64 = 2;
const UINT: i64 = 3;
const BYTES: i64 = 5;
const STRING: i64 = 6;
/// The type that describes types.
const WIRE_TYPE: i64 = 16;

/// A type that a stream describes.
#[derive(Debug, Clone)]
enum GobType {
    Struct(Vec<(String, i64)>),
    Slice(i64),
    /// Bytes that the type itself has encoded, such as a time.
    Encoded,
}

/// The rest of a stream, and the types that it has described.
#[derive(Debug)]
struct GobReader<'b> {
    bytes: &'b [u8],
    types: BTreeMap<i64, GobType>,
}

/// Reads the first value of a stream, a struct, with its fields. Fails with the reason if it is not one.
pub fn decode(bytes: &[u8]) -> Result<ForeignForm, String> {
    let mut reader = GobReader { bytes, types: BTreeMap::new() };
    loop {
        let length = reader.size()?;
        let message = reader.take(length)?;
        let rest = std::mem::replace(&mut reader.bytes, message);
        let id = reader.int()?;
        if id >= 0 {
            return match reader.types.get(&id) {
                Some(GobType::Struct(known)) => reader.object(&known.clone(), 0).map(ForeignForm),
                _ => Err("the value is not a struct".to_owned()),
            };
        }
        let described = reader.described_type()?;
        reader.types.insert(id.checked_neg().ok_or("a type has no id")?, described);
        reader.bytes = rest;
    }
}

impl<'b> GobReader<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or("the data ends too early")?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A number below 128 is one byte. A larger one is the negated count of its bytes, and then its bytes.
    fn uint(&mut self) -> Result<u64, String> {
        let first = self.take(1)?[0];
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let count = usize::from(first.wrapping_neg());
        if count > 8 {
            return Err("a number has too many bytes".to_owned());
        }
        Ok(self.take(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The lowest bit says whether the others are complemented.
    fn int(&mut self) -> Result<i64, String> {
        let bits = self.uint()?;
        let number = i64::try_from(bits >> 1).expect("63 bits fit");
        Ok(if bits & 1 == 1 { !number } else { number })
    }

    fn size(&mut self) -> Result<usize, String> {
        usize::try_from(self.uint()?).map_err(|_| "a size is too large".to_owned())
    }

    fn raw(&mut self) -> Result<&'b [u8], String> {
        let length = self.size()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, String> {
        String::from_utf8(self.raw()?.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
    }

    /// Reads the fields of a struct: each number is the distance to the next field, and 0 ends it.
    fn fields(&mut self, mut read: impl FnMut(&mut Self, u64) -> Result<(), String>) -> Result<(), String> {
        let mut field = 0_u64;
        loop {
            match self.uint()? {
                0 => return Ok(()),
                delta if delta > ITEMS_MAX || field > ITEMS_MAX => {
                    return Err("a struct has too many fields".to_owned());
                }
                delta => field += delta,
            }
            read(self, field)?;
        }
    }

    fn value(&mut self, id: i64, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err("the types are nested too deeply".to_owned());
        }
        match (id, self.types.get(&id).cloned()) {
            (BOOL, _) => Ok(json!(self.uint()? != 0)),
            (INT, _) => Ok(json!(self.int()?)),
            (UINT, _) => Ok(json!(self.uint()?)),
            (STRING, _) => Ok(json!(self.text()?)),
            (BYTES, _) => Ok(json!(self.raw()?)),
            (_, Some(GobType::Encoded)) => Ok(json!(time_text(self.raw()?)?)),
            (_, Some(GobType::Slice(element))) => {
                let count = self.uint()?;
                if count > ITEMS_MAX {
                    return Err("a list has too many elements".to_owned());
                }
                let items: Result<Vec<Value>, String> = (0..count).map(|_| self.value(element, depth + 1)).collect();
                Ok(Value::Array(items?))
            }
            (_, Some(GobType::Struct(known))) => self.object(&known, depth).map(Value::Object),
            (id, None) => Err(format!("a value has the type {id}, which no Job struct has")),
        }
    }

    fn object(&mut self, known: &[(String, i64)], depth: usize) -> Result<Map<String, Value>, String> {
        let mut object = Map::new();
        self.fields(|reader, field| {
            let place = usize::try_from(field - 1).expect("it is limited");
            let (name, id) = known.get(place).ok_or("a struct has a field that its type has not")?;
            let value = reader.value(*id, depth + 1)?;
            object.insert(name.clone(), value);
            Ok(())
        })?;
        Ok(object)
    }

    /// The description of a type: a struct with one field, which says what kind of type it is.
    fn described_type(&mut self) -> Result<GobType, String> {
        let mut found = None;
        self.fields(|reader, kind| {
            found = Some(match kind {
                2 => GobType::Slice(reader.slice_type()?),
                3 => GobType::Struct(reader.struct_type()?),
                5..=7 => {
                    reader.fields(|reader, field| match field {
                        1 => reader.common_type(),
                        _ => Err(unexpected()),
                    })?;
                    GobType::Encoded
                }
                _ => return Err(unexpected()),
            });
            Ok(())
        })?;
        found.ok_or_else(unexpected)
    }

    /// The name and the id of a type. Messages have the id too.
    fn common_type(&mut self) -> Result<(), String> {
        self.fields(|reader, field| match field {
            1 => reader.text().map(drop),
            2 => reader.int().map(drop),
            _ => Err(unexpected()),
        })
    }

    fn slice_type(&mut self) -> Result<i64, String> {
        let mut element = 0;
        self.fields(|reader, field| match field {
            1 => reader.common_type(),
            2 => reader.int().map(|id| element = id),
            _ => Err(unexpected()),
        })?;
        Ok(element)
    }

    fn struct_type(&mut self) -> Result<Vec<(String, i64)>, String> {
        let mut known = Vec::new();
        self.fields(|reader, field| match field {
            1 => reader.common_type(),
            2 => {
                for _ in 0..reader.uint()?.min(ITEMS_MAX) {
                    let (mut name, mut id) = (String::new(), 0);
                    reader.fields(|reader, field| match field {
                        1 => reader.text().map(|text| name = text),
                        2 => reader.int().map(|number| id = number),
                        _ => Err(unexpected()),
                    })?;
                    known.push((name, id));
                }
                Ok(())
            }
            _ => Err(unexpected()),
        })?;
        Ok(known)
    }
}

fn unexpected() -> String {
    format!("a description of a type (type {WIRE_TYPE}) has an unexpected field")
}

/// A time: its version, seconds since the year 1, nanoseconds and the offset of its zone in minutes.
fn time_text(bytes: &[u8]) -> Result<String, String> {
    let wrong = || "a time has an unexpected form".to_owned();
    // Version 2 ends with one more byte, the seconds of the offset. The offset does not change the instant.
    if !matches!((bytes.first(), bytes.len()), (Some(1), 15) | (Some(2), 16)) {
        return Err(wrong());
    }
    let seconds = bytes[1..9].try_into().map(i64::from_be_bytes).map_err(|_| wrong())?;
    let nanos = bytes[9..13].try_into().map(u32::from_be_bytes).map_err(|_| wrong())?;
    let millis =
        seconds.checked_sub(SECONDS_TO_1970).and_then(|seconds| seconds.checked_mul(1_000)).ok_or_else(wrong)?;
    Ok(Instant::from_millis(millis + i64::from(nanos / 1_000_000)).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
        digits.chunks(2).map(byte).collect()
    }

    /// A Job struct, written by hand from gob's specification.
    fn job() -> Vec<u8> {
        bytes(concat!(
            // The struct Job, type 65, with six fields.
            "57 ff81 03 01 01 03 4a6f62 01 ff82 00 01 06",
            "01 04 4e616d65 01 0c 00",
            "01 03 436d64 01 0c 00",
            "01 04 41726773 01 ff84 00",
            "01 08 4861734572726f72 01 02 00",
            "01 0b 4e65787452756e74696d65 01 ff86 00",
            "01 08 5363686564756c65 01 0c 00",
            "00 00",
            // The slice []string, type 66.
            "16 ff83 02 01 01 08 5b5d737472696e67 01 ff84 00 01 0c 00 00",
            // The type Time, type 67, which encodes itself.
            "10 ff85 05 01 01 04 54696d65 01 ff86 00 00 00",
            // The value. HasError is false, and left out.
            "33 ff82 01 06 6261636b7570 01 04 6563686f 01 02 01 61 01 62",
            "02 0f 01 0000000ecfc308b0 00000000 ffff",
            "01 09 302033202a202a202a 00",
        ))
    }

    #[test]
    fn example_of_the_specification_is_read() {
        let point = bytes(
            "1f ff81 03 01 01 05 506f696e74 01 ff82 00 01 02 01 01 58 01 04 00 01 01 59 01 04 00 00 00
             07 ff82 01 2c 01 42 00",
        );
        assert_eq!(decode(&point).map(|form| form.to_value()), Ok(json!({"X": 22, "Y": 33})));
    }

    #[test]
    fn job_struct_is_read_with_its_time() {
        let expected = json!({
            "Name": "backup", "Cmd": "echo", "Args": ["a", "b"], "NextRuntime": "2016-11-20T03:00:00Z",
            "Schedule": "0 3 * * *",
        });
        assert_eq!(decode(&job()).map(|form| form.to_value()), Ok(expected));
    }

    #[test]
    fn truncated_data_is_an_error() {
        let job = job();
        for length in 0..job.len() {
            assert!(decode(&job[..length]).is_err(), "{length}");
        }
        assert!(decode(b"{\"Name\": 1}").is_err());
    }

    proptest! {
        #[test]
        fn damaged_data_does_not_panic(mut place in 0..184_usize, byte: u8, noise: Vec<u8>) {
            let mut damaged = job();
            place %= damaged.len();
            damaged[place] = byte;
            let _ = decode(&damaged);
            let _ = decode(&noise);
        }
    }
}
