//! Patterns of job ids: `*` matches any characters, `/` included, and `?` matches one character.

/// Whether a text matches a pattern. Takes at most time proportional to the product of both lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // Where to continue after a mismatch: after the latest star, which then matches one more character.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((place, upto)) => {
                    star = Some((place, upto + 1));
                    at = place + 1;
                    seen = upto + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_ids() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*/b", "a/b", true),
            ("*/b", "b", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*c", "abbcbc", true),
            ("*b*c", "abbcb", false),
            ("ä?", "äö", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches(&format!("{}b", "a*".repeat(100)), &"a".repeat(200)), "takes no exponential time");
    }
}
