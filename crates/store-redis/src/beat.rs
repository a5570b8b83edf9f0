//! Beats: a node says that it is alive and renews the locks of its runs. Now and then it does the same for those who
//! read Cronken's keys.

use std::sync::LazyLock;

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Record};
use cronhold_store::{Fault, Hint};
use redis::Value;
use tokio::time::Instant;

use crate::codec::{self, reply};
use crate::hints::{self, HandleId};
use crate::inner::Inner;
use crate::link::Script;
use crate::peers::CRONKEN;
use crate::tend;

static BEAT: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("scripts/prelude.lua"), include_str!("scripts/beat.lua")]));

impl Inner {
    /// Writes a node and renews locks. Answers with those that are lost.
    pub(crate) async fn beat(
        &self,
        by: HandleId,
        node: Node,
        locks: Vec<(LockName, RunId)>,
    ) -> Result<Vec<LockName>, Fault> {
        self.names.learn(&node);
        let (epoch, seq) = self.known.get();
        let mut told = Vec::new();
        hints::write(&Hint::new(Key::Node(node.id)), &mut told);
        let mut args = vec![
            self.settings().namespace.clone().into_bytes(),
            epoch.into_bytes(),
            seq.to_string().into_bytes(),
            by.text().into_bytes(),
            node.id.to_string().into_bytes(),
            codec::body(&Record::Node(node.clone().into())),
            told,
        ];
        for (name, holder) in &locks {
            args.push(name.as_str().as_bytes().to_vec());
            args.push(holder.to_string().into_bytes());
        }
        // A lock that was renewed on a server that is lost then was not renewed.
        let behind = if locks.is_empty() { Vec::new() } else { self.wait_for_replicas() };
        let was_enrolled = self.peers.is_enrolled();
        let mut called = self.link.call_all(&BEAT, &self.slot, vec![args], behind).await;
        self.has_waited(&called.behind);
        let answer = reply::list(called.answers.pop().expect("each call has an answer")?)?;
        let mut answer = self.standing(answer).await?.into_iter();
        self.known.advance(reply::number(&answer.next().unwrap_or(Value::Nil))?.cast_unsigned());
        let has_peers = reply::number(&answer.next().unwrap_or(Value::Nil))? != 0;
        self.peers.answered(if has_peers { CRONKEN } else { "" }, was_enrolled);
        let lost = answer.map(|place| {
            let place = reply::number(&place)?;
            let lock = usize::try_from(place).ok().and_then(|place| locks.get(place));
            lock.map(|(name, _)| name.clone()).ok_or_else(|| reply::strange("the place of a lock", &Value::Int(place)))
        });
        let lost = lost.collect::<Result<_, Fault>>()?;
        if self.tending.comes(node.id, Instant::now(), self.settings().heartbeat) {
            self.tend(&node).await;
            self.count_replicas().await;
            self.recall_some().await;
        }
        Ok(lost)
    }

    /// What others see of the node. That it could not be shown harms nobody: the next beat tries again.
    async fn tend(&self, node: &Node) {
        let tended = tend::tend(&self.link, &self.url, self.peers.shown_settings(), node, self.random_text()).await;
        match tended {
            Ok(tended) => self.tally.failed(tended.failures),
            Err(_) => self.tending.forget(node.id),
        }
    }
}
