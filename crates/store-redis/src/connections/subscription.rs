//! Messages of channels. A broken connection is replaced, and the receiver gets an event that messages may be lost.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use cronhold_store_remote::ConnectError;
use cronhold_store_remote::faults::unreachable;
use futures_core::Stream;
use redis::Msg;
use redis::aio::{PubSub, PubSubStream};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{sleep, timeout};

use super::{connection, discovery};
use crate::url::RedisUrl;

/// Events that are buffered for the receiver. When the buffer is full, messages are dropped and a gap is reported.
const BUFFER: usize = 4096;

/// After this long without a message the connection is checked with a PING.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Pause between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What a subscription delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChannelEvent {
    Message {
        channel: String,
        payload: Vec<u8>,
    },
    /// Messages before this point may be lost. It is the first event, and follows each reconnect and each overflow.
    Gap,
}

/// The channels of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubscribedChannels {
    Named(Vec<String>),
    Pattern(String),
}

/// Subscribes until the receiver is dropped.
pub(super) fn start(
    url: RedisUrl,
    runtime: &tokio::runtime::Handle,
    channels: SubscribedChannels,
) -> mpsc::Receiver<ChannelEvent> {
    let (sender, receiver) = mpsc::channel(BUFFER);
    runtime.spawn(async move {
        let receiver_gone = sender.clone();
        tokio::select! {
            () = run(url, channels, sender) => {}
            () = receiver_gone.closed() => {}
        }
    });
    receiver
}

async fn run(url: RedisUrl, channels: SubscribedChannels, sender: Sender<ChannelEvent>) {
    let mut attempt: usize = 0;
    loop {
        if let Ok(channel) = subscribe(&url, attempt, &channels).await {
            forward(channel, &sender, url.settings.timeout).await;
            tracing::warn!(event = "redis_subscription_lost", "lost the subscription to Redis; subscribing again");
        }
        attempt = attempt.wrapping_add(1);
        sleep(RECONNECT_PAUSE).await;
    }
}

async fn subscribe(url: &RedisUrl, attempt: usize, channels: &SubscribedChannels) -> Result<PubSub, ConnectError> {
    let server = discovery::locate(url, attempt).await?;
    let mut channel = connection::open_pubsub(url, &server).await?;
    let fail = |why: String| ConnectError::from(unreachable(&server, &why));
    let subscribed = async {
        match channels {
            SubscribedChannels::Named(channels) => channel.subscribe(channels).await,
            SubscribedChannels::Pattern(pattern) => channel.psubscribe(pattern).await,
        }
    };
    match timeout(url.settings.timeout, subscribed).await {
        Ok(Ok(())) => Ok(channel),
        Ok(Err(error)) => Err(fail(format!("cannot subscribe ({error})"))),
        Err(_) => Err(fail("no reply to SUBSCRIBE".to_owned())),
    }
}

/// Forwards messages until the connection breaks.
async fn forward(channel: PubSub, sender: &Sender<ChannelEvent>, limit: Duration) {
    let (mut sink, mut stream) = channel.split();
    let mut has_gap = true;
    loop {
        // The gap is reported before the next message, as soon as the buffer has room.
        if has_gap && sender.try_send(ChannelEvent::Gap).is_ok() {
            has_gap = false;
        }
        match timeout(IDLE_MAX, next(&mut stream)).await {
            Ok(Some(message)) => {
                let event = ChannelEvent::Message {
                    channel: message.get_channel_name().to_owned(),
                    payload: message.get_payload_bytes().to_vec(),
                };
                has_gap |= has_gap || matches!(sender.try_send(event), Err(TrySendError::Full(_)));
            }
            Ok(None) => return,
            Err(_) => {
                let reply = timeout(limit, sink.ping::<redis::Value>()).await;
                if !matches!(reply, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
