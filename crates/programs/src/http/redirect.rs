//! Where a redirect leads, and which request is sent there.

use super::HttpRequest;

/// Turns a request into the one that follows a redirect with this status to a location. `None` if the status is not one
/// of a redirect, or the location does not name an HTTP server: then the redirect itself is the response.
///
/// After 301, 302 and 303 the request becomes a `GET` without a body, as in every browser; after 307 and 308 it is sent as
/// it is. Another server gets neither secrets nor credentials.
pub(super) fn follow(request: &HttpRequest, status: u16, location: &str) -> Option<HttpRequest> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let url = join(&request.url, location)?;
    let mut next = HttpRequest { url, ..request.clone() };
    let keeps_method = matches!(status, 307 | 308) || matches!(&request.method[..], "GET" | "HEAD");
    if !keeps_method {
        next.method = "GET".to_owned();
        next.body.clear();
        next.headers.retain(|(name, _)| !["content-type", "content-length"].contains(&&*name.to_ascii_lowercase()));
    }
    if server(&next.url) != server(&request.url) {
        let is_kept = |name: &str| {
            !request.secrets.iter().any(|secret| secret == name)
                && !["authorization", "cookie", "proxy-authorization"].contains(&&*name.to_ascii_lowercase())
        };
        next.headers.retain(|(name, _)| is_kept(name));
    }
    Some(next)
}

/// Scheme and server of a URL.
fn server(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    url[..end].to_ascii_lowercase()
}

/// Resolves a location against the URL that it came from.
fn join(base: &str, location: &str) -> Option<String> {
    let location = location.trim();
    let location = location.split('#').next().unwrap_or_default();
    if location.contains(|sign: char| sign.is_control() || sign == ' ') {
        return None;
    }
    if let Some((scheme, _)) = location.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?'])) {
        let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        return is_http.then(|| location.to_owned());
    }
    let start = base.find("://")? + 3;
    let path = base[start..].find(['/', '?', '#']).map_or(base.len(), |at| start + at);
    let (root, rest) = base.split_at(path);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    Some(if location.starts_with("//") {
        format!("{}{location}", &base[..start - 2])
    } else if location.starts_with('/') {
        format!("{root}{location}")
    } else if location.is_empty() || location.starts_with('?') {
        format!("{root}{}{location}", if rest.is_empty() { "/" } else { rest })
    } else {
        let directory = rest.rfind('/').map_or("/", |at| &rest[..=at]);
        format!("{root}{}", without_dots(&format!("{directory}{location}")))
    })
}

/// A path without `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut segments: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    segments.pop();
                }
                if is_last {
                    segments.push("");
                }
            }
            part => segments.push(part),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::super::TlsChoice;
    use super::*;

    #[test]
    fn locations_are_resolved_against_the_url() {
        for (base, location, expected) in [
            ("http://a.example/x/y?q", "http://b.example/z", "http://b.example/z"),
            ("http://a.example/x/y?q", "HTTPS://b.example", "HTTPS://b.example"),
            ("https://a.example/x/y", "//b.example/z", "https://b.example/z"),
            ("http://a.example:81/x/y?q", "/z?r#part", "http://a.example:81/z?r"),
            ("http://a.example/x/y?q", "z", "http://a.example/x/z"),
            ("http://a.example/x/y", "../z?back=/../q", "http://a.example/z?back=/../q"),
            ("http://a.example/x/y/", "./z/..", "http://a.example/x/y/"),
            ("http://a.example", "z", "http://a.example/z"),
            ("http://a.example?q", "?r", "http://a.example/?r"),
            ("http://a.example/x?q", "z?to=http://b.example", "http://a.example/z?to=http://b.example"),
        ] {
            assert_eq!(join(base, location).as_deref(), Some(expected), "{base} {location}");
        }
        for location in ["ftp://a.example/", "javascript://x", "/a b", "/a\nb"] {
            assert_eq!(join("http://a.example/", location), None, "{location}");
        }
    }

    /// Method, body, and headers of the request after a redirect.
    fn followed(method: &str, status: u16, location: &str) -> String {
        let names = ["Accept", "Authorization", "Content-Type", "Idempotency-Key", "X-Token"];
        let request = HttpRequest {
            method: method.to_owned(),
            url: "http://a.example/x".to_owned(),
            headers: names.map(|name| (name.to_owned(), "1".to_owned())).to_vec(),
            secrets: vec!["X-Token".to_owned()],
            body: if method == "POST" { b"body".to_vec() } else { Vec::new() },
            redirects: 1,
            timeout: Span::from_secs(1),
            tls: TlsChoice::default(),
            kept: 100,
            read_max: u64::MAX,
        };
        let Some(next) = follow(&request, status, location) else { return "none".to_owned() };
        let names: Vec<&str> = next.headers.iter().map(|(name, _)| name.as_str()).collect();
        format!("{} {} {}", next.method, next.body.len(), names.join(" "))
    }

    #[test]
    fn redirect_keeps_what_its_status_and_its_server_may_have() {
        let all = "Accept Authorization Content-Type Idempotency-Key X-Token";
        assert_eq!(followed("POST", 307, "/y"), format!("POST 4 {all}"));
        assert_eq!(followed("POST", 308, "http://A.example/y"), format!("POST 4 {all}"));
        assert_eq!(followed("POST", 308, "https://a.example/y"), "POST 4 Accept Content-Type Idempotency-Key");
        for status in [301, 302, 303] {
            assert_eq!(followed("POST", status, "/y"), "GET 0 Accept Authorization Idempotency-Key X-Token");
            assert_eq!(followed("GET", status, "/y"), format!("GET 0 {all}"));
        }
        assert_eq!(followed("HEAD", 302, "http://b.example/"), "HEAD 0 Accept Content-Type Idempotency-Key");
        assert_eq!(followed("GET", 304, "/y"), "none");
        assert_eq!(followed("GET", 302, "mailto://ada"), "none");
    }
}
