//! Cases about obligations: records that are due are found by time.

use cronhold_core::State;
use cronhold_core::record::Record;
use cronhold_schedule::{Instant, Span};

use super::pages::PAGES_MAX;
use super::samples::{action, at, backlog, cursor, job, job_state, run_due, run_id, run_in, run_late, triggers};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::Obligation;

/// Due records are returned whatever their kind, and later ones are not returned. The earliest come first, except that a
/// store may round times.
pub fn due_records_are_ordered(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let micro = |at: Instant| at.plus(Span::from_micros(1));
    let records = [
        cursor("a", "s", Some(at(5))),
        cursor("a", "t", Some(at(1))),
        cursor("a/b", "s", Some(micro(at(1)))),
        cursor("b", "s", None),
        cursor("c", "early", Some(Instant::from_secs(-5))),
        backlog("a", "s", at(2)),
        backlog("a", "t", at(1)),
        backlog("z", "s", micro(at(9))),
        action(run_id(7, 1), 0, Some(at(3))),
        action(run_id(6, 1), 10, Some(at(1))),
        action(run_id(6, 1), 9, Some(at(1))),
        action(run_id(6, 1), 8, None),
        triggers("a", Some(at(3))),
        triggers("b", Some(at(1))),
        triggers("c", None),
        run_due(run_id(7, 1), "a", Some(at(3))),
        run_due(run_id(6, 2), "a", Some(at(1))),
        run_due(run_id(6, 1), "a", Some(at(1))),
        run_due(run_id(9, 1), "a", None),
        run_late(run_id(9, 3), Some(at(9)), Some(at(1))),
        run_late(run_id(9, 4), Some(at(1)), Some(at(9))),
        run_late(run_id(9, 5), None, Some(at(4))),
        run_in(run_id(9, 2), "a", State::Running, Some(1)),
        job("a", ""),
        job_state("a", 1),
    ];
    writer.put_all(&records);
    assert_eq!(sorted(due(&writer, at(9), 100)), obligations(&records, at(9)));
    for until in [Instant::EPOCH.minus(Span::from_secs(10)), Instant::EPOCH, at(0), at(1), micro(at(1)), at(4)] {
        assert_eq!(sorted(due(&writer, until, 100)), obligations(&records, until), "until {until}");
    }
    let late = [run_late(run_id(9, 3), Some(at(9)), None), run_late(run_id(9, 5), None, None)];
    writer.put_all(&late);
    assert_eq!(due(&writer, at(9), 100).len(), obligations(&records, at(9)).len() - 1, "one is still due, one is not");
    writer.put_all(&records);
    let far = [cursor("x", "s", Some(at(300))), cursor("b", "far", Some(at(200))), cursor("c", "far", Some(at(100)))];
    writer.put_all(&far);
    let found = due(&writer, at(400), 100);
    assert!(found.ends_with(&obligations(&far, at(400))), "{found:?}");
    assert_eq!(due(&writer, at(99), 100).len(), obligations(&records, at(9)).len() + 1);
}

/// Due records are returned in pages, even if many are due at the same time, and concurrent changes hide no other
/// record.
pub fn due_records_are_paged(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut records = Vec::new();
    for number in 0..60_u16 {
        let name = format!("job {number:02}");
        let when = at(i64::from(number / 25));
        records.extend([cursor(&name, "s", Some(when)), backlog(&name, "s", when)]);
        records.push(run_due(run_id(0, number), &name, Some(when)));
    }
    writer.put_all(&records);
    let all = obligations(&records, at(1));
    assert_eq!(all.len(), 150);
    for limit in [1, 7, 149, 150, 151] {
        assert_eq!(sorted(walk(&mut writer, at(1), limit, |_| {})), all, "{limit} at a time");
    }
    assert_eq!(due(&writer, at(1), 0), []);

    // The first that are returned.
    let of = |obligation: &Obligation| records.iter().find(|record| record.key() == obligation.key).cloned();
    let first: Vec<Record> = due(&writer, at(1), 30).iter().filter_map(of).collect();
    let mut rounds = 0;
    let found = walk(&mut writer, at(1), 40, |writer| {
        // Between pages, a record that was already returned disappears, and one is added before the current position.
        rounds += 1;
        first[3 * rounds..3 * rounds + 3].iter().for_each(|record| writer.delete(&record.key()));
        writer.put(&cursor(&format!("new {rounds}"), "s", Some(Instant::EPOCH)));
    });
    let stays = |obligation: &&Obligation| first.iter().all(|record| record.key() != obligation.key);
    let stayed = sorted(found.iter().filter(stays).cloned().collect());
    assert!(all.iter().filter(stays).eq(&stayed), "everything else was found once");
    assert!(rounds >= 3, "there were pages in between");
}

/// Records that are no longer due are no longer returned.
pub fn completed_records_are_not_due(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let run = run_id(1, 1);
    let records = [cursor("a", "s", Some(at(1))), backlog("a", "s", at(1)), run_due(run, "a", Some(at(1)))];
    writer.put_all(&records);
    assert_eq!(sorted(due(&writer, at(2), 9)), obligations(&records, at(2)));
    let later = [cursor("a", "s", Some(at(20))), backlog("a", "s", at(10)), run_due(run, "a", Some(at(30)))];
    writer.put_all(&later);
    assert_eq!(due(&writer, at(2), 9), [], "all were put off");
    assert_eq!(sorted(due(&writer, at(30), 9)), obligations(&later, at(30)), "each is due once, at its new time");
    writer.put_all(&records);
    assert_eq!(sorted(due(&writer, at(2), 9)), obligations(&records, at(2)), "all were brought forward");
    writer.put_all(&[cursor("a", "s", None), run_in(run, "a", State::Success, None)]);
    writer.delete(&records[1].key());
    assert_eq!(due(&writer, at(99), 9), [], "two have no time any more, one is gone");
    writer.put_all(&later);
    later.iter().for_each(|record| writer.delete(&record.key()));
    assert_eq!(due(&writer, at(99), 9), [], "all are gone");
}

fn due(writer: &TestWriter, until: Instant, limit: usize) -> Vec<Obligation> {
    block_on(writer.store.due(None, until, limit)).expect("due records can be read")
}

fn sorted(mut found: Vec<Obligation>) -> Vec<Obligation> {
    found.sort();
    found
}

/// The expected obligations of these records.
fn obligations(records: &[Record], until: Instant) -> Vec<Obligation> {
    let due = records.iter().filter_map(|record| Some(Obligation { at: record.due()?, key: record.key() }));
    let mut due: Vec<Obligation> = due.filter(|obligation| obligation.at <= until).collect();
    due.sort();
    due
}

/// Collects all pages, and runs `between` after each.
fn walk(
    writer: &mut TestWriter,
    until: Instant,
    limit: usize,
    mut between: impl FnMut(&mut TestWriter),
) -> Vec<Obligation> {
    let mut found: Vec<Obligation> = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = block_on(writer.store.due(found.last(), until, limit)).expect("due records can be read");
        assert!(page.len() <= limit, "{} are more than {limit}", page.len());
        let is_last = page.len() < limit;
        found.extend(page);
        if is_last {
            return found;
        }
        between(writer);
    }
    panic!("more than {PAGES_MAX} pages of due records");
}
