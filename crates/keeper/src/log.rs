//! The log of the keeper. The process that runs it decides where events go; see `log` in the binary.

/// Logs a warning. Whether it can be written makes no difference to the keeper.
pub(crate) fn line(text: &str) {
    tracing::warn!(event = "keeper_notice", "{text}");
}
