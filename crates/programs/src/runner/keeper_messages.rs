//! Messages between the runner and the keeper, which the keeper client's thread takes and delivers.

use cronhold_keeper::client::{KeeperDelegate, KeeperEvent};
use cronhold_keeper::{FromKeeper, ProgramLaunch, ToKeeper, fail};
use cronhold_store::lock_mutex;

use super::LocalRunner;
use crate::event::ProgramEvent;
use crate::probes;

impl KeeperDelegate for LocalRunner {
    fn next_message(&self) -> Option<ToKeeper> {
        loop {
            let request = {
                let mut processes = self.processes();
                if let Some(message) = processes.next_control() {
                    return Some(message);
                }
                let is_first = processes.next_unanswered().is_none();
                let request = processes.next_launch(self.clock.uptime());
                if is_first && request.is_some() {
                    self.launch_wakeup.notify_one();
                }
                request
            };
            let Some(request) = request else { break };
            // Secrets are read from files here, while the table is not locked.
            let is_probe = lock_mutex(&self.command_probes).contains(request.run.id);
            let launch = match self.is_command(request.run.id) {
                true => self.host_env.launch_command(&request),
                false => self.host_env.launch(&request),
            };
            let launch = launch.map_err(|error| error.to_string()).and_then(|launch| {
                let output = if is_probe { probes::output_kept(&request.run) } else { launch.output };
                let prepared = self.plugins.prepare(&request, output);
                prepared.map_err(|error| format!("cannot prepare to read its messages: {error}"))?;
                Ok(ProgramLaunch { output, ..launch })
            });
            match launch {
                Ok(launch) => return Some(ToKeeper::Launch(Box::new(launch))),
                Err(why) => {
                    self.processes().refused(request.run.id, why);
                    self.report_wakeup.notify_one();
                }
            }
        }
        let forget = self.processes().next_forget();
        if forget.is_some() {
            fail::point("daemon-before-forget");
        }
        forget
    }

    fn on_event(&self, event: KeeperEvent) {
        let problem = self.processes().keeper_problem();
        match event {
            KeeperEvent::Connected { version, pid, warnings } => {
                let is_other = version != self.version;
                self.processes().connected(is_other);
                let own = self.version.clone();
                self.observe(&if is_other {
                    ProgramEvent::OtherKeeperConnected { version, own, pid }
                } else {
                    ProgramEvent::KeeperConnected { version, pid }
                });
                for warning in warnings {
                    self.observe(&ProgramEvent::KeeperWarning(warning));
                }
            }
            KeeperEvent::Received(message) => {
                match message {
                    FromKeeper::Started { .. } => fail::point("daemon-before-running"),
                    FromKeeper::Ended { .. } => fail::point("daemon-before-report"),
                    FromKeeper::Hello { .. }
                    | FromKeeper::Listed { .. }
                    | FromKeeper::Refused { .. }
                    | FromKeeper::Pong { .. } => {}
                }
                self.processes().receive(message);
            }
            KeeperEvent::Silent { pid } => self.processes().silent(pid),
            KeeperEvent::Disconnected(error) => {
                let event = ProgramEvent::unreachable(&error);
                if self.processes().disconnected(error) {
                    self.observe(&event);
                }
            }
        }
        if self.processes().keeper_problem() != problem {
            self.problem_wakeup.notify_one();
        }
        self.observe_table();
        self.report_wakeup.notify_one();
        self.notify_output();
    }
}
