//! The first line of a stored record, whose fields have fixed positions. The scripts of the Redis store read it, and
//! `prelude.lua` there has the same layout.

use std::cell::Cell;
use std::io::Write as _;
use std::ops::Range;

use cronhold_core::NodeId;
use cronhold_schedule::Instant;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::scalars::{self, NO_TIME, read_moment};
use crate::{UnreadableText, from_json, moment_text, to_json};

/// Written instead of a node id.
const NO_NODE: &str = "--------------------------------";

/// Length of the version, with which every text begins.
pub(super) const VERSION: usize = 16;

/// Where a text has the seq of the commit that wrote it, as 16 hex digits.
pub const SEQ: Range<usize> = 17..33;

/// Where the rest of a text begins.
pub const BODY: usize = 34;

/// Most bodies fit into this many bytes.
const TYPICAL_LEN: usize = 640;

/// Builds a stored text without version and seq.
#[derive(Debug)]
pub(super) struct RecordBody {
    bytes: Vec<u8>,
    has_json: bool,
}

impl RecordBody {
    /// Starts with the due time of the record.
    pub(super) fn new(due: Option<Instant>) -> Self {
        let mut body = Self { bytes: Vec::with_capacity(TYPICAL_LEN), has_json: false };
        body.bytes.extend_from_slice(due.map_or_else(|| NO_TIME.to_owned(), moment_text).as_bytes());
        body
    }

    /// Adds a text without spaces, or the last of the line.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn moment(&mut self, at: Option<Instant>) {
        self.text(&at.map_or_else(|| NO_TIME.to_owned(), moment_text));
    }

    pub(super) fn number(&mut self, number: u64, digits: usize) {
        write!(self.bytes, " {number:0digits$x}").expect("memory takes any text");
    }

    pub(super) fn node(&mut self, node: Option<NodeId>) {
        match node {
            Some(node) => write!(self.bytes, " {node}").expect("memory takes any text"),
            None => self.text(NO_NODE),
        }
    }

    /// Adds JSON to the first line.
    pub(super) fn inline(&mut self, value: &impl Serialize) {
        self.bytes.push(b' ');
        to_json(value, &mut self.bytes);
    }

    /// Ends the first line, and adds JSON.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        self.bytes.push(b'\n');
        to_json(value, &mut self.bytes);
        self.has_json = true;
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if !self.has_json {
            self.bytes.push(b'\n');
        }
        self.bytes
    }
}

/// Reads a stored text: the parts of its first line in order, then the rest.
#[derive(Debug)]
pub(super) struct TextReader<'v> {
    line: &'v str,
    rest: &'v str,
    next: Cell<usize>,
}

impl<'v> TextReader<'v> {
    pub(super) fn new(value: &'v [u8]) -> Result<Self, UnreadableText> {
        let text = std::str::from_utf8(value).map_err(|_| UnreadableText::new("not UTF-8"))?;
        let (line, rest) = text.split_once('\n').ok_or_else(|| UnreadableText::new("no second line"))?;
        // The due time is skipped, because records contain it elsewhere.
        Ok(Self { line, rest, next: Cell::new(BODY + NO_TIME.len() + 1) })
    }

    pub(super) fn version(&self) -> Result<u64, UnreadableText> {
        scalars::hex(self.part(0, VERSION)?)
    }

    pub(super) fn due(&self) -> Result<Option<Instant>, UnreadableText> {
        read_option(self.part(BODY, BODY + NO_TIME.len())?)
    }

    /// The next part, with this many characters.
    pub(super) fn text(&self, width: usize) -> Result<&'v str, UnreadableText> {
        let from = self.next.get();
        self.next.set(from + width + 1);
        self.part(from, from + width)
    }

    /// The rest of the line.
    pub(super) fn last(&self) -> Result<&'v str, UnreadableText> {
        self.part(self.next.get(), self.line.len())
    }

    pub(super) fn number(&self, width: usize) -> Result<u64, UnreadableText> {
        scalars::hex(self.text(width)?)
    }

    pub(super) fn moment(&self) -> Result<Option<Instant>, UnreadableText> {
        read_option(self.text(NO_TIME.len())?)
    }

    pub(super) fn node(&self) -> Result<Option<NodeId>, UnreadableText> {
        match self.text(NO_NODE.len())? {
            NO_NODE => Ok(None),
            text => NodeId::parse(text).map(Some).map_err(|error| UnreadableText::new(&error)),
        }
    }

    pub(super) fn rest(&self) -> &'v str {
        self.rest
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, UnreadableText> {
        from_json(self.rest)
    }

    fn part(&self, from: usize, to: usize) -> Result<&'v str, UnreadableText> {
        self.line.get(from..to).ok_or_else(|| UnreadableText::new("the first line is too short"))
    }
}

fn read_option(text: &str) -> Result<Option<Instant>, UnreadableText> {
    if text == NO_TIME { Ok(None) } else { read_moment(text).map(Some) }
}
