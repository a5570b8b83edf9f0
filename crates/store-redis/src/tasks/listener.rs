//! Listeners to channels. Each has a subscription of its own to all channels with the prefix, because a message on a
//! channel also counts for those above it, which the publisher does not name.

use std::collections::VecDeque;
use std::time::Duration;

use cronhold_core::task::{Channel, JsonText};
use cronhold_store::tasks::{ChannelListener, ChannelMessage};
use cronhold_store::{Fault, Pending};
use cronhold_store_remote::faults::unreachable;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::scripts::TaskScripts;
use crate::connections::ChannelEvent;

/// How long to wait for the subscription.
const SUBSCRIBE_MAX: Duration = Duration::from_secs(10);

/// Receives the messages on some channels and those below them.
#[derive(Debug)]
pub(super) struct RedisChannelListener {
    prefix: String,
    channels: Vec<Channel>,
    events: Receiver<ChannelEvent>,
    messages: VecDeque<ChannelMessage>,
}

impl RedisChannelListener {
    /// Subscribes, and returns once messages arrive.
    pub(super) async fn subscribe(scripts: &TaskScripts, channels: Vec<Channel>) -> Result<Self, Fault> {
        let prefix = scripts.keys().prefix().to_owned();
        let mut events = scripts.connections().subscribe_pattern(format!("{}*", escaped(&prefix)));
        let fail = |why: &str| Err(unreachable(scripts.connections().server_name(), why));
        match timeout(SUBSCRIBE_MAX, events.recv()).await {
            Ok(Some(_)) => Ok(Self { prefix, channels, events, messages: VecDeque::new() }),
            Ok(None) => fail("the store was closed"),
            Err(_) => fail("cannot subscribe to channels in time"),
        }
    }

    fn receive(&mut self, channel: &str, payload: &[u8]) {
        let name = channel.strip_prefix(&self.prefix).filter(|name| !name.contains("cronhold:"));
        let Some(channel) = name.and_then(|name| Channel::parse(name).ok()) else { return };
        let message = std::str::from_utf8(payload).ok().and_then(|text| JsonText::parse(text).ok());
        let Some(message) = message else { return };
        for level in channel.levels().into_iter().filter(|level| self.channels.contains(level)) {
            self.messages.push_back(ChannelMessage { channel: level, message: message.clone() });
        }
    }
}

impl ChannelListener for RedisChannelListener {
    fn next(&mut self) -> Pending<'_, ChannelMessage> {
        Box::pin(async move {
            loop {
                if let Some(message) = self.messages.pop_front() {
                    return message;
                }
                match self.events.recv().await {
                    Some(ChannelEvent::Message { channel, payload }) => self.receive(&channel, &payload),
                    Some(ChannelEvent::Gap) => {}
                    // The store was closed, so that no message comes any more.
                    None => std::future::pending().await,
                }
            }
        })
    }
}

/// A text without meaning as a pattern.
fn escaped(text: &str) -> String {
    let escape = |sign: char| match sign {
        '*' | '?' | '[' | ']' | '\\' => vec!['\\', sign],
        _ => vec![sign],
    };
    text.chars().flat_map(escape).collect()
}
