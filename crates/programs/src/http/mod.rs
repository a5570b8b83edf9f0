//! HTTP requests: one client for the programs `http` and `remote`, for conditions and for webhooks. [`HttpRequest`] is
//! built from a resolved request, with secrets and files read at the last moment. [`HttpClient::send`] blocks the calling
//! thread, follows redirects, and returns what the server replied; a [`CancelToken`] ends it from another thread.
//!
//! The proxies of the environment are not used.

mod client;
mod redirect;
mod request;

pub(crate) use client::{HttpClient, HttpReply};
pub(crate) use request::{CancelToken, HttpError, HttpRequest, KEY_HEADER, TlsChoice};
