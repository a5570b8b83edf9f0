//! The receiver of `tracing` events: formats those that the filter selects, and hands the lines to a writer. It is a
//! subscriber of its own rather than a layer, because nothing here uses spans.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::LogOptions;
use super::format::LineFormat;
use super::writer::WriteLine;

/// Formats events and hands them to a writer.
#[derive(Debug)]
pub(super) struct LogSubscriber<W> {
    options: LogOptions,
    format: LineFormat,
    writer: W,
}

impl<W: WriteLine> LogSubscriber<W> {
    pub(super) fn new(options: LogOptions, writer: W) -> Self {
        Self { format: options.line_format(), options, writer }
    }
}

impl<W: WriteLine> Subscriber for LogSubscriber<W> {
    /// The filter never changes, so the answer is cached by each call site.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.options.enables(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.options.enables(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.options.max_level())
    }

    fn event(&self, event: &Event<'_>) {
        self.writer.write_line(self.format.format(event));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
