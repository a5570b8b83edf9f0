//! The user and the password of a URL.

use std::fmt;

use cronhold_core::percent;
use cronhold_schedule::TextError;

use super::{MASK, unescape};

/// A user and a password. The password is never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UrlCredentials {
    pub user: Option<String>,
    pub password: Option<String>,
}

impl UrlCredentials {
    /// Splits the part of a URL before the path into the credentials, which end with the last `@`, and the servers.
    pub(super) fn split(authority: &str) -> Result<(Self, &str), TextError> {
        let Some((who, hosts)) = authority.rsplit_once('@') else { return Ok((Self::default(), authority)) };
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (who, None),
        };
        let user = Some(unescape(user)?).filter(|user| !user.is_empty());
        let password = password.map(unescape).transpose()?.filter(|password| !password.is_empty());
        Ok((Self { user, password }, hosts))
    }
}

/// As the part of a URL up to the `@`, with the password masked; empty if there is neither a user nor a password.
impl fmt::Display for UrlCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref().map(|user| percent::encode(user, "{}")).unwrap_or_default();
        match &self.password {
            Some(_) => write!(f, "{user}:{MASK}@"),
            None if user.is_empty() => Ok(()),
            None => write!(f, "{user}@"),
        }
    }
}

impl fmt::Debug for UrlCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlCredentials({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded_and_printed_without_the_password() {
        for (authority, user, password, hosts, printed) in [
            ("h", None, None, "h", ""),
            (":p@h", None, Some("p"), "h", ":***@"),
            ("u:p%3A%2F%25@h", Some("u"), Some("p:/%"), "h", "u:***@"),
            ("u:a:b@h", Some("u"), Some("a:b"), "h", "u:***@"),
            ("u:a@b@h", Some("u"), Some("a@b"), "h", "u:***@"),
            ("u:@h", Some("u"), None, "h", "u@"),
            ("a%3Ab@h,i", Some("a:b"), None, "h,i", "a%3Ab@"),
        ] {
            let (credentials, rest) = UrlCredentials::split(authority).expect(authority);
            let found = (credentials.user.as_deref(), credentials.password.as_deref(), rest);
            assert_eq!(found, (user, password, hosts), "{authority}");
            assert_eq!(credentials.to_string(), printed, "{authority}");
            assert_eq!(format!("{credentials:?}"), format!("UrlCredentials({printed})"), "{authority}");
        }
        assert!(UrlCredentials::split("u:%zz@h").is_err());
    }
}
