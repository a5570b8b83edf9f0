//! Sends mails by SMTP. The server is a setting of the daemon.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use cronhold_core::percent;
use cronhold_core::record::ActionId;
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};

use crate::host_env::read_secret;

/// How long each step of the conversation with the server may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
const SMTP_PORT: u16 = 25;
const SMTPS_PORT: u16 = 465;

/// The mail server and the sender of mails. The default has neither, and mails fail.
#[derive(Debug, Clone, Default)]
pub struct MailSettings {
    server: Option<MailServer>,
    from: Option<Mailbox>,
}

/// A mail server.
#[derive(Clone, PartialEq, Eq)]
struct MailServer {
    /// Whether the connection is encrypted from its start, rather than by STARTTLS.
    is_encrypted: bool,
    host: String,
    port: u16,
    login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
struct Login {
    user: String,
    password: PasswordSource,
}

#[derive(Clone, PartialEq, Eq)]
enum PasswordSource {
    Text(String),
    /// A file that is read for each mail.
    File(String),
}

/// Why a setting for mails is invalid. The message does not contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailSettingsError {
    #[error("the URL does not begin with smtp:// or smtps://")]
    Scheme,
    #[error("the URL does not name a host")]
    Host,
    #[error("`{0}` is not a port")]
    Port(String),
    #[error("the user or the password is not valid percent-encoding")]
    Encoding,
    #[error("`{0}` is not a setting of a mail server; expected password_file=PATH")]
    Setting(String),
    #[error("a password without a user")]
    User,
    #[error("`{0}` is not an address")]
    From(String),
}

impl MailSettings {
    /// Settings from the URL of a server and the address of the sender.
    pub fn parse(url: Option<&str>, from: Option<&str>) -> Result<Self, MailSettingsError> {
        let mailbox = |text: &str| text.parse::<Mailbox>().map_err(|_| MailSettingsError::From(text.to_owned()));
        Ok(Self { server: url.map(MailServer::parse).transpose()?, from: from.map(mailbox).transpose()? })
    }

    /// Sends a mail. The id of the action becomes the id of the message, by which duplicates can be recognised.
    pub(super) fn send(&self, id: ActionId, to: &[String], subject: &str, body: &str) -> Result<(), String> {
        let server = self.server.as_ref().ok_or("no mail server is configured; set CRONHOLD_SMTP")?;
        let from = self.from.clone().ok_or("mails have no sender; set CRONHOLD_MAIL_FROM")?;
        let domain = from.email.domain().to_owned();
        let mut message = Message::builder()
            .message_id(Some(format!("<{id}@{domain}>")))
            .from(from)
            .subject(subject)
            .header(ContentType::TEXT_PLAIN);
        for address in to {
            let mailbox: Mailbox = address.parse().map_err(|_| format!("`{address}` is not an address"))?;
            message = message.to(mailbox);
        }
        let message = message.body(body.to_owned()).map_err(|error| error.to_string())?;
        server.transport()?.send(&message).map(drop).map_err(|error| format!("{server}: {error}"))
    }
}

impl MailServer {
    /// `smtp://[user[:password]@]host[:port][?password_file=PATH]`, or `smtps://`.
    fn parse(url: &str) -> Result<Self, MailSettingsError> {
        let (is_encrypted, rest) = match url.split_once("://") {
            Some(("smtp", rest)) => (false, rest),
            Some(("smtps", rest)) => (true, rest),
            _ => return Err(MailSettingsError::Scheme),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, address) = rest.rsplit_once('@').map_or((None, rest), |(login, address)| (Some(login), address));
        let (host, port) = match address.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (address, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(MailSettingsError::Host);
        }
        let default = if is_encrypted { SMTPS_PORT } else { SMTP_PORT };
        let port =
            port.map_or(Ok(default), |text| text.parse().map_err(|_| MailSettingsError::Port(text.to_owned())))?;
        Ok(Self { is_encrypted, host: host.to_owned(), port, login: Login::parse(login, query)? })
    }

    fn transport(&self) -> Result<SmtpTransport, String> {
        let tls = TlsParameters::builder(self.host.clone());
        let tls = match (self.is_encrypted, &self.login) {
            // Without a login, a connection without encryption would be accepted too, so a certificate proves nothing.
            (false, None) => {
                Tls::Opportunistic(tls.dangerous_accept_invalid_certs(true).build().map_err(|error| error.to_string())?)
            }
            // A password is never sent without encryption.
            (false, Some(_)) => Tls::Required(tls.build().map_err(|error| error.to_string())?),
            (true, _) => Tls::Wrapper(tls.build().map_err(|error| error.to_string())?),
        };
        let mut transport =
            SmtpTransport::builder_dangerous(&self.host).port(self.port).tls(tls).timeout(Some(STEP_TIMEOUT));
        if let Some(Login { user, password }) = &self.login {
            let password = match password {
                PasswordSource::Text(text) => text.clone(),
                PasswordSource::File(path) => read_secret(Path::new(path))
                    .map_err(|error| format!("cannot read the password of the mail server from {path}: {error}"))?,
            };
            transport = transport.credentials(Credentials::new(user.clone(), password));
        }
        Ok(transport.build())
    }
}

impl Login {
    fn parse(login: Option<&str>, query: &str) -> Result<Option<Self>, MailSettingsError> {
        let decode = |text: &str| percent::decode(text).ok_or(MailSettingsError::Encoding);
        let (user, text) = match login {
            Some(login) => {
                let (user, text) = login.split_once(':').map_or((login, None), |(user, text)| (user, Some(text)));
                (Some(decode(user)?), text.map(decode).transpose()?)
            }
            None => (None, None),
        };
        let mut password = text.map(PasswordSource::Text);
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("password_file", path)) => password = Some(PasswordSource::File(decode(path)?)),
                _ => {
                    let name = setting.split('=').next().unwrap_or_default();
                    return Err(MailSettingsError::Setting(name.to_owned()));
                }
            }
        }
        match (user, password) {
            (Some(user), Some(password)) => Ok(Some(Self { user, password })),
            (Some(user), None) => Ok(Some(Self { user, password: PasswordSource::Text(String::new()) })),
            (None, Some(_)) => Err(MailSettingsError::User),
            (None, None) => Ok(None),
        }
    }
}

/// Without the login.
impl fmt::Display for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "smtps" } else { "smtp" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_url_has_host_port_and_login() {
        let text = |text: &str| Some(PasswordSource::Text(text.to_owned()));
        for (url, shown, user, password) in [
            ("smtp://mail.example.org", "smtp://mail.example.org:25", None, None),
            ("smtps://mail.example.org/", "smtps://mail.example.org:465", None, None),
            ("smtp://anna:pa%3Ass%40word@mail:587", "smtp://mail:587", Some("anna"), text("pa:ss@word")),
            ("smtp://a%40b.org:x@[::1]:2525", "smtp://::1:2525", Some("a@b.org"), text("x")),
            (
                "smtps://anna@mail?password_file=/run/password",
                "smtps://mail:465",
                Some("anna"),
                Some(PasswordSource::File("/run/password".to_owned())),
            ),
        ] {
            let server = MailServer::parse(url).expect(url);
            assert_eq!(format!("{server} {server:?}"), format!("{shown} {shown}"));
            let login = server.login.map(|login| (login.user, login.password));
            assert!(login == user.map(str::to_owned).zip(password), "{url}");
        }
    }

    #[test]
    fn invalid_settings_are_rejected_without_the_password() {
        for (url, expected) in [
            ("mail.example.org", MailSettingsError::Scheme),
            ("http://mail", MailSettingsError::Scheme),
            ("smtp://", MailSettingsError::Host),
            ("smtp://anna:secret@:25", MailSettingsError::Host),
            ("smtp://mail:x", MailSettingsError::Port("x".to_owned())),
            ("smtp://anna:%zz@mail", MailSettingsError::Encoding),
            ("smtp://anna@mail?password=secret", MailSettingsError::Setting("password".to_owned())),
            ("smtp://mail?password_file=/x", MailSettingsError::User),
        ] {
            let error = MailSettings::parse(Some(url), None).expect_err(url);
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert_eq!(
            MailSettings::parse(None, Some("nobody")).expect_err("not an address"),
            MailSettingsError::From("nobody".to_owned())
        );
        assert!(MailSettings::parse(None, Some("Cron Hold <cron@example.org>")).is_ok());
    }
}
