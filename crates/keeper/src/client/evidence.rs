//! What a keeper that does not respond has done about a launch, as its journal shows. A keeper writes a launch to its
//! journal before it starts the program, and compares the time with `launch_by` after that. So once `launch_by` has
//! passed, a run that is not in the journal was not started and will not be.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::journal;
use crate::protocol::RunKey;

/// The length of a run in the journal.
const KEY_LENGTH: usize = 32;

/// Which of these runs the journal of a data directory mentions. Lines need not be complete: one that is being written
/// counts.
pub fn runs_in_journal(data: &Path, runs: &BTreeSet<RunKey>) -> io::Result<BTreeSet<RunKey>> {
    let bytes = fs::read(data.join("keeper").join(journal::NAME))?;
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    let words = bytes.split(|byte| !is_hex(byte)).filter(|word| word.len() == KEY_LENGTH);
    let keys = words.filter_map(|word| RunKey::parse(std::str::from_utf8(word).ok()?));
    Ok(keys.filter(|key| runs.contains(key)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalEntry;

    #[test]
    fn journal_shows_which_launches_a_keeper_has_taken() {
        let data = std::env::temp_dir().join(format!("cronhold-evidence-{}", std::process::id()));
        let runs: BTreeSet<RunKey> = (1..=3).map(RunKey).collect();
        assert!(runs_in_journal(&data, &runs).is_err());
        fs::create_dir_all(data.join("keeper")).expect("a directory");
        let mut text = Vec::new();
        JournalEntry::Boot("0123".to_owned()).append(&mut text);
        JournalEntry::Intent { run: RunKey(1), output: Some(7) }.append(&mut text);
        JournalEntry::Refused(RunKey(9)).append(&mut text);
        // The journal has its final size from the start.
        text.extend(format!("intent {}", RunKey(3)).bytes().chain([0; 100]));
        fs::write(data.join("keeper").join(journal::NAME), text).expect("written");
        let found = runs_in_journal(&data, &runs).expect("a journal");
        assert_eq!(found, BTreeSet::from([RunKey(1), RunKey(3)]));
        fs::remove_dir_all(&data).expect("removed");
    }
}
