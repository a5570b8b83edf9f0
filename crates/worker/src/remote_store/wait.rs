//! Waiting for arrivals and for messages. Both outlive a daemon that restarts: what may have been missed meanwhile counts
//! as an arrival.

use std::sync::Arc;
use std::time::Duration;

use cronhold_api::client::{MessageStream, TaskStoreClient};
use cronhold_api::{ArrivalsBody, ListenBody, TaskStoreReply};
use cronhold_core::task::QueueName;
use cronhold_store::tasks::{ArrivalMark, ChannelListener, ChannelMessage, TaskBoard, TaskEffects};
use cronhold_store::{Fault, Pending, lock_mutex};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{RemoteTaskStore, RequestEffect, fault_of};

/// The first pause after the daemon could not be reached. Each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Messages that are kept for one listener.
const QUEUED_MESSAGES_MAX: usize = 1_024;

/// Receives messages from the stream of a daemon.
#[derive(Debug)]
struct RemoteListener(mpsc::Receiver<ChannelMessage>);

impl RemoteTaskStore {
    /// Waits for arrivals on the board of this process. The first call for a queue begins to watch the queue.
    pub(super) fn wait_for_arrivals<'a>(
        &'a self,
        queue: &'a QueueName,
        seen: Option<ArrivalMark>,
    ) -> Pending<'a, ArrivalMark> {
        if lock_mutex(&self.watched).insert(queue.clone()) {
            let watch = watch_queue(Arc::clone(&self.client), Arc::clone(&self.board), queue.clone());
            self.runtime.handle().spawn(watch);
        }
        self.board.arrivals(queue, seen)
    }

    pub(super) async fn listen_to(&self, body: ListenBody) -> Result<Box<dyn ChannelListener>, Fault> {
        let (client, again) = (Arc::clone(&self.client), body.clone());
        let opened = self.runtime.spawn(async move { client.listen(&again).await }).await;
        let stream = opened.unwrap_or_else(|| Err(ended())).map_err(|error| fault_of(error, RequestEffect::Reads))?;
        let (sender, receiver) = mpsc::channel(QUEUED_MESSAGES_MAX);
        self.runtime.handle().spawn(forward_messages(Arc::clone(&self.client), body, stream, sender));
        Ok(Box::new(RemoteListener(receiver)))
    }
}

fn ended() -> cronhold_api::client::TaskCallError {
    cronhold_api::client::TaskCallError::NotSent("the thread that sends requests has ended".to_owned())
}

/// Reports arrivals on a queue of the daemon to the board of this process, for as long as the executor runs.
async fn watch_queue(client: Arc<TaskStoreClient>, board: Arc<TaskBoard>, queue: QueueName) {
    let (mut seen, mut pause) = (None, PAUSE_MIN);
    loop {
        let body = ArrivalsBody { queue: queue.clone(), seen };
        match client.call::<TaskStoreReply<ArrivalMark>>("arrivals", &body).await {
            Ok(TaskStoreReply::Ok(mark)) => {
                if seen != Some(mark) {
                    // The mark of the first reply may be newer than the last lease.
                    board.publish(TaskEffects { arrivals: [queue.clone()].into(), ..TaskEffects::default() });
                }
                (seen, pause) = (Some(mark), PAUSE_MIN);
            }
            Ok(TaskStoreReply::Fault(_)) | Err(_) => {
                // The daemon may have restarted, and counts from the beginning then.
                seen = None;
                sleep(pause).await;
                pause = (2 * pause).min(PAUSE_MAX);
            }
        }
    }
}

/// Forwards messages until the listener is dropped, and listens again if the connection is lost.
async fn forward_messages(
    client: Arc<TaskStoreClient>,
    body: ListenBody,
    mut stream: MessageStream,
    sender: mpsc::Sender<ChannelMessage>,
) {
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            () = sender.closed() => return,
        };
        if let Ok(message) = next {
            if sender.send(message).await.is_err() {
                return;
            }
            continue;
        }
        let mut pause = PAUSE_MIN;
        stream = loop {
            tokio::select! {
                () = sleep(pause) => {}
                () = sender.closed() => return,
            }
            match client.listen(&body).await {
                Ok(stream) => break stream,
                Err(_) => pause = (2 * pause).min(PAUSE_MAX),
            }
        };
    }
}

impl ChannelListener for RemoteListener {
    fn next(&mut self) -> Pending<'_, ChannelMessage> {
        Box::pin(async {
            match self.0.recv().await {
                Some(message) => message,
                // The store is gone, so no message ever comes.
                None => std::future::pending().await,
            }
        })
    }
}
