//! Repairs of records that contradict each other, and of what the node was not notified of.

use super::*;

/// The set of a job names a run that the store has lost. Nothing else would ever remove it.
#[test]
fn active_entry_without_its_run_is_repaired_within_a_period_of_the_watchdog() {
    for is_added_again in [false, true] {
        let mut node = TestNode::new(0);
        node.request(put("j", "@every 1s"));
        let ghost = ActiveRun { run: RunId::from_key(START, "a lost run"), args: 0, target: None };
        let state = match node.record(RecordKey::JobState(job_id("j"))) {
            Some(Record::JobState(state)) => (*state).clone(),
            _ => JobState::new(job_id("j")),
        };
        let state = JobState { active: vec![ghost], ..state };
        write(&node.store, vec![RecordChange::Put(Record::JobState(Arc::new(state)))]);
        if is_added_again {
            node.request(Command::RemoveJob { id: job_id("j"), source: JobSource::Api, provided: Precondition::Any });
            node.request(put("j", "@every 1s"));
        }
        let begin = node.time.passed();
        node.until(|node, _| {
            let run = node.latest_run("j")?;
            (run.state != State::Skipped).then_some(())
        });
        let took = node.time.passed().minus(begin);
        assert!(took <= Span::from_secs(60), "{took}");
        assert_eq!(node.handle.counters().repaired, 1);
    }
}

/// The store loses the record of a node that drains. Its next heartbeat writes the record again.
#[test]
fn drain_survives_the_loss_of_the_record_of_its_node() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(5));
    let is_draining = |node: &TestNode| match node.record(RecordKey::Node(NODE)) {
        Some(Record::Node(record)) => Some(record.draining),
        _ => None,
    };
    for draining in [true, false] {
        node.request(Command::Drain { node: NODE, on: draining });
        node.pass(Span::from_secs(5));
        write(&node.store, vec![RecordChange::Delete(RecordKey::Node(NODE))]);
        assert_eq!(is_draining(&node), None);
        node.pass(Span::from_secs(5));
        assert_eq!(is_draining(&node), Some(draining));
    }
}

#[test]
fn lost_cursor_and_cursor_of_another_revision_are_repaired_within_a_period_of_the_watchdog() {
    let mut node = TestNode::new(0);
    let schedule = ScheduleId::parse("s").expect("an id");
    let cursor = |node: &TestNode| match node.record(RecordKey::Cursor(job_id("j"), schedule.clone())) {
        Some(Record::Cursor(cursor)) => Some((*cursor).clone()),
        _ => None,
    };
    node.request(put("j", "@every 1h"));
    let stored = cursor(&node).expect("a cursor");
    let next = stored.next;
    let far = Cursor { revision: 9, next: None, wake: None, ..stored };
    write(&node.store, vec![RecordChange::Put(Record::Cursor(Arc::new(far)))]);
    node.until(|node, _| cursor(node).filter(|cursor| cursor.next == next));
    write(&node.store, vec![RecordChange::Delete(RecordKey::Cursor(job_id("j"), schedule.clone()))]);
    node.until(|node, _| cursor(node).filter(|cursor| cursor.next == next));
    assert_eq!(node.handle.counters().repaired, 2);
}

/// A run whose notification was lost, behind more schedules that are paused than a pass once covered.
#[test]
fn watchdog_reaches_everything_behind_thousands_of_paused_schedules() {
    const PAUSED: usize = 5_200;
    let id = RunId::from_key(START, "by command");
    let mut node = TestNode::on_store(0, true, |store| {
        let world = world();
        let pause = ActivePause {
            since: START.minus(Span::from_secs(60)),
            by: Actor::Schedule,
            why: String::new(),
            until: None,
        };
        let pauses = PauseState { current: Some(pause), ..PauseState::default() };
        let schedule = ScheduleId::parse("s").expect("an id");
        let mut changes = Vec::new();
        for number in 0..PAUSED {
            let Command::PutJob { id, job, source, uid, .. } = put(&format!("p{number}"), "@every 1h") else {
                panic!()
            };
            let job = JobRecord::new(id.clone(), uid, job, "UTC".into(), source);
            let due = START.minus(Span::from_secs(30));
            let cursor = Cursor {
                job: id.clone(),
                schedule: schedule.clone(),
                since: due,
                last: None,
                next: Some(due),
                wake: Some(due),
                revision: job.revision,
                zones: world.zones_version.clone(),
                generation: 0,
                follows: None,
                at_start: false,
                streak: None,
                claimed: ClaimedRanges::default(),
            };
            changes.push(RecordChange::Put(Record::Job(Arc::new(job))));
            changes.push(RecordChange::Put(Record::Cursor(Arc::new(cursor))));
            let state = JobState { pauses: pauses.clone(), ..JobState::new(id) };
            changes.push(RecordChange::Put(Record::JobState(Arc::new(state))));
        }
        write(store, changes);
    });
    node.pass(Span::from_secs(2));
    node.request(put("j", "@every 1h"));
    let run = Run::blank(id, RunNumber(9), job_id("j"), JobUid::from_bits(1), START);
    let run = Run { state: State::Waiting, due: Some(START.plus(Span::from_secs(2))), ..run };
    let state = JobState { queue: vec![id.into()], next_number: 10, ..JobState::new(job_id("j")) };
    let records = [Record::Run(Arc::new(run)), Record::JobState(Arc::new(state))];
    write(&node.store, records.into_iter().map(RecordChange::Put).collect());
    let begin = node.time.passed();
    node.until(|node, _| match node.record(RecordKey::Run(id)) {
        Some(Record::Run(run)) => (run.state != State::Waiting).then_some(()),
        other => panic!("{other:?}"),
    });
    let took = node.time.passed().minus(begin);
    assert!(took <= Span::from_secs(60), "{took}");
    // A resume that the node was not notified of is found, too.
    let resumed = JobState::new(job_id("p5199"));
    write(&node.store, vec![RecordChange::Put(Record::JobState(Arc::new(resumed)))]);
    let begin = node.time.passed();
    node.until(|node, _| node.latest_run("p5199").map(|_| ()));
    let took = node.time.passed().minus(begin);
    assert!(took <= Span::from_secs(60), "{took}");
}
