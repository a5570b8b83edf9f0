//! Notifications within one process: which queues have ready tasks, and messages for those who listen to channels.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_core::task::{Channel, QueueName};

use super::execute::TaskEffects;
use super::port::{ArrivalMark, ChannelListener, ChannelMessage};
use crate::{Pending, lock_mutex};

/// Messages that are kept for one listener.
const QUEUED_MESSAGES_MAX: usize = 65_536;

/// Who waits for arrivals, and who listens to channels.
#[derive(Debug, Default)]
pub struct TaskBoard(Mutex<TaskBoardState>);

#[derive(Debug, Default)]
struct TaskBoardState {
    queues: BTreeMap<QueueName, QueueArrivals>,
    next_listener: u64,
    listeners: BTreeMap<u64, ListenerQueue>,
}

#[derive(Debug, Default)]
struct QueueArrivals {
    mark: ArrivalMark,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
struct ListenerQueue {
    channels: Vec<Channel>,
    messages: VecDeque<ChannelMessage>,
    waker: Option<Waker>,
}

/// Receives messages from a board.
#[derive(Debug)]
struct BoardListener {
    board: Arc<TaskBoard>,
    id: u64,
}

impl TaskBoard {
    /// Whether there are listeners to channels, so that messages have to be collected.
    pub fn has_listeners(&self) -> bool {
        !lock_mutex(&self.0).listeners.is_empty()
    }

    /// Delivers what a commit has caused. Call it when the commit is durable.
    pub fn publish(&self, effects: TaskEffects) {
        let mut wakers = Vec::new();
        let mut state = lock_mutex(&self.0);
        for queue in effects.arrivals {
            let arrivals = state.queues.entry(queue).or_default();
            arrivals.mark.0 += 1;
            wakers.append(&mut arrivals.wakers);
        }
        for listener in state.listeners.values_mut() {
            let wanted = effects.messages.iter().filter(|message| listener.channels.contains(&message.channel));
            let before = listener.messages.len();
            listener.messages.extend(wanted.cloned());
            if listener.messages.len() > before {
                wakers.extend(listener.waker.take());
            }
            let surplus = listener.messages.len().saturating_sub(QUEUED_MESSAGES_MAX);
            listener.messages.drain(..surplus);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until the queue has more arrivals than those that were seen.
    pub fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        Box::pin(poll_fn(move |context| {
            let mut state = lock_mutex(&self.0);
            let arrivals = state.queues.entry(queue.clone()).or_default();
            if seen != Some(arrivals.mark) {
                return Poll::Ready(arrivals.mark);
            }
            if !arrivals.wakers.iter().any(|known| known.will_wake(context.waker())) {
                arrivals.wakers.push(context.waker().clone());
            }
            Poll::Pending
        }))
    }

    /// Adds a listener.
    pub fn listen(self: &Arc<Self>, channels: Vec<Channel>) -> Box<dyn ChannelListener> {
        let mut state = lock_mutex(&self.0);
        let id = state.next_listener;
        state.next_listener += 1;
        state.listeners.insert(id, ListenerQueue { channels, ..ListenerQueue::default() });
        drop(state);
        Box::new(BoardListener { board: Arc::clone(self), id })
    }

    fn poll_message(&self, id: u64, context: &Context<'_>) -> Poll<ChannelMessage> {
        let mut state = lock_mutex(&self.0);
        let listener = state.listeners.entry(id).or_default();
        match listener.messages.pop_front() {
            Some(message) => Poll::Ready(message),
            None => {
                listener.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl ChannelListener for BoardListener {
    fn next(&mut self) -> Pending<'_, ChannelMessage> {
        Box::pin(poll_fn(|context| self.board.poll_message(self.id, context)))
    }
}

impl Drop for BoardListener {
    fn drop(&mut self) {
        lock_mutex(&self.board.0).listeners.remove(&self.id);
    }
}
