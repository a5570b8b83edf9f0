//! Patterns of job ids: `*` stands for any characters, `/` included, and `?` for one.

/// Whether a text looks like a pattern. Takes time in proportion to both at most.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // Where to go on when it does not fit: after the latest star, which then stands for one character more.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(sign) if *sign == '?' || *sign == text[seen] => {
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
    pattern[at..].iter().all(|sign| *sign == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
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
        assert!(!matches(&format!("{}b", "a*".repeat(100)), &"a".repeat(200)), "it ends");
    }
}
