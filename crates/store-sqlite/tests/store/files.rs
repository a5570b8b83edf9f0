//! Database files: locks, foreign and newer files, readers beside a writer, backups, and the reference.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::record::RecordKey;
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Query, RunQuery, Store, UnitRefusal};
use cronhold_store_sqlite::{SqliteOpenError, SqliteStore, backup, reference};
use rusqlite::Connection;

use crate::places::Place;
use crate::samples::{options, pair, run, run_id, unit};

#[test]
fn second_writer_is_refused() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("the first");
    let error = SqliteStore::open(place.database(), options()).expect_err("the second");
    assert!(matches!(error, SqliteOpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    let text = error.to_string();
    assert!(text.contains("cronhold.db is in use by another process with pid"), "{text}");
    let another = store.clone();
    drop(store);
    SqliteStore::open(place.database(), options()).expect_err("there is still a handle");
    drop(another);
    SqliteStore::open(place.database(), options()).expect("no other process has it");
}

#[test]
fn stale_lock_file_does_not_lock() {
    let place = Place::new();
    fs::write(place.file("cronhold.db.lock"), "99999\n").expect("a file");
    drop(SqliteStore::open(place.database(), options()).expect("no other process has it"));
    let text = fs::read_to_string(place.file("cronhold.db.lock")).expect("the file stays");
    assert_eq!(text, format!("{}\n", std::process::id()));
}

#[test]
fn emptied_store_is_refused_and_an_unfinished_creation_is_not() {
    let place = Place::new();
    drop(SqliteStore::open(place.database(), options()).expect("a new store"));
    fs::write(place.database(), "").expect("emptied");
    let error = SqliteStore::open(place.database(), options()).expect_err("it was emptied");
    assert!(matches!(error, SqliteOpenError::Empty { .. }), "{error}");
    assert_eq!(fs::metadata(place.database()).expect("a file").len(), 0);
    fs::write(place.file("cronhold.db.lock"), "99999\ncreating\n").expect("a file");
    drop(SqliteStore::open(place.database(), options()).expect("its creation is completed"));
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
}

#[test]
fn damaged_log_is_refused_and_unchanged() {
    let place = Place::new();
    drop(SqliteStore::open(place.database(), options()).expect("a new store"));
    let garbage = vec![0x5a; 10_000];
    fs::write(place.file("cronhold.db-wal"), &garbage).expect("a file");
    let error = SqliteStore::open(place.database(), options()).expect_err("it is damaged");
    assert!(matches!(error, SqliteOpenError::DamagedLog { .. }), "{error}");
    assert_eq!(fs::read(place.file("cronhold.db-wal")).expect("a file"), garbage);
    fs::remove_file(place.file("cronhold.db-wal")).expect("removed");
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
}

#[test]
fn lock_file_is_private() {
    let place = Place::new();
    let lock = place.file("cronhold.db.lock");
    fs::write(&lock, "99999\n").expect("a file");
    fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("a mode");
    for _ in 0..2 {
        drop(SqliteStore::open(place.database(), options()).expect("a store"));
        assert_eq!(fs::metadata(&lock).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    fs::remove_file(&lock).expect("removed");
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
    assert_eq!(fs::metadata(&lock).expect("a file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn foreign_file_is_refused_and_unchanged() {
    let place = Place::new();
    let song = Connection::open(place.file("songs.db")).expect("a database");
    song.execute_batch("CREATE TABLE songs (title); INSERT INTO songs VALUES ('Yesterday')").expect("a song");
    drop(song);
    fs::write(place.file("notes.db"), "Buy milk, and bread for the weekend.").expect("a file");
    fs::write(place.file("short.db"), "x").expect("a file");
    for (name, expected) in [
        ("songs.db", "is a database of another program and was not changed"),
        ("notes.db", "is not an SQLite database and was not changed"),
        ("short.db", "is not an SQLite database and was not changed"),
    ] {
        let path = place.file(name);
        let before = fs::read(&path).expect("it is there");
        for error in [SqliteStore::open(&path, options()), SqliteStore::open_reader(&path, options())] {
            let error = error.expect_err(name).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(backup(&path, &place.file("copy.db"), &mut |_| ()).is_err());
        assert_eq!(fs::read(&path).expect("it is there"), before, "{name}");
    }
    assert!(!place.file("copy.db").exists());
}

#[test]
fn newer_schema_is_refused() {
    let place = Place::new();
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
    let file = Connection::open(place.database()).expect("the file");
    let known: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    file.pragma_update(None, "user_version", known + 1).expect("a number");
    drop(file);
    let before = fs::read(place.database()).expect("it is there");
    let error = SqliteStore::open(place.database(), options()).expect_err("newer").to_string();
    let expected = format!("has schema version {}, but this cronhold supports {known} and older", known + 1);
    assert!(error.contains(&expected) && error.contains("use the cronhold that wrote it"), "{error}");
    assert_eq!(fs::read(place.database()).expect("it is there"), before);
}

#[test]
fn links_to_a_store_do_not_admit_a_second_writer() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    std::os::unix::fs::symlink(place.database(), place.file("link.db")).expect("a link");
    let error = SqliteStore::open(place.file("link.db"), options()).expect_err("the same store");
    assert!(matches!(error, SqliteOpenError::Locked { .. }), "{error}");
    drop(store);
    fs::hard_link(place.database(), place.file("hard.db")).expect("a link");
    let error = SqliteStore::open(place.file("hard.db"), options()).expect_err("another name").to_string();
    assert!(error.contains("is a hard link"), "{error}");
}

#[test]
fn removed_file_rejects_writes() {
    for gone in ["cronhold.db", "cronhold.db.lock"] {
        let place = Place::new();
        let store = SqliteStore::open(place.database(), options()).expect("a store");
        assert!(block_on(store.commit(vec![unit(1, run(1))]))[0].is_ok());
        fs::rename(place.file(gone), place.file("elsewhere")).expect("it was there");
        let results = block_on(store.commit(vec![unit(2, run(2))]));
        let Err(UnitRefusal::Fault(Fault::ReadOnly(message))) = &results[0] else { panic!("{results:?}") };
        assert!(message.contains(gone) && message.contains("was removed or replaced"), "{message}");
        fs::rename(place.file("elsewhere"), place.file(gone)).expect("it is put back");
        assert!(block_on(store.commit(vec![unit(2, run(2))]))[0].is_ok(), "the store works again");
    }
}

#[test]
fn unreadable_row_does_not_hide_others() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    for number in 1..=3 {
        assert!(block_on(store.commit(vec![unit(number, run(number))]))[0].is_ok());
    }
    let file = Connection::open(place.database()).expect("the file");
    file.execute("UPDATE runs SET log = '[' WHERE number = 2", []).expect("a person can do that");
    let page = block_on(store.page(&Query::Runs(RunQuery::default()), 3)).expect("it can be read");
    assert_eq!((page.records.len(), page.unreadable.len()), (2, 1));
    assert!(
        page.unreadable[0].reason.contains("table runs") && page.unreadable[0].reason.contains("column log"),
        "{page:?}"
    );
    assert_eq!(page.next(3), Some(RecordKey::Run(run_id(1))), "there may be more behind it");
    let fault = block_on(store.load(&[RecordKey::Run(run_id(2))])).expect_err("it cannot be read");
    assert!(matches!(fault, Fault::Unreadable(_)), "{fault}");
}

#[test]
fn invalid_paths_are_reported() {
    let place = Place::new();
    let error = SqliteStore::open(place.file("no/such/folder/x.db"), options()).expect_err("no folder").to_string();
    assert!(error.contains("no/such/folder/x.db: ") && error.contains("create its directory"), "{error}");
    let error = SqliteStore::open_reader(place.database(), options()).expect_err("no file").to_string();
    assert!(error.contains("there is no store at") && error.contains("cronhold.db"), "{error}");
    assert!(!place.database().exists(), "a reader makes nothing");
}

#[test]
fn readers_work_while_a_writer_is_open() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    let reader = SqliteStore::open_reader(place.database(), options()).expect("a reader");
    for number in 0..20 {
        let results = block_on(store.commit(vec![unit(number, run(number))]));
        assert!(results[0].is_ok(), "{results:?}");
        let found = block_on(reader.load(&[RecordKey::Run(run_id(number))])).expect("it can be read");
        assert!(found[0].is_some(), "what was answered as done is there for everybody");
    }
    let refused = block_on(reader.commit(vec![unit(99, run(99))]));
    let Err(UnitRefusal::Fault(Fault::Permanent(message))) = &refused[0] else { panic!("{refused:?}") };
    assert!(message.contains("is open for reading only"), "{message}");
    drop(store);
    let page = block_on(reader.page(&Query::Runs(RunQuery::default()), 100)).expect("it can be read");
    assert_eq!(page.records.len(), 20, "a reader works without the writer");
}

#[test]
fn backup_is_a_snapshot_while_writes_continue() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    // Enough for several steps, so that commits happen between them.
    let many = (0..8_000).map(|number| unit(number, run(number))).collect();
    assert!(block_on(store.commit(many)).iter().all(Result::is_ok));
    let over = AtomicBool::new(false);
    let steps = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Two runs per unit, so that a partial unit would be visible.
            let mut number = 10_000;
            while !over.load(Ordering::Relaxed) {
                let pair = pair(number, run(number), run(number + 1));
                assert!(block_on(store.commit(vec![pair]))[0].is_ok());
                number += 2;
            }
        });
        let mut steps = Vec::new();
        backup(&place.database(), &place.file("copy.db"), &mut |progress| {
            steps.push(progress);
            let number = 1_000_000 + 2 * steps.len() as u64;
            // At least one commit happens between two steps.
            assert!(block_on(store.commit(vec![unit(number, run(number))]))[0].is_ok());
        })
        .expect("a backup");
        over.store(true, Ordering::Relaxed);
        steps
    });
    assert!(steps.len() > 1, "the copy took several steps");
    assert!(steps.windows(2).all(|pair| pair[0].done < pair[1].done && pair[0].total == pair[1].total), "{steps:?}");
    assert!(!place.file("copy.db-wal").exists(), "it is one file");
    let copy = Connection::open(place.file("copy.db")).expect("the copy");
    let check: String = copy.pragma_query_value(None, "integrity_check", |row| row.get(0)).expect("a word");
    assert_eq!(check, "ok");
    drop(copy);
    let copy = SqliteStore::open(place.file("copy.db"), options()).expect("the copy is a store");
    let page = block_on(copy.page(&Query::Runs(RunQuery::default()), 1_000_000)).expect("it can be read");
    assert!(page.records.len() >= 8_000 && page.records.len().is_multiple_of(2), "{}", page.records.len());
}

/// Jobs and outputs can contain secrets.
#[test]
fn new_files_are_readable_by_their_owner_only() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    backup(&place.database(), &place.file("copy.db"), &mut |_| ()).expect("a backup");
    for name in ["cronhold.db", "cronhold.db-wal", "cronhold.db-shm", "copy.db"] {
        let mode = fs::metadata(place.file(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(store);
    fs::set_permissions(place.database(), Permissions::from_mode(0o640)).expect("ours");
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
    let mode = fs::metadata(place.database()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "what its owner has set stays");
}

#[test]
fn failed_backup_has_a_hint() {
    let place = Place::new();
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
    let error = backup(&place.database(), &place.file("none/copy.db"), &mut |_| ()).expect_err("no directory");
    assert!(error.to_string().ends_with("(create its directory first)"), "{error}");
}

#[test]
fn backup_does_not_overwrite_files() {
    let place = Place::new();
    drop(SqliteStore::open(place.database(), options()).expect("a store"));
    fs::write(place.file("copy.db"), "precious").expect("a file");
    let error = backup(&place.database(), &place.file("copy.db"), &mut |_| ()).expect_err("it is there").to_string();
    assert!(error.contains("copy.db already exists and was not changed"), "{error}");
    assert_eq!(fs::read_to_string(place.file("copy.db")).expect("it is there"), "precious");
    let error = backup(&place.file("none.db"), &place.file("b.db"), &mut |_| ()).expect_err("no store").to_string();
    assert!(error.contains("there is no store at"), "{error}");
    let left: Vec<_> =
        fs::read_dir(place.file("")).expect("the folder").flatten().map(|file| file.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("part")), "{left:?}");
}

#[test]
fn queries_of_the_reference_work() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/sqlite.md");
    let found = fs::read_to_string(path).expect("the document is there");
    assert!(found == reference::document(), "docs/reference/sqlite.md is old; run `./dev docs`");
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    assert!(block_on(store.commit(vec![unit(1, run(1))]))[0].is_ok());
    let file = Connection::open(place.database()).expect("the file");
    let queries = reference::queries();
    assert!(queries.len() > 5);
    for query in queries {
        let mut statement = file.prepare(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
        statement.query_map([], |_| Ok(())).expect("a valid query").for_each(|row| row.expect("a row"));
    }
    let row = "SELECT run, state, nominal, started FROM runs_view";
    let row: [String; 4] =
        file.query_row(row, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).expect("the run");
    assert_eq!(row, ["reports/a#1", "running", "2027-01-15T08:00:01.000Z", "2027-01-15T08:00:01Z"]);
}
