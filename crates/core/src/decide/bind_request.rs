//! Resolves a request of a job: the program `http`, and the condition `http`.

use cronhold_schedule::TextError;

use crate::job::{HeaderValue, HttpProgram};
use crate::record::{RequestBody, ResolvedHeader, ResolvedRequest};
use crate::template::Template;

/// Resolves a request. `bind` resolves its templates. The result is not checked, so that `bind` may keep them.
pub(super) fn resolve_request(
    http: &HttpProgram,
    bind: &dyn Fn(&Template) -> Result<String, TextError>,
) -> Result<ResolvedRequest, TextError> {
    let header = |value: &HeaderValue| match value {
        HeaderValue::Text(template) => bind(template).map(ResolvedHeader::Text),
        HeaderValue::Secret { source, prefix } => {
            Ok(ResolvedHeader::Secret { source: source.clone(), prefix: prefix.clone() })
        }
    };
    let headers = http.headers.iter().map(|(name, value)| Ok((name.clone(), header(value)?)));
    let body = match (&http.body, &http.body_file) {
        (Some(text), _) => Some(RequestBody::Text(bind(text)?)),
        (None, Some(path)) => Some(RequestBody::File(bind(path)?)),
        (None, None) => None,
    };
    Ok(ResolvedRequest {
        url: bind(&http.url)?,
        method: http.method.clone(),
        headers: headers.collect::<Result<_, TextError>>()?,
        body,
        expect: http.expect.clone(),
        body_matches: http.body_matches.as_ref().map(|pattern| pattern.text().to_owned()),
        redirects: http.redirects,
        timeout: http.timeout,
        ca_file: http.ca_file.clone(),
        insecure: http.insecure,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cronhold_schedule::Span;

    use super::*;
    use crate::job::{BodyPattern, SecretSource};

    fn bound(http: &HttpProgram) -> Result<ResolvedRequest, String> {
        let bind = |template: &Template| Ok(template.text().replace("{{ day }}", "monday\n"));
        let request = resolve_request(http, &bind).map_err(|error| error.to_string())?;
        request.check().map(|()| request).map_err(|error| error.to_string())
    }

    fn template(text: &str) -> Template {
        Template::parse(text).expect(text)
    }

    #[test]
    fn request_takes_all_settings_of_the_job() {
        let secret = SecretSource::File("/etc/token".to_owned());
        let mut http = HttpProgram::new(template("https://a.example/x"));
        http.method = "PUT".to_owned();
        http.headers = BTreeMap::from([
            ("Authorization".to_owned(), HeaderValue::Secret { source: secret.clone(), prefix: "Bearer ".to_owned() }),
            ("Accept".to_owned(), HeaderValue::Text(template("text/plain"))),
        ]);
        http.body = Some(template("for {{ day }}"));
        http.expect = vec![(200, 200), (404, 404)];
        http.body_matches = Some(BodyPattern::parse("ok").expect("valid"));
        (http.redirects, http.timeout) = (3, Span::from_secs(5));
        (http.ca_file, http.insecure) = (Some("/etc/ca.pem".to_owned()), true);
        let expected = ResolvedRequest {
            url: "https://a.example/x".to_owned(),
            method: "PUT".to_owned(),
            headers: BTreeMap::from([
                // Secrets are stored as references.
                ("Authorization".to_owned(), ResolvedHeader::Secret { source: secret, prefix: "Bearer ".to_owned() }),
                ("Accept".to_owned(), ResolvedHeader::Text("text/plain".to_owned())),
            ]),
            body: Some(RequestBody::Text("for monday\n".to_owned())),
            expect: vec![(200, 200), (404, 404)],
            body_matches: Some("ok".to_owned()),
            redirects: 3,
            timeout: Span::from_secs(5),
            ca_file: Some("/etc/ca.pem".to_owned()),
            insecure: true,
        };
        assert_eq!(bound(&http), Ok(expected));
        (http.body, http.body_file) = (None, Some(template("/srv/body")));
        let body = bound(&http).expect("valid").body;
        assert_eq!(body, Some(RequestBody::File("/srv/body".to_owned())));
    }

    #[test]
    fn requests_that_cannot_be_sent_are_rejected() {
        let with = |change: fn(&mut HttpProgram)| {
            let mut http = HttpProgram::new(template("https://a.example/"));
            change(&mut http);
            bound(&http).expect_err("it cannot be sent")
        };
        let header = with(|http| {
            http.headers.insert("X-Day".to_owned(), HeaderValue::Text(Template::parse("{{ day }}").expect("valid")));
        });
        assert_eq!(header, "the header `X-Day` has several lines (a header is one line)");
        assert!(with(|http| http.url = Template::literal("ftp://a")).starts_with("`ftp://a` is not a URL"));
        assert!(with(|http| http.url = Template::literal("https://a/b c")).contains("contains  "));
        let large = with(|http| http.body = Some(Template::literal("x".repeat(1 << 21))));
        assert!(large.starts_with("the request has 2097170 bytes; at most 1048576 are allowed"), "{large}");
    }
}
