//! Notifications within one process: which queues have ready tasks, and messages for those who listen to channels.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_core::task::{Channel, QueueName};

use super::execute::TaskEffects;
use super::port::{ArrivalMark, ChannelListener, ChannelMessage};
use crate::{Pending, lock_mutex};

/// Messages that are kept for one listener.
const QUEUED_MESSAGES_MAX: usize = 65_536;
/// Bytes of these messages. The latest message is kept, however long it is.
const QUEUED_BYTES_MAX: usize = 64 << 20;

/// Who waits for arrivals, and who listens to channels.
#[derive(Debug, Default)]
pub struct TaskBoard(Mutex<TaskBoardState>);

#[derive(Debug, Default)]
struct TaskBoardState {
    queues: BTreeMap<QueueName, QueueArrivals>,
    /// The next number of a listener or a waiting future.
    next_number: u64,
    listeners: BTreeMap<u64, ListenerQueue>,
}

#[derive(Debug, Default)]
struct QueueArrivals {
    mark: ArrivalMark,
    wakers: BTreeMap<u64, Waker>,
}

/// Waits for arrivals. Its waker is removed with it, so that waits that are given up leave nothing behind.
#[derive(Debug)]
struct ArrivalWait<'a> {
    board: &'a TaskBoard,
    queue: &'a QueueName,
    seen: Option<ArrivalMark>,
    number: Option<u64>,
}

#[derive(Debug, Default)]
struct ListenerQueue {
    channels: Vec<Channel>,
    messages: VecDeque<ChannelMessage>,
    /// Bytes of these messages.
    bytes: usize,
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
            wakers.extend(std::mem::take(&mut arrivals.wakers).into_values());
        }
        for listener in state.listeners.values_mut() {
            for message in &effects.messages {
                if listener.channels.contains(&message.channel) {
                    listener.push(message.clone());
                    wakers.extend(listener.waker.take());
                }
            }
            listener.drop_surplus();
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until the queue has more arrivals than those that were seen.
    pub fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        Box::pin(ArrivalWait { board: self, queue, seen, number: None })
    }

    /// Adds a listener.
    pub fn listen(self: &Arc<Self>, channels: Vec<Channel>) -> Box<dyn ChannelListener> {
        let mut state = lock_mutex(&self.0);
        let id = state.new_number();
        state.listeners.insert(id, ListenerQueue { channels, ..ListenerQueue::default() });
        drop(state);
        Box::new(BoardListener { board: Arc::clone(self), id })
    }

    fn poll_message(&self, id: u64, context: &Context<'_>) -> Poll<ChannelMessage> {
        let mut state = lock_mutex(&self.0);
        let listener = state.listeners.entry(id).or_default();
        match listener.pop() {
            Some(message) => Poll::Ready(message),
            None => {
                listener.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl TaskBoardState {
    const fn new_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

impl ListenerQueue {
    fn push(&mut self, message: ChannelMessage) {
        self.bytes += message.message.as_str().len();
        self.messages.push_back(message);
    }

    fn pop(&mut self) -> Option<ChannelMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.message.as_str().len();
        Some(message)
    }

    /// Drops the oldest messages beyond the limits.
    fn drop_surplus(&mut self) {
        while self.messages.len() > QUEUED_MESSAGES_MAX || (self.bytes > QUEUED_BYTES_MAX && self.messages.len() > 1) {
            self.pop();
        }
    }
}

impl Future for ArrivalWait<'_> {
    type Output = ArrivalMark;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ArrivalMark> {
        let wait = self.get_mut();
        let mut state = lock_mutex(&wait.board.0);
        let mark = state.queues.get(wait.queue).map(|arrivals| arrivals.mark).unwrap_or_default();
        if wait.seen != Some(mark) {
            return Poll::Ready(mark);
        }
        let number = *wait.number.get_or_insert_with(|| state.new_number());
        let arrivals = state.queues.entry(wait.queue.clone()).or_default();
        arrivals.wakers.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for ArrivalWait<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = lock_mutex(&self.board.0);
        let Some(arrivals) = state.queues.get_mut(self.queue) else { return };
        arrivals.wakers.remove(&number);
        if arrivals.wakers.is_empty() && arrivals.mark == ArrivalMark::default() {
            // A name that no task has ever used.
            state.queues.remove(self.queue);
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

#[cfg(test)]
mod tests {
    use cronhold_core::task::JsonText;

    use super::*;

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    fn waiting(board: &TaskBoard) -> usize {
        lock_mutex(&board.0).queues.values().map(|arrivals| arrivals.wakers.len()).sum()
    }

    /// A client that waits with a timeout, again and again, leaves nothing behind.
    #[test]
    fn wait_that_is_given_up_leaves_no_waker() {
        let board = TaskBoard::default();
        let queue = QueueName::parse("idle").expect("a name");
        for _ in 0..3 {
            let mut wait = board.arrivals(&queue, Some(ArrivalMark::default()));
            assert!(wait.as_mut().poll(&mut context()).is_pending());
            assert!(wait.as_mut().poll(&mut context()).is_pending(), "polled again");
            assert_eq!(waiting(&board), 1);
        }
        assert_eq!(waiting(&board), 0);
        assert!(lock_mutex(&board.0).queues.is_empty(), "nor the name of the queue");
        let mut wait = board.arrivals(&queue, Some(ArrivalMark::default()));
        assert!(wait.as_mut().poll(&mut context()).is_pending());
        board.publish(TaskEffects { arrivals: [queue.clone()].into(), ..TaskEffects::default() });
        assert_eq!(wait.as_mut().poll(&mut context()), Poll::Ready(ArrivalMark(1)));
    }

    /// A listener that does not read keeps a bounded amount of memory.
    #[test]
    fn slow_listener_keeps_the_latest_megabytes() {
        let board = Arc::new(TaskBoard::default());
        let channel = Channel::parse("/a").expect("a channel");
        let mut listener = board.listen(vec![channel.clone()]);
        let text = "x".repeat((1 << 20) - 10);
        let message = |number: u32| ChannelMessage {
            channel: channel.clone(),
            message: JsonText::of_text(&format!("{number}{text}")),
        };
        for number in 0..100 {
            board.publish(TaskEffects { messages: vec![message(number)], ..TaskEffects::default() });
        }
        let mut first = listener.next();
        let Poll::Ready(first) = first.as_mut().poll(&mut context()) else { panic!("there are messages") };
        assert!(first.message.as_str().starts_with("\"36x"), "the oldest 36 are gone");
    }
}
