//! The file of the admin token. The first start creates it; only the daemon's user can read it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cronhold_engine::EntropySource;

use crate::private_file;

/// Minimum length of a token that a user wrote to the file.
const LENGTH_MIN: usize = 32;
/// Maximum length of a token.
const LENGTH_MAX: usize = 512;
/// Permissions of group and others.
const OTHERS: u32 = 0o077;

/// Creates a token of 256 random bits.
pub(super) fn make(entropy: &dyn EntropySource) -> String {
    format!("{:032x}{:032x}", entropy.bits(), entropy.bits())
}

pub(super) fn write(path: &Path, token: &str) -> io::Result<()> {
    private_file::write(path, format!("{token}\n").as_bytes())
}

/// Loads the token, or creates and writes a new one.
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
        return Err(io::Error::other(
            "other users can read it; remove the file, and the next start creates a new token",
        ));
    }
    let token = text.trim();
    if !(LENGTH_MIN..=LENGTH_MAX).contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!(
            "it contains no valid token of {LENGTH_MIN} to {LENGTH_MAX} printable ASCII characters; \
             remove the file, and the next start creates a new token"
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
    fn token_is_created_once_and_private() {
        let scratch = ServerScratchDir::new("token");
        let path = scratch.path().join("token");
        let entropy = FixedEntropy::default();
        let created = kept_or_new(&path, &entropy).expect("created");
        assert_eq!(created.len(), 64);
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, private_file::MODE);
        assert_eq!(kept_or_new(&path, &entropy).expect("kept"), created);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        let error = kept_or_new(&path, &entropy).expect_err("other users can read it");
        assert!(error.to_string().contains("other users can read it"), "{error}");
        for bad in ["", "short", "with blanks with blanks with blanks with"] {
            private_file::write(&path, bad.as_bytes()).expect("written");
            assert!(kept_or_new(&path, &entropy).is_err(), "{bad}");
        }
    }
}
