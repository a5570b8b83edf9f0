//! What the loop waits for: sockets, pipes, signals and one timer, behind one epoll. The timer uses the keeper's clock,
//! so that a machine that was suspended ends leases as soon as it wakes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::KeeperError;
use crate::clock;

/// Events of one turn.
const EVENTS_MAX: usize = 256;
/// Tokens from here on stand for processes; those below for the single sources.
const PROCESSES: u64 = 1 << 32;
/// Signals that are blocked and read here. The last two are ignored: the keeper does not end if a terminal closes or a
/// file reaches its size limit.
const SIGNALS: [Signal; 5] = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGXFSZ];

/// Where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A signal was received.
    Signals,
    /// A connection to be accepted.
    Listener,
    /// The connection that has not sent a hello yet.
    Pending,
    Daemon,
    /// The pipe of the second stage with this pid.
    StageReport(i32),
    /// The timer expired.
    Timer,
}

/// Which signals the keeper has received since it last checked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Signals {
    /// SIGCHLD: a child may have ended.
    pub(crate) child: bool,
    /// SIGTERM or SIGINT: the keeper is to end.
    pub(crate) end: bool,
}

/// Everything that the loop waits for.
#[derive(Debug)]
pub(crate) struct Events {
    epoll: OwnedFd,
    signals: SignalFd,
    timer: OwnedFd,
    armed: Option<u64>,
}

impl Events {
    /// Blocks the signals, and waits for them and for the timer.
    pub(crate) fn new() -> Result<Self, KeeperError> {
        let mut set = SigSet::empty();
        SIGNALS.iter().for_each(|signal| set.add(*signal));
        set.thread_block().map_err(KeeperError::io("block signals"))?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(KeeperError::io("wait for signals"))?;
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(KeeperError::io("make a timer"))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(KeeperError::io("wait for events"))?;
        let events = Self { epoll, signals, timer, armed: None };
        events.watch(&events.signals, Source::Signals).map_err(KeeperError::io("wait for signals"))?;
        events.watch(&events.timer, Source::Timer).map_err(KeeperError::io("wait for a timer"))?;
        Ok(events)
    }

    /// Waits for a file to become readable, until it is closed.
    pub(crate) fn watch(&self, file: impl AsFd, source: Source) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, token(source), EventFlags::IN)?)
    }

    /// Changes the source of a file, and whether to wait for it to become readable and writable.
    pub(crate) fn change(&self, file: impl AsFd, source: Source, reads: bool, writes: bool) -> io::Result<()> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, reads);
        flags.set(EventFlags::OUT, writes);
        Ok(epoll::modify(&self.epoll, file, token(source), flags)?)
    }

    /// Waits until something happens, or until this time. Returns at once if the time has passed.
    pub(crate) fn wait(&mut self, until: Option<u64>, now: u64) -> io::Result<Vec<Source>> {
        let is_past = until.is_some_and(|until| until <= now);
        if !is_past && self.armed != until {
            let it_value = until.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, clock::timespec);
            let time = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time)?;
            self.armed = until;
        }
        let timeout = is_past.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut buffer: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut buffer), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let sources: Vec<Source> = buffer.iter().map(|event| source(event.data.u64())).collect();
        if sources.contains(&Source::Timer) {
            // An expired timer stays readable until it is read.
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
            self.armed = None;
        }
        Ok(sources)
    }

    /// Reads the received signals.
    pub(crate) fn signals(&self) -> Signals {
        let mut came = Signals::default();
        while let Ok(Some(signal)) = self.signals.read_signal() {
            match i32::try_from(signal.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok()) {
                Some(Signal::SIGCHLD) => came.child = true,
                Some(Signal::SIGTERM | Signal::SIGINT) => came.end = true,
                _ => {}
            }
        }
        came
    }
}

fn token(source: Source) -> EventData {
    EventData::new_u64(match source {
        Source::Signals => 0,
        Source::Listener => 1,
        Source::Pending => 2,
        Source::Daemon => 3,
        Source::Timer => 4,
        Source::StageReport(pid) => PROCESSES + u64::from(pid.unsigned_abs()),
    })
}

fn source(token: u64) -> Source {
    match token {
        0 => Source::Signals,
        1 => Source::Listener,
        2 => Source::Pending,
        3 => Source::Daemon,
        4 => Source::Timer,
        process => Source::StageReport(i32::try_from(process - PROCESSES).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let all = [
            Source::Signals,
            Source::Listener,
            Source::Pending,
            Source::Daemon,
            Source::Timer,
            Source::StageReport(i32::MAX),
        ];
        for one in all {
            assert_eq!(source(token(one).u64()), one);
        }
    }
}
