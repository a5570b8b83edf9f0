//! Idempotency keys: two requests with the same key create one run. The mark of a key is stored with the run; see
//! `Command::Keyed`.

use cronhold_core::command::Command;
use cronhold_core::record::LockName;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use sha2::{Digest, Sha256};

/// A request with a key.
#[derive(Debug)]
pub(crate) struct KeyedRequest<'a> {
    pub(crate) job: &'a JobId,
    /// Distinguishes requests of one job, such as the run to repeat.
    pub(crate) what: &'a str,
    pub(crate) key: &'a str,
    /// The time for which the run is requested; the same key with another time is another request.
    pub(crate) at: Option<Instant>,
}

impl KeyedRequest<'_> {
    /// Makes a command that creates a run take effect once for this key.
    pub(crate) fn once(&self, command: Command) -> Command {
        let digest: String = self.digest().iter().map(|byte| format!("{byte:02x}")).collect();
        let key = LockName::of_request(&digest).expect("a digest is short");
        Command::Keyed { key, command: Box::new(command) }
    }

    /// The id of a run for a time. The same key and the same time give the same id, also after the key has expired.
    pub(crate) fn id(&self, at: Instant) -> RunId {
        let mut own = [0; 10];
        own.copy_from_slice(&self.digest()[..10]);
        RunId::from_random(at, own)
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let at = self.at.map(|at| at.to_string()).unwrap_or_default();
        for part in [self.job.as_str(), self.what, self.key, &at] {
            // Each part has its length as a prefix, so that different lists of parts never have the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().into()
    }
}
