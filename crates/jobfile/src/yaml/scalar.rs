//! Which plain texts are numbers. The rules are stricter than YAML's, whose result often surprises users.

/// The integer value of a plain text: decimal without leading zeros, `0o17` or `0x1f`.
///
/// `017` is 17 in YAML 1.2 and 15 in YAML 1.1; because the intent is unclear, it is read as a text.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix)?;
        let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        if valid { i64::from_str_radix(digits, radix).ok() } else { None }
    };
    if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return Some(number);
    }
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if !plain || digits.is_empty() {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    Some(if negative { -number } else { number })
}

/// The value of a plain text with a point or an exponent. Infinity and `.nan` are texts.
pub(crate) fn float(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+']);
    let shaped = text.len() - digits.len() <= 1
        && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(['.', 'e', 'E'])
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !shaped {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_whole_numbers_are_recognised() {
        for (text, expected) in [
            ("0", Some(0)),
            ("17", Some(17)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("0o22", Some(18)),
            ("0x1f", Some(31)),
            ("017", None),
            ("10:30", None),
            ("1_000", None),
            ("0o", None),
            ("0o-1", None),
            ("-", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn plain_floats_are_recognised() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("-2e3", Some(-2000.0)),
            ("1", None),
            (".inf", None),
            ("1.2.3", None),
        ] {
            assert_eq!(float(text), expected, "{text}");
        }
    }
}
