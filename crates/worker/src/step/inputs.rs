//! Rounds that read one value of each of several in ports.

use cronhold_core::task::for_inputs::{DEFAULTS_FIELD, InputRound, InputState, next_round};
use cronhold_core::task::{JsonText, PortAddress, PortName, StateField};
use serde::de::DeserializeOwned;

use super::TaskStep;
use crate::worker::StepResult;

/// What an executable reads together, and what follows when it has processed that.
#[derive(Debug, Default)]
pub(crate) struct InputRows {
    /// One value of each port in each row.
    pub(crate) rows: Vec<Vec<JsonText>>,
    /// Whether the last row has the defaults of all ports, so that what is written for it becomes a default.
    pub(crate) ends_with_defaults: bool,
    pub(crate) next: AfterRows,
}

/// What follows after some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AfterRows {
    /// Nothing is left.
    #[default]
    End,
    /// Some ports have neither an item nor a default.
    Suspend,
    /// Another step has the next rows.
    RunAgain,
}

impl TaskStep<'_> {
    /// Reads rows for [`TaskStep::for_inputs`] in advance, within limits.
    pub(crate) fn take_rows(&mut self, ports: &[PortName], rows_max: usize, bytes_max: usize) -> StepResult<InputRows> {
        let ports: Vec<PortAddress> = ports.iter().map(|port| self.inport(port.as_str())).collect::<StepResult<_>>()?;
        let (mut taken, mut bytes) = (InputRows::default(), 0);
        loop {
            match self.next_round(&ports)? {
                InputRound::End => return Ok(taken),
                InputRound::Suspend => return Ok(InputRows { next: AfterRows::Suspend, ..taken }),
                InputRound::Read if taken.rows.len() >= rows_max || bytes >= bytes_max => {
                    return Ok(InputRows { next: AfterRows::RunAgain, ..taken });
                }
                InputRound::Read => {}
                InputRound::Defaults(defaults) => {
                    self.set_value(StateField::parse(DEFAULTS_FIELD)?, defaults);
                    taken.ends_with_defaults = true;
                }
            }
            let row = self.read_row(&ports)?;
            bytes += row.iter().map(|value| value.as_str().len()).sum::<usize>();
            taken.rows.push(row);
            if taken.ends_with_defaults {
                return Ok(taken);
            }
        }
    }

    fn next_round(&mut self, ports: &[PortAddress]) -> StepResult<InputRound> {
        let mut states = Vec::with_capacity(ports.len());
        for port in ports {
            let buffer = self.buffer(port)?;
            let default = buffer.default.as_ref().map(|default| default.data.clone());
            states.push(InputState { has_item: buffer.left() > 0, default });
        }
        Ok(next_round(&states, self.state_value(DEFAULTS_FIELD)))
    }

    fn read_row(&mut self, ports: &[PortAddress]) -> StepResult<Vec<JsonText>> {
        ports.iter().map(|port| Ok(self.read_value(port)?.unwrap_or_else(JsonText::null))).collect()
    }

    /// Calls `work` with one value of each port, as long as each has one or a default. Values are a tuple or a list in
    /// the order of the ports.
    ///
    /// Stops the step to wait for input if some ports have items and others neither an item nor a default; what earlier
    /// rounds have done is committed. If all ports have defaults and no items, `work` is called once for these defaults,
    /// and what it writes to out ports becomes their default. The last defaults are stored in the field `for_inputs` of
    /// the state, which all calls of one worker share.
    ///
    /// A step whose rounds have used half of the changes or bytes of a unit is suspended, and another step goes on with
    /// the next round. A step that was refused, for example because its messages have too many receivers, makes half as
    /// many rounds.
    pub fn for_inputs<T: DeserializeOwned>(
        &mut self,
        ports: &[&str],
        mut work: impl FnMut(&mut Self, T) -> StepResult,
    ) -> StepResult {
        let ports: Vec<PortAddress> = ports.iter().map(|port| self.inport(port)).collect::<StepResult<_>>()?;
        for port in &ports {
            self.buffer(port)?;
        }
        self.end_log_entry();
        let mut rounds = 0;
        let most = self.rounds_max(&ports)?;
        loop {
            let is_last = match self.next_round(&ports)? {
                InputRound::End => return Ok(()),
                InputRound::Suspend => return self.suspend(),
                InputRound::Read if rounds > 0 && (rounds >= most || !self.has_room()) => {
                    self.run_again();
                    return self.suspend();
                }
                InputRound::Read => {
                    rounds += 1;
                    false
                }
                InputRound::Defaults(defaults) => {
                    self.set_value(StateField::parse(DEFAULTS_FIELD)?, defaults);
                    true
                }
            };
            let values = JsonText::list(&self.read_row(&ports)?).to()?;
            self.writes_defaults = is_last;
            let result = work(self, values);
            self.writes_defaults = false;
            result?;
            self.end_log_entry();
            if is_last {
                return Ok(());
            }
        }
    }
    /// How many rounds the step makes at most: as many as the longest port has items, or half of that for each time that
    /// the step was refused.
    fn rounds_max(&mut self, ports: &[PortAddress]) -> StepResult<usize> {
        let mut longest = 0;
        for port in ports {
            longest = self.buffer(port)?.left().max(longest);
        }
        Ok(self.share_of(usize::try_from(longest).unwrap_or(usize::MAX)))
    }
}
