//! Three servers that form an ensemble.

use std::fmt::Write as _;

use cronhold_store_remote::testing::{free_port, until};

use super::server::{EnsembleMember, ZooKeeperServer};

/// Members of an ensemble.
const MEMBERS: usize = 3;

/// An ensemble. Dropping it kills all members.
#[derive(Debug)]
pub struct ZooKeeperEnsemble {
    members: Vec<ZooKeeperServer>,
}

impl ZooKeeperEnsemble {
    /// Starts all members, and waits until they have a leader.
    pub fn start() -> Self {
        let mut servers = String::new();
        for number in 1..=MEMBERS {
            let _ = writeln!(servers, "server.{number}=127.0.0.1:{}:{}", free_port(), free_port());
        }
        let member =
            |number| ZooKeeperServer::of_ensemble(free_port(), EnsembleMember { number, servers: servers.clone() });
        let mut ensemble = Self { members: (1..=MEMBERS).map(member).collect() };
        ensemble.members.iter_mut().for_each(ZooKeeperServer::launch);
        ensemble.wait_until_complete();
        ensemble
    }

    /// The URL of a root, with all members.
    pub fn url(&self, root: &str) -> String {
        let hosts: Vec<String> = self.members.iter().map(|member| format!("127.0.0.1:{}", member.port())).collect();
        format!("zk://{}{root}", hosts.join(","))
    }

    /// Kills the leader, and returns its place.
    pub fn kill_leader(&mut self) -> usize {
        let place =
            until("there is a leader", || self.members.iter().position(|member| member.is_leader() == Some(true)));
        self.members[place].kill();
        place
    }

    /// Kills a member that is not the leader, and returns its place.
    pub fn kill_follower(&mut self) -> usize {
        let place =
            until("there is a follower", || self.members.iter().position(|member| member.is_leader() == Some(false)));
        self.members[place].kill();
        place
    }

    /// Starts a member that was killed, and waits until all members reply.
    pub fn start_member(&mut self, place: usize) {
        self.start_members(&[place]);
    }

    /// Starts members that were killed, and waits until all members reply. Without a majority none of them does.
    pub fn start_members(&mut self, places: &[usize]) {
        places.iter().for_each(|place| self.members[*place].launch());
        self.wait_until_complete();
    }

    /// Copies the files of all members as they are now.
    pub fn back_up(&self) {
        self.members.iter().for_each(ZooKeeperServer::back_up);
    }

    /// Kills all members, and starts them with the copies of their files.
    pub fn restore(&mut self) {
        self.members.iter_mut().for_each(ZooKeeperServer::restore);
        self.members.iter_mut().for_each(ZooKeeperServer::launch);
        self.wait_until_complete();
    }

    fn wait_until_complete(&self) {
        until("all members reply", || self.members.iter().all(|member| member.is_leader().is_some()).then_some(()));
    }
}
