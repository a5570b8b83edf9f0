//! Which parts of a stored output are standard error. The keeper records the parts of the file; where they are in the
//! stored text depends on what was left out.

use cronhold_core::record::StderrParts;
use cronhold_keeper::STDERR_PARTS_MAX;

use super::progress::OutputProgress;
use super::restarts::FileAnchor;

/// The parts of the stored output that are standard error, after the first `total` bytes of the file were stored as far
/// as `progress`. `parts` are those of the file. The first `head` bytes of a long output are stored.
pub(super) fn stored_stderr(parts: &[(u64, u64)], progress: &OutputProgress, total: u64, head: u64) -> StderrParts {
    let is_partial = parts.len() == STDERR_PARTS_MAX;
    StderrParts { parts: stored_parts(parts, progress.anchor, total, head), is_partial }
}

/// Parts of a file as parts of the stored text. What is not stored is left out.
fn stored_parts(parts: &[(u64, u64)], anchor: FileAnchor, total: u64, head: u64) -> Vec<(u64, u64)> {
    // The beginning of a long output is stored at the offsets of the file. If the program truncated its file, it is not
    // known what was stored before the anchor.
    let head = if anchor.file > 0 && anchor.before_file == 0 { head.min(anchor.file) } else { 0 };
    let in_head = parts.iter().filter_map(|part| within(*part, 0, head));
    let shifted = |(from, until): (u64, u64)| (from - anchor.file + anchor.stored, until - anchor.file + anchor.stored);
    let in_rest = parts.iter().filter_map(|part| within(*part, anchor.file, total)).map(shifted);
    in_head.chain(in_rest).collect()
}

/// What a part has in common with a range.
fn within((from, until): (u64, u64), least: u64, most: u64) -> Option<(u64, u64)> {
    let (from, until) = (from.max(least), until.min(most));
    (from < until).then_some((from, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_short_output_stay_where_they_are() {
        assert_eq!(stored_parts(&[(0, 3), (9, 12)], FileAnchor::default(), 10, 100), [(0, 3), (9, 10)]);
    }

    #[test]
    fn parts_of_a_long_output_move_with_its_end() {
        let head = 1_000;
        let (file, notice) = (head + 5_000, 40);
        let anchor = FileAnchor { stored: head + notice, file, before_file: 0 };
        let parts = [(1, 2), (head - 1, head + 9), (file - 3, file + 7), (file + 90, file + 100)];
        let end = head + notice;
        assert_eq!(
            stored_parts(&parts, anchor, file + 95, head),
            [(1, 2), (head - 1, head), (end, end + 7), (end + 90, end + 95)]
        );
    }

    #[test]
    fn parts_before_a_truncation_are_unknown() {
        let anchor = FileAnchor { stored: 500, file: 0, before_file: 400 };
        assert_eq!(stored_parts(&[(2, 4)], anchor, 10, 100), [(502, 504)]);
    }
}
