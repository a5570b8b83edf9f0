//! Channels and their messages.

use cronhold_core::task::JsonText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of channels with in ports that receive their messages, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChannelList {
    /// Channels.
    pub channels: Vec<SubscribedChannel>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<String>,
}

/// A channel with in ports that receive its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscribedChannel {
    /// Name of the channel.
    #[schema(example = "/shop/orders")]
    pub channel: String,
    /// Number of in ports that name it.
    pub subscribers: u64,
}

/// A message to a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishBody {
    /// The message.
    #[schema(value_type = Value)]
    pub message: JsonText,
}

/// A message as a listener receives it: the data of the event `message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMessage)]
pub struct PublishedMessage {
    /// The requested channel: that on which the message was published, or one above it.
    pub channel: String,
    /// The message.
    #[schema(value_type = Value)]
    pub message: JsonText,
}
