//! Messages of channels, for ever. A broken line is opened again, and whoever listens is told that something may be lost.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use cronhold_store::Fault;
use futures_core::Stream;
use redis::Msg;
use redis::aio::{PubSub, PubSubStream};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{sleep, timeout};

use super::{find, line};
use crate::faults;
use crate::url::RedisUrl;

/// So many messages wait for whoever listens. Those that do not fit are lost, which is told.
const ROOM: usize = 4096;

/// A line on which nothing is heard for so long is asked whether it is alive.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Between two attempts to open a line.
const PAUSE: Duration = Duration::from_millis(100);

/// What is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message.
    Message {
        /// In which channel.
        channel: String,
        /// What was said.
        payload: Vec<u8>,
    },
    /// From here on everything is heard; what was said before may be lost. This comes first, and after each break.
    Gap,
}

/// Listens until nobody wants to hear any more.
pub(super) fn start(url: RedisUrl, runtime: &tokio::runtime::Handle, channels: Vec<String>) -> mpsc::Receiver<Heard> {
    let (sender, receiver) = mpsc::channel(ROOM);
    runtime.spawn(async move {
        let wants = sender.clone();
        tokio::select! {
            () = listen(url, channels, sender) => {}
            () = wants.closed() => {}
        }
    });
    receiver
}

async fn listen(url: RedisUrl, channels: Vec<String>, sender: Sender<Heard>) {
    let mut attempt: usize = 0;
    loop {
        if let Ok(channel) = subscribe(&url, attempt, &channels).await {
            follow(channel, &sender, url.settings.timeout).await;
            tracing::warn!(event = "redis_subscription_lost", "the subscription to Redis broke; subscribing again");
        }
        attempt = attempt.wrapping_add(1);
        sleep(PAUSE).await;
    }
}

async fn subscribe(url: &RedisUrl, attempt: usize, channels: &[String]) -> Result<PubSub, Fault> {
    let server = find::locate(url, attempt).await?;
    let mut channel = line::open_channels(url, &server).await?;
    let told = |why: String| faults::unreached(&server.to_string(), &why);
    match timeout(url.settings.timeout, channel.subscribe(channels)).await {
        Ok(Ok(())) => Ok(channel),
        Ok(Err(error)) => Err(told(format!("the channels cannot be listened to ({error})"))),
        Err(_) => Err(told("no answer came".to_owned())),
    }
}

/// Passes on what is said until the line breaks.
async fn follow(channel: PubSub, sender: &Sender<Heard>, limit: Duration) {
    let (mut sink, mut stream) = channel.split();
    let mut is_lost = true;
    loop {
        // The gap is told before the next message, as soon as there is room for it.
        if is_lost && sender.try_send(Heard::Gap).is_ok() {
            is_lost = false;
        }
        match timeout(SILENCE_MAX, next(&mut stream)).await {
            Ok(Some(message)) => {
                let heard = Heard::Message {
                    channel: message.get_channel_name().to_owned(),
                    payload: message.get_payload_bytes().to_vec(),
                };
                is_lost |= is_lost || matches!(sender.try_send(heard), Err(TrySendError::Full(_)));
            }
            Ok(None) => return,
            Err(_) => {
                let answer = timeout(limit, sink.ping::<redis::Value>()).await;
                if !matches!(answer, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
