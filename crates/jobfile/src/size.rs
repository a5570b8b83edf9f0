//! Sizes in bytes as users write them: `512MiB`, `2G`, `1.5GB` or a number of bytes. Separate from the reader, because
//! the writer prints them in the same form.

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// Pattern of a size, for the schema.
pub(crate) const PATTERN: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*([Bb]|[KkMmGgTt]([Ii]?[Bb])?)?\s*$";
/// Maximum size, which a kernel accepts as a signed number.
pub(crate) const MOST: u64 = i64::MAX.cast_unsigned();

/// Units, case-insensitive. A bare letter is a power of 1024, as in the tools that limit programs.
const UNITS: [(&str, u64); 14] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];
/// Units in which sizes are printed.
const PRINTED: usize = 4;

/// Decimals that are read; further ones are below a byte in every unit.
const DECIMALS_MAX: usize = 12;

/// Reads a size.
pub fn parse(text: &str) -> Result<u64, TextError> {
    let wrong = || {
        TextError::new(0..text.len(), format!("`{}` is not a size in bytes", shortened(text)))
            .hint("write for example `512MiB`, `2G` or a number of bytes")
    };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    let (whole, decimals) = match number.split_once('.') {
        Some((_, "")) => return Err(wrong()),
        Some((whole, decimals)) => (whole, &decimals[..decimals.len().min(DECIMALS_MAX)]),
        None => (number, ""),
    };
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
    if whole.is_empty() || decimals.contains('.') {
        return Err(wrong());
    }
    let too_large = || TextError::new(0..text.len(), format!("`{}` is too large for a size", shortened(text)));
    let digits: u128 = format!("{whole}{decimals}").parse().map_err(|_| too_large())?;
    let scale = 10_u128.pow(u32::try_from(decimals.len()).expect("few decimals count"));
    let bytes = digits.checked_mul(u128::from(*factor)).ok_or_else(too_large)? / scale;
    u64::try_from(bytes).ok().filter(|bytes| *bytes <= MOST).ok_or_else(too_large)
}

/// The shortest text that is exactly this size.
pub(crate) fn print(bytes: u64) -> String {
    match UNITS[..PRINTED].iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_in_all_units() {
        for (text, bytes, printed) in [
            ("0", 0, "0"),
            ("512", 512, "512"),
            ("1000b", 1000, "1000"),
            ("1K", 1024, "1KiB"),
            ("512MiB", 512 << 20, "512MiB"),
            (" 512 mib ", 512 << 20, "512MiB"),
            ("2G", 2 << 30, "2GiB"),
            ("2gb", 2_000_000_000, "1953125KiB"),
            ("1.5GiB", 3 << 29, "1536MiB"),
            ("0.0000000000001T", 0, "0"),
            ("1.0000000000000000000000000001K", 1024, "1KiB"),
            ("8388607TiB", 8_388_607 << 40, "8388607TiB"),
            ("9223372036854775807", MOST, "9223372036854775807"),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!(print(bytes), printed, "{text}");
        }
        for text in ["", "M", "lots", "-1", "1.", ".5G", "1.2.3", "5 apples", "5MM", "1e9", "1_000", "٣"] {
            assert!(parse(text).is_err_and(|error| error.hint.is_some()), "{text}");
        }
        for text in ["8388608TiB", "9223372036854775808", &"9".repeat(50)] {
            assert!(parse(text).is_err_and(|error| error.message.contains("too large")), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_sizes_read_back(bytes in prop_oneof![0..=MOST, (0..=4096_u64).prop_map(|n| n << 30)]) {
            prop_assert_eq!(parse(&print(bytes)), Ok(bytes));
        }

        #[test]
        fn any_text_is_a_size_or_a_mistake(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
