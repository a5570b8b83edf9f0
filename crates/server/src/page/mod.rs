//! The web page at `/`. It contains no secrets and no state: everything it shows comes from the API, which requires a
//! session.
//!
//! The URL of each file has a folder that is named after a hash of all files. So browsers can cache the files forever,
//! the modules import each other by relative paths, and a new version of the daemon never mixes with an old page.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cronhold_api::ProblemCode;
use sha2::{Digest, Sha256};

use crate::AppState;
use crate::problem::ApiError;

/// Number of hash digits in the name of the folder; enough that two versions never have the same name.
const VERSION_DIGITS: usize = 16;

/// Placeholder for the name of the folder in the HTML document.
const VERSION_MARK: &str = "VERSION";

/// The content security policy. The page can load its own files and send requests to its own daemon. It allows no
/// inline code, nothing from other sites, no embedding in a frame, and no conversion of text to markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page.
#[derive(Debug)]
struct PageAsset {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($media_type:ident $name:literal,)*) => {
        &[$(PageAsset { name: $name, media_type: $media_type, text: include_str!(concat!("assets/", $name)) },)*]
    };
}

const DOCUMENT: &str = include_str!("assets/index.html");

const ASSETS: &[PageAsset] = assets![
    STYLE "style.css",
    STYLE "controls.css",
    STYLE "tables.css",
    STYLE "views.css",
    STYLE "run.css",
    STYLE "tasks.css",
    PICTURE "icon.svg",
    SCRIPT "main.js",
    SCRIPT "api.js",
    SCRIPT "feed.js",
    SCRIPT "dom.js",
    SCRIPT "time.js",
    SCRIPT "notice.js",
    SCRIPT "dialog.js",
    SCRIPT "actions.js",
    SCRIPT "elements.js",
    SCRIPT "ansi.js",
    SCRIPT "output.js",
    SCRIPT "sign_in.js",
    SCRIPT "jobs.js",
    SCRIPT "job.js",
    SCRIPT "runs.js",
    SCRIPT "deliveries.js",
    SCRIPT "run.js",
    SCRIPT "peers.js",
    SCRIPT "tasks.js",
    SCRIPT "task.js",
];

/// The name of the folder: a hash of all files.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for text in ASSETS.iter().map(|asset| asset.text).chain([DOCUMENT]) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..VERSION_DIGITS].to_owned()
});

/// The routes of the page.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/", get(document)).route("/enter", get(document)).route("/page/{version}/{name}", get(asset))
}

/// The HTML document. Browsers revalidate it each time; the response is 304 if it has not changed.
async fn document(headers: HeaderMap) -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.replace(VERSION_MARK, &VERSION));
    let tag = format!("\"{}\"", *VERSION);
    let is_current = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match is_current {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], TEXT.as_str()).into_response(),
    };
    let tag = HeaderValue::try_from(tag).expect("quotes and hexadecimal digits are valid in a header");
    response.headers_mut().insert(header::ETAG, tag);
    with_headers(response, "no-cache")
}

/// A file of the page. The folder must be that of this version of the daemon.
async fn asset(Path((version, name)): Path<(String, String)>) -> Result<Response, ApiError> {
    let found = ASSETS.iter().find(|asset| asset.name == name).filter(|_| version == *VERSION);
    let Some(asset) = found else {
        let error = ApiError::new(ProblemCode::NotFound, "the web page has no such file");
        return Err(error.hint("reload the page; the version of the daemon may have changed"));
    };
    let response = ([(header::CONTENT_TYPE, asset.media_type)], asset.text).into_response();
    Ok(with_headers(response, "public, max-age=31536000, immutable"))
}

/// Adds the headers for caching and security.
fn with_headers(mut response: Response, caching: &'static str) -> Response {
    for (name, value) in [
        (header::CACHE_CONTROL, caching),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), BYTES_MAX).await.expect("a short body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    fn header_of(response: &Response, name: header::HeaderName) -> &str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    async fn found(version: &str, name: &str) -> Option<Response> {
        asset(Path((version.to_owned(), name.to_owned()))).await.ok()
    }

    #[tokio::test]
    async fn document_has_security_headers_and_loads_only_existing_files() {
        let response = document(HeaderMap::new()).await;
        assert!(header_of(&response, header::CONTENT_SECURITY_POLICY).contains("frame-ancestors 'none'"));
        assert_eq!(header_of(&response, header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(header_of(&response, header::CACHE_CONTROL), "no-cache");
        let text = text(response).await;
        assert!(!text.contains(VERSION_MARK), "{text}");
        for (start, _) in text.match_indices("/page/") {
            let path = text[start..].split('"').next().expect("split gives one part at least");
            let (version, name) = path["/page/".len()..].split_once('/').expect("a folder and a file");
            assert!(found(version, name).await.is_some(), "{path}");
        }
        for inline in ["<style", "style=", " on", "<script>"] {
            assert!(!text.contains(inline), "the policy forbids `{inline}`");
        }
    }

    #[tokio::test]
    async fn unchanged_document_is_not_sent_again() {
        let first = document(HeaderMap::new()).await;
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let again = document(headers.clone()).await;
        assert_eq!(
            (again.status(), again.headers()[header::ETAG].clone()),
            (StatusCode::NOT_MODIFIED, headers[header::IF_NONE_MATCH].clone())
        );
        assert_eq!(text(again).await, "");
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(document(headers).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn files_are_immutable_and_found_only_under_their_version() {
        let response = found(&VERSION, "main.js").await.expect("there");
        assert_eq!(header_of(&response, header::CONTENT_TYPE), SCRIPT);
        assert!(header_of(&response, header::CACHE_CONTROL).contains("immutable"));
        for (version, name) in [("0", "main.js"), (VERSION.as_str(), "index.html"), (VERSION.as_str(), "../mod.rs")] {
            assert!(found(version, name).await.is_none(), "{version} {name}");
        }
    }

    /// If the server lacked a module that another one imports, the page would stay empty.
    #[test]
    fn modules_import_only_served_files() {
        for asset in ASSETS.iter().filter(|asset| asset.media_type == SCRIPT) {
            let imports = asset.text.lines().filter(|line| line.starts_with("import "));
            for line in imports {
                let name = line.split('"').nth(1).and_then(|path| path.strip_prefix("./")).expect("a relative path");
                assert!(ASSETS.iter().any(|other| other.name == name), "{}: {line}", asset.name);
            }
            for name in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "alert("] {
                assert!(!asset.text.contains(name), "{} must not use {name}", asset.name);
            }
        }
    }
}
