//! The channels on which runs publish their transitions, and which of them have subscribers. A node knows the second, so
//! that a run whose channel has none costs nothing.

use std::collections::BTreeSet;

use super::Channel;
use crate::ids::JobId;
use crate::run::State;

/// The channels above those of all runs, the lowest first.
const ABOVE: [&str; 3] = [RUNS, "/cronhold", "/"];
/// The channel below which those of the runs are.
const RUNS: &str = "/cronhold/run";

/// The channels at, above or below `/cronhold/run` that have subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunChannels(BTreeSet<Channel>);

impl RunChannels {
    /// Keeps those of the channels on which messages about runs can arrive.
    pub fn new(channels: impl IntoIterator<Item = Channel>) -> Self {
        Self(channels.into_iter().filter(Self::can_hear).collect())
    }

    /// Whether messages about runs can arrive on a channel.
    pub fn can_hear(channel: &Channel) -> bool {
        let channel = channel.as_str();
        ABOVE.contains(&channel) || channel.strip_prefix(RUNS).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether no channel has subscribers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the message about a run of a job that enters a state has a subscriber.
    pub fn hear(&self, job: &JobId, state: State) -> bool {
        !self.0.is_empty() && Channel::of_run(job, state).levels().iter().any(|level| self.0.contains(level))
    }

    /// Whether a subscriber of this channel receives messages about runs of a job.
    pub fn is_about(channel: &Channel, job: &JobId) -> bool {
        let of_job = |state: State| Channel::of_run(job, state).levels();
        State::ALL.into_iter().any(|state| of_job(state).contains(channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(texts: &[&str]) -> RunChannels {
        RunChannels::new(texts.iter().map(|text| Channel::parse(text).expect(text)))
    }

    #[test]
    fn run_is_heard_on_its_channel_and_above() {
        let job = JobId::parse("reports/daily").expect("an id");
        for (channel, expected) in [
            ("/", true),
            ("/cronhold", true),
            ("/cronhold/run", true),
            ("/cronhold/run/reports", true),
            ("/cronhold/run/reports/daily", true),
            ("/cronhold/run/reports/daily/success", true),
            ("/cronhold/run/reports/daily/failure", false),
            ("/cronhold/run/reports/dail", false),
            ("/cronhold/runs", false),
            ("/prices", false),
        ] {
            let found = channels(&["/cronhold/run/other", channel]);
            assert_eq!(found.hear(&job, State::Success), expected, "{channel}");
            let about = RunChannels::is_about(&Channel::parse(channel).expect("a channel"), &job);
            assert_eq!(about, expected || channel.ends_with("/failure"), "{channel}");
        }
        assert!(channels(&["/prices", "/cronhold/runs", "/cronhold/lock"]).is_empty());
    }
}
