//! Percent-encoding of texts in URLs and paths.

use std::fmt::Write;

/// Encodes all bytes except letters, digits, `-._~` and the ASCII characters in `kept`.
pub fn encode(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Decodes a text. `None` if a `%` is not followed by two hexadecimal digits, or the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_kept_characters_stay() {
        assert_eq!(encode("a b/ä%~", "/"), "a%20b/%C3%A4%25~");
        for invalid in ["%", "%2", "%zz", "a%f", "%ff", "%+1"] {
            assert_eq!(decode(invalid), None, "{invalid}");
        }
        assert_eq!(decode("a+b%2fc"), Some("a+b/c".to_owned()));
    }

    proptest! {
        #[test]
        fn encoded_text_decodes_to_itself(text: String) {
            prop_assert_eq!(decode(&encode(&text, "/{}:")), Some(text));
        }
    }
}
