//! Stores on a simulated disk: what was done is there after a normal end, after a loss of power, and for a program with
//! another schema.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod compaction;
mod migration;
#[path = "../schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;

use abi::desc::{TYPE_INT, TYPE_TEXT};
use abi::tables::IndexDesc;
use program::Program;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use store::disk::Disk;
use store::disk::simulated::{Action, Simulated};
use store::log::{Failure, Kind, Log, Objection, Preamble, Record, Setup, Visitor, scan};
use store::{Cell, Compaction, OpenError, Opened, Refusal, Settings, Store, Value};

const ITEM: u32 = 0;

/// `Item { name: Text @unique, n: Int, note: ?Text }`.
fn program() -> Program {
    let mut program = Program::new();
    let note = program.nullable(TYPE_TEXT);
    let _ = program.table("Item", &[("name", TYPE_TEXT, None), ("n", TYPE_INT, None), ("note", note, None)]);
    program.0.tables[0].indexes = vec![IndexDesc { columns: vec![0], unique: true }];
    program
}

type Failures = Arc<Mutex<Vec<Failure>>>;

fn try_open(disk: &Simulated, program: &Program) -> (Result<Opened, OpenError>, Failures) {
    let failures = Failures::default();
    let noted = Arc::clone(&failures);
    let settings = Settings {
        memory: 1 << 30,
        segment_bytes: 4096,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(move |failure| noted.lock().unwrap().push(failure)),
        compaction: Compaction { floor: 0, ratio: 0, on_failure: Box::new(|_| ()) },
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    (Store::open(disk, &program.0, settings), failures)
}

#[track_caller]
fn open(disk: &Simulated) -> Store {
    try_open(disk, &program()).0.map_err(|e| e.to_string()).unwrap().store
}

fn text(t: &str) -> Value {
    Value::Bytes(t.as_bytes().into())
}

fn add(store: &Store, name: &str, n: u64) -> Result<u64, Refusal> {
    store.insert(ITEM, vec![text(name), Value::Word(n), Value::Nil]).map(|(id, _)| id)
}

/// Name and number of a row.
fn item(store: &Store, id: u64) -> Option<(String, u64)> {
    let read = store.read_row(ITEM, id, |cells| match cells {
        [Cell::Bytes(name), Cell::Word(n), _] => (String::from_utf8_lossy(name).into_owned(), *n),
        _ => panic!("{cells:?}"),
    });
    read.ok()
}

#[test]
fn rows_changes_and_deletions_are_there_after_a_normal_end() {
    let disk = Simulated::new(1);
    let store = open(&disk);
    assert_eq!((add(&store, "a", 1), add(&store, "b", 2), add(&store, "c", 3)), (Ok(1), Ok(2), Ok(3)));
    let _ = store.set(ITEM, 2, 1, Value::Word(20)).unwrap();
    let _ = store.set(ITEM, 2, 2, text("note")).unwrap();
    let _ = store.set(ITEM, 2, 0, text("bb")).unwrap();
    let _ = store.delete(ITEM, 3).unwrap();
    store.close();
    drop(store);
    let store = open(&disk.restart());
    assert_eq!(item(&store, 1), Some(("a".into(), 1)));
    assert_eq!(item(&store, 2), Some(("bb".into(), 20)));
    assert_eq!(item(&store, 3), None);
    assert_eq!(store.read(ITEM, 2, 2, |cell| cell.to_value()), Ok(text("note")));
    // Indexes and ids go on where they were.
    assert_eq!(add(&store, "bb", 0), Err(Refusal::Unique));
    assert_eq!(add(&store, "b", 0), Ok(4));
}

/// Notes the preamble of the last segment.
struct Preambles(Preamble);

impl Visitor for Preambles {
    fn segment(&mut self, _: u64, preamble: &Preamble) -> Result<(), Objection> {
        self.0 = preamble.clone();
        Ok(())
    }

    fn record(&mut self, _: &Record<'_>) -> Result<(), Objection> {
        Ok(())
    }
}

#[test]
fn rec_4_a_record_about_a_row_that_is_gone_is_damage() {
    for kind in [Kind::Delete, Kind::Change] {
        let disk = Simulated::new(5);
        let store = open(&disk);
        let _ = add(&store, "a", 1).unwrap();
        let _ = store.delete(ITEM, 1).unwrap();
        store.close();
        drop(store);
        let mut preambles = Preambles(Preamble::default());
        let found = scan(&disk, &mut preambles).unwrap();
        let setup = Setup {
            preamble: preambles.0,
            segment_bytes: 4096,
            on_durable: Box::new(|_| ()),
            on_segment: Box::new(|| ()),
            on_failure: Box::new(|_| ()),
        };
        let log = Log::start(Arc::new(disk.clone()), found, setup).unwrap();
        let _ = log.stage(kind, |body| {
            body.extend_from_slice(&[0, 0]);
            body.extend_from_slice(&1u64.to_le_bytes());
            if kind == Kind::Change {
                body.extend_from_slice(&[1, 0]);
                body.extend_from_slice(&7u64.to_le_bytes());
            }
        });
        log.close();
        drop(log);
        let refusal = try_open(&disk, &program()).0.err().unwrap().to_string();
        assert!(refusal.contains("damaged at offset") && refusal.contains("a row that is not there"), "{refusal}");
    }
}

#[test]
fn id_3_the_number_of_a_deleted_row_is_not_used_again() {
    let disk = Simulated::new(2);
    let store = open(&disk);
    for n in 0..5 {
        let _ = add(&store, &n.to_string(), n).unwrap();
    }
    for id in 1..=5 {
        let _ = store.delete(ITEM, id).unwrap();
    }
    store.close();
    drop(store);
    let store = open(&disk.restart());
    assert_eq!(store.len(ITEM), 0);
    assert_eq!(add(&store, "again", 0), Ok(6));
}

/// After a loss of power there is what was durable, and of the rest a beginning.
#[test]
fn con_4_a_beginning_of_the_statements_survives_a_loss_of_power() {
    for seed in 0..200 {
        let disk = Simulated::new(seed);
        let store = open(&disk);
        let mut waited = 0;
        for n in 0..20u64 {
            let (id, seq) = store.insert(ITEM, vec![text(&n.to_string()), Value::Word(n), Value::Nil]).unwrap();
            if (n + seed) % 3 == 0 && store.wait(seq) {
                waited = id;
            }
        }
        let next = disk.restart();
        drop(store);
        let store = open(&next);
        let rows = store.len(ITEM);
        assert!(rows >= waited, "seed {seed}: {rows} rows, {waited} were durable");
        for id in 1..=rows {
            assert_eq!(item(&store, id), Some(((id - 1).to_string(), id - 1)), "seed {seed}");
        }
        assert_eq!(add(&store, "new", 0), Ok(rows + 1), "seed {seed}");
        store.close();
        drop(store);
        assert_eq!(open(&next.restart()).len(ITEM), rows + 1, "seed {seed}");
    }
}

/// While a sync does not come to its end, reads see what has been written, statements go on, and nothing is durable.
#[test]
fn con_3_reads_and_statements_do_not_wait_for_a_sync() {
    const LONG: Duration = Duration::from_secs(60);
    let disk = Simulated::new(6);
    let store = open(&disk);
    let (held, is_held) = mpsc::channel();
    let (go, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    disk.script(move |step| {
        if step.operation == "sync" {
            let _ = held.send(());
            // Ends when it is released for good.
            let _ = released.lock().unwrap().recv();
        }
        Action::Proceed
    });
    thread::scope(|scope| {
        let (_, first) = store.insert(ITEM, vec![text("a"), Value::Word(1), Value::Nil]).unwrap();
        is_held.recv_timeout(LONG).unwrap();
        let store = &store;
        let acknowledged = scope.spawn(move || store.wait(first));
        let (done, finished) = mpsc::channel();
        let others = scope.spawn(move || {
            let found = (item(store, 1), add(store, "b", 2), store.len(ITEM));
            let last = store.set(ITEM, 1, 1, Value::Word(3)).unwrap();
            done.send((found, item(store, 1), last)).unwrap();
        });
        let told = finished.recv_timeout(LONG);
        let is_waiting = !acknowledged.is_finished();
        drop(go);
        let (found, changed, last) = told.unwrap();
        assert_eq!(found, (Some(("a".into(), 1)), Ok(2), 2));
        assert_eq!(changed, Some(("a".into(), 3)));
        assert!(is_waiting && acknowledged.join().unwrap() && store.wait(last));
        others.join().unwrap();
    });
}

#[test]
fn scm_a_column_more_is_filled_and_told_of() {
    let disk = Simulated::new(3);
    let store = open(&disk);
    let _ = add(&store, "a", 1).unwrap();
    store.close();
    drop(store);
    let mut more = Program::new();
    let _ = more.table("Item", &[("count", TYPE_INT, None), ("n", TYPE_INT, None), ("name", TYPE_TEXT, None)]);
    let (opened, _) = try_open(&disk.restart(), &more);
    let Opened { store, notices, .. } = opened.map_err(|e| e.to_string()).unwrap();
    assert_eq!(notices, ["Item -note +count"]);
    assert_eq!(
        store.read_row(ITEM, 1, |cells| cells.iter().map(|c| c.to_value()).collect::<Vec<_>>()),
        Ok(vec![Value::Word(0), Value::Word(1), text("a")])
    );
}

#[test]
fn a_refused_program_changes_nothing() {
    let disk = Simulated::new(4);
    let store = open(&disk);
    let _ = add(&store, "a", 1).unwrap();
    store.close();
    drop(store);
    let disk = disk.restart();
    let before = disk.files();
    let (opened, _) = try_open(&disk, &Program::new());
    let refusal = opened.err().unwrap().to_string();
    assert!(refusal.contains("Item") && refusal.contains('1'), "{refusal}");
    assert_eq!(disk.files(), before);
    assert_eq!(open(&disk).len(ITEM), 1);
}
