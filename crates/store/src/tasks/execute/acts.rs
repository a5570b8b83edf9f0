//! One branch for each act.

use cronhold_core::task::{ActOutcome, PortAddress, TaskAct};

use super::super::rows::TaskRows;
use super::UnitExecutor;
use super::publish::OutgoingMessage;

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Carries out one act.
    pub(super) fn act(&mut self, act: &TaskAct) -> Result<ActOutcome, R::Error> {
        match act {
            TaskAct::Run { task, forced, at } => {
                let task = self.target_task(*task)?;
                return self.request_step(task, *forced, *at);
            }
            TaskAct::RunParent { task, forced, at } => {
                let task = self.target_task(*task)?;
                return self.request_parent_step(&task, *forced, *at);
            }
            TaskAct::Terminate { task, recursive } => {
                let task = self.target_task(*task)?;
                return self.terminate(task, *recursive);
            }
            TaskAct::Create(new) => return self.create(new),
            TaskAct::Delete { task } => {
                let task = self.target_task(*task)?;
                return self.delete(&task);
            }
            TaskAct::Adopt { parent, child, name } => {
                let child = self.target_task(*child)?;
                let parent = self.target(*parent)?;
                self.adopt(parent, child, name)?;
            }
            TaskAct::Disown { parent, child } => {
                let parent = self.target(*parent)?;
                self.disown(parent, child)?;
            }
            TaskAct::AddAlias { task, alias } => {
                let task = self.target(*task)?;
                self.add_alias(task, alias)?;
            }
            TaskAct::RemoveAlias { task, alias } => {
                let task = self.target(*task)?;
                self.remove_alias(task, alias)?;
            }
            TaskAct::SetState { task, fields } => {
                let task = self.target_task(*task)?.id;
                for (field, value) in fields {
                    self.rows.put_state(task, field, value)?;
                }
                self.changed_states.insert(task);
            }
            TaskAct::UnsetState { task, fields } => {
                let task = self.target_task(*task)?.id;
                for field in fields {
                    self.rows.delete_state(task, field)?;
                }
            }
            TaskAct::Publish { channel, message } => {
                self.outbox.push_back(OutgoingMessage::of_act(channel, message));
            }
            of_ports => return self.act_on_ports(of_ports),
        }
        Ok(ActOutcome::Done)
    }

    /// Carries out an act on ports.
    fn act_on_ports(&mut self, act: &TaskAct) -> Result<ActOutcome, R::Error> {
        match act {
            TaskAct::Take { port, position, count } => {
                let port = self.address(port)?;
                self.take_items(&port, *position, *count)?;
            }
            TaskAct::Pop { port, count, or_default } => {
                let port = self.address(port)?;
                return self.pop_items(&port, *count, *or_default).map(ActOutcome::Items);
            }
            TaskAct::Write { port, items, as_default, notify } => {
                let port = self.address(port)?;
                self.write_port(&port, items, *as_default, *notify)?;
            }
            TaskAct::SetDefault { port, item } => {
                let port = self.address(port)?;
                self.set_default(&port, item.clone())?;
            }
            TaskAct::SetChannels { port, channels } => {
                let port = self.address(port)?;
                self.set_channels(&port, channels)?;
            }
            TaskAct::SetPorts { task, direction, ports } => {
                let task = self.target_task(*task)?;
                self.set_ports(&task, *direction, ports)?;
            }
            TaskAct::Connect { from, to } => {
                let from = self.address(from)?;
                let to: Vec<PortAddress> = to.iter().map(|port| self.address(port)).collect::<Result<_, _>>()?;
                return self.connect_ports(&from, &to);
            }
            _ => unreachable!("the other acts are not about ports"),
        }
        Ok(ActOutcome::Done)
    }
}
