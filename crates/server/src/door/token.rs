//! The file of the admin token: made at the first start, and readable for nobody else.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cronhold_engine::EntropySource;

use crate::private_file;

/// Shortest token that someone may put there.
const LENGTH_MIN: usize = 32;
/// Longest one.
const LENGTH_MAX: usize = 512;
/// Modes that let others in.
const OTHERS: u32 = 0o077;

/// A new token: 256 random bits.
pub(super) fn make(entropy: &dyn EntropySource) -> String {
    format!("{:032x}{:032x}", entropy.bits(), entropy.bits())
}

/// Writes a token.
pub(super) fn write(path: &Path, token: &str) -> io::Result<()> {
    private_file::write(path, format!("{token}\n").as_bytes())
}

/// The token that is there, or a new one that stays there.
pub(super) fn kept_or_new(path: &Path, entropy: &dyn EntropySource) -> io::Result<String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = make(entropy);
            write(path, &token)?;
            return Ok(token);
        }
        Err(error) => return Err(error),
    };
    if fs::metadata(path)?.permissions().mode() & OTHERS != 0 {
        return Err(io::Error::other("others may read it; remove the file, and a new token is made at the next start"));
    }
    let token = text.trim();
    if !(LENGTH_MIN..=LENGTH_MAX).contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!(
            "it holds no token, which has {LENGTH_MIN} to {LENGTH_MAX} letters and digits; \
             remove the file, and one is made at the next start"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedEntropy, ServerScratchDir};

    #[test]
    fn is_made_once_and_only_ours() {
        let scratch = ServerScratchDir::new("token");
        let path = scratch.path().join("token");
        let dice = FixedEntropy::default();
        let made = kept_or_new(&path, &dice).expect("made");
        assert_eq!(made.len(), 64);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, private_file::MODE);
        assert_eq!(kept_or_new(&path, &dice).expect("kept"), made);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        let error = kept_or_new(&path, &dice).expect_err("others may read it");
        assert!(error.to_string().contains("others may read it"), "{error}");
        for bad in ["", "short", "with blanks with blanks with blanks with"] {
            private_file::write(&path, bad.as_bytes()).expect("written");
            assert!(kept_or_new(&path, &dice).is_err(), "{bad}");
        }
    }
}
