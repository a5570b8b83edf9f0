//! The line to Redis: asks, calls scripts and listens, and opens connections anew by itself. Nothing above it knows
//! whether there is one server, a Sentinel set or a Cluster.

mod find;
mod line;
mod listen;
mod script;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cronhold_store::Fault;
use redis::{Cmd, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use listen::Heard;
pub(crate) use script::Script;

use crate::faults;
use crate::url::{RedisUrl, Way};
use line::Line;

/// Between two attempts to open a line.
const PAUSE: Duration = Duration::from_millis(50);

/// So much longer than one attempt takes at most is waited for it, so that what it has to say is heard.
const GRACE: Duration = Duration::from_millis(100);

/// How often Sentinels are asked whether the server is still the one to ask.
const GUARD: Duration = Duration::from_secs(2);
/// Questions in a row that no Sentinel answers before the server is left.
const UNANSWERED_MAX: usize = 3;

/// The line to Redis. It lives on the store's runtime; clones share their connection.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    url: RedisUrl,
    runtime: Handle,
    state: watch::Sender<State>,
    attempts: AtomicUsize,
    /// Whether the store has been worked on: what is refused then is not a mistake in the URL.
    has_worked: AtomicBool,
    /// Whether a line has ever been opened: both sides agree on whether it is encrypted.
    has_answered: AtomicBool,
}

/// How a link is doing.
#[derive(Clone)]
enum State {
    /// Nobody has asked yet.
    New,
    /// A line is being opened.
    Opening,
    /// There is a line.
    Open(Arc<Line>),
    /// The last attempt failed, and when.
    Failed(Fault, Instant),
}

/// What came of calls.
pub(crate) struct Called {
    /// An answer for each call.
    pub(crate) answers: Vec<Result<Value, Fault>>,
    /// An answer for each command that was sent behind them; none, when the line broke.
    pub(crate) behind: Vec<Value>,
}

impl Link {
    /// A link that connects when it is first used. Its work is done on the runtime.
    pub(crate) fn new(url: &RedisUrl, runtime: Handle) -> Self {
        let (state, _) = watch::channel(State::New);
        Self(Arc::new(Inner {
            url: url.clone(),
            runtime,
            state,
            attempts: AtomicUsize::new(0),
            has_worked: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
        }))
    }

    /// Sends commands in one go and answers with one value each; errors of single commands are inside. `Away`: surely
    /// nothing was sent. `Unknown`: it was sent, and no answer came.
    pub(crate) async fn ask(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        self.line().await?.ask(commands).await
    }

    /// Sends one command and takes an error for a fault.
    pub(crate) async fn ask_one(&self, command: Cmd) -> Result<Value, Fault> {
        let mut answers = self.ask(vec![command]).await?;
        self.checked(answers.pop().unwrap_or(Value::Nil))
    }

    /// Calls a script by its hash. A server that does not know it is told it.
    pub(crate) async fn call(
        &self,
        script: &'static Script,
        keys: &[String],
        args: Vec<Vec<u8>>,
    ) -> Result<Value, Fault> {
        let mut called = self.call_all(script, keys, vec![args], Vec::new()).await;
        called.answers.pop().expect("each call has an answer")
    }

    /// Calls a script several times, in this order and in one go, and sends commands behind the calls.
    pub(crate) async fn call_all(
        &self,
        script: &'static Script,
        keys: &[String],
        calls: Vec<Vec<Vec<u8>>>,
        behind: Vec<Cmd>,
    ) -> Called {
        let line = match self.line().await {
            Ok(line) => line,
            Err(fault) => return Called::failed(calls.len(), &fault),
        };
        tracing::trace!(event = "redis_batch", calls = calls.len(), behind = behind.len(), "sending a batch of calls");
        let tells = !line.knows(script);
        let mut commands = Vec::with_capacity(calls.len() + behind.len() + 1);
        commands.extend(tells.then(|| script.load()));
        commands.extend(calls.iter().map(|args| script.call(keys, args)));
        commands.extend(behind);
        let mut answers = match line.ask(commands).await {
            Ok(answers) => answers,
            Err(fault) => return Called::failed(calls.len(), &fault),
        };
        if tells && !matches!(answers.remove(0), Value::ServerError(_)) {
            line.has_told(script);
        }
        let behind = answers.split_off(calls.len());
        let unknown: Vec<usize> = (0..answers.len()).filter(|index| is_unknown_script(&answers[*index])).collect();
        let mut answers: Vec<_> = answers.into_iter().map(|answer| self.checked(answer)).collect();
        // Somebody made the server forget its scripts. What was called in vain is called once more.
        if !unknown.is_empty() {
            let mut commands = vec![script.load()];
            commands.extend(unknown.iter().map(|index| script.call(keys, &calls[*index])));
            let again = line.ask(commands).await;
            for (place, index) in unknown.into_iter().enumerate() {
                answers[index] = match &again {
                    Ok(again) => self.checked(again[place + 1].clone()),
                    Err(fault) => Err(fault.clone()),
                };
            }
        }
        Called { answers, behind }
    }

    /// Messages of channels, for ever.
    pub(crate) fn listen(&self, channels: Vec<String>) -> mpsc::Receiver<Heard> {
        listen::start(self.0.url.clone(), &self.0.runtime, channels)
    }

    /// What an error that a server answered with means.
    pub(crate) fn fault(&self, error: &ServerError) -> Fault {
        let fault = faults::answered(&self.server(), error);
        if faults::is_about_rights(error) { self.0.judged(fault) } else { fault }
    }

    /// The store has been worked on. From now on a server that refuses us is away: passwords and rights are changed while
    /// nodes run, and are put right again.
    pub(crate) fn has_worked(&self) {
        self.0.has_worked.store(true, Ordering::Relaxed);
    }

    /// An answer, unless it is an error.
    pub(crate) fn checked(&self, answer: Value) -> Result<Value, Fault> {
        match answer {
            Value::ServerError(error) => Err(self.fault(&error)),
            answer => Ok(answer),
        }
    }

    /// Where the server is that was asked last, for people.
    pub(crate) fn server(&self) -> String {
        match &*self.0.state.borrow() {
            State::Open(line) => line.server.to_string(),
            _ => self.0.url.servers.first().map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// What is wrong with the line, if something is known to be.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &*self.0.state.borrow() {
            State::Failed(fault, _) => Some(fault.to_string()),
            _ => None,
        }
    }

    /// The line that there is, or another.
    async fn line(&self) -> Result<Arc<Line>, Fault> {
        if let State::Open(line) = &*self.0.state.borrow()
            && !line.is_closed()
        {
            return Ok(line.clone());
        }
        let mut states = self.0.state.subscribe();
        self.reopen();
        let opened = states.wait_for(|state| !matches!(state, State::New | State::Opening));
        match timeout(self.0.url.settings.timeout + GRACE, opened).await {
            Ok(Ok(state)) => match &*state {
                State::Open(line) => Ok(line.clone()),
                State::Failed(fault, _) => Err(fault.clone()),
                State::New | State::Opening => unreachable!("these were waited for to end"),
            },
            Ok(Err(_)) => Err(faults::unreached(&self.server(), "the store was closed")),
            Err(_) => Err(faults::unreached(&self.server(), "no connection has come about yet")),
        }
    }

    /// Begins to open a line, unless that is being done. It goes on when whoever asked has gone.
    fn reopen(&self) {
        let mut not_before = None;
        let begins = self.0.state.send_if_modified(|state| {
            not_before = match state {
                State::Opening => return false,
                State::Open(line) if !line.is_closed() => return false,
                State::New => None,
                State::Open(line) => Some(line.since + PAUSE),
                State::Failed(_, at) => Some(*at + PAUSE),
            };
            *state = State::Opening;
            true
        });
        if !begins {
            return;
        }
        let inner = self.0.clone();
        self.0.runtime.spawn(async move {
            if let Some(not_before) = not_before {
                sleep_until(not_before).await;
            }
            let attempt = inner.attempts.fetch_add(1, Ordering::Relaxed);
            let opened = find::open(&inner.url, attempt).await;
            let opened = opened.inspect_err(|fault| tracing::debug!(event = "redis_connect_failed", attempt, "{fault}"));
            let state = match opened {
                Ok(line) => {
                    tracing::info!(event = "redis_connected", server = %line.server, attempt, "connected to {}", line.server);
                    inner.has_answered.store(true, Ordering::Relaxed);
                    let line = Arc::new(line);
                    if matches!(inner.url.way, Way::Sentinel { .. }) {
                        tokio::spawn(guard(inner.url.clone(), Arc::downgrade(&line)));
                    }
                    State::Open(line)
                }
                Err(fault) => State::Failed(inner.judged(fault), Instant::now()),
            };
            inner.state.send_replace(state);
        });
    }
}

impl Inner {
    /// A refusal, which ends a process that has just been started and none that has worked.
    fn judged(&self, fault: Fault) -> Fault {
        let is_known = self.has_answered.load(Ordering::Relaxed);
        let fault = if is_known { line::without_hint(&self.url, fault) } else { fault };
        if self.has_worked.load(Ordering::Relaxed) { faults::as_passing(fault) } else { fault }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("url", &self.0.url).finish_non_exhaustive()
    }
}

impl Called {
    fn failed(calls: usize, fault: &Fault) -> Self {
        Self { answers: vec![Err(fault.clone()); calls], behind: Vec::new() }
    }
}

/// Leaves a server when the Sentinels name another, and when none of them can be asked for a while: a server that was cut
/// off from them may go on to take writes, and they would be lost.
async fn guard(url: RedisUrl, line: Weak<Line>) {
    let mut unanswered = 0;
    for attempt in 0.. {
        sleep(GUARD).await;
        let Some(line) = line.upgrade().filter(|line| !line.is_closed()) else { return };
        match find::locate(&url, attempt).await {
            Ok(server) if server == line.server => unanswered = 0,
            Err(_) if unanswered + 1 < UNANSWERED_MAX => unanswered += 1,
            _ => {
                tracing::warn!(event = "redis_failover", server = %line.server, "leaving {}: it is not the master any more", line.server);
                line.close();
            }
        }
    }
}

fn is_unknown_script(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if faults::is_unknown_script(error))
}
