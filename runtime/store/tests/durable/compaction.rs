//! The log stays near the size of the rows, and nobody notices otherwise: not other threads, not a later program, and
//! not one that starts after a crash at any moment.

use super::program::{Program, indexes};
use super::{Failures, text};
use abi::desc::{TYPE_INT, TYPE_TEXT};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use store::disk::Disk;
use store::disk::simulated::{Action, EIO, Simulated};
use store::{Compaction, OpenError, Opened, Seq, Settings, Store, Value};

const ITEM: u32 = 0;
const TAG: u32 = 1;

/// What must come to pass comes within this time.
const LONG: Duration = Duration::from_secs(60);

/// `Item { name: Text @unique, n: Int, note: ?Text }`, `Tag { label: Text, item: ?ref Item }`.
fn program() -> Program {
    let mut program = Program::new();
    let note = program.nullable(TYPE_TEXT);
    let row = program.table("Item", &[("name", TYPE_TEXT, None), ("n", TYPE_INT, None), ("note", note, None)]);
    program.unique(0);
    let item = program.nullable(row);
    let _ = program.table("Tag", &[("label", TYPE_TEXT, None), ("item", item, None)]);
    program.last().indexes = indexes(&[(&[1], false)]);
    program
}

/// How a store is opened, and what it has told.
#[derive(Clone)]
struct Setup {
    segment_bytes: u64,
    floor: u64,
    ratio: u64,
    failures: Failures,
    compaction_failures: Arc<Mutex<Vec<String>>>,
}

impl Setup {
    fn new(segment_bytes: u64, floor: u64, ratio: u64) -> Setup {
        Setup { segment_bytes, floor, ratio, failures: Failures::default(), compaction_failures: Arc::default() }
    }

    /// Everything that can be compacted is, all the time.
    fn always() -> Setup {
        Setup::new(512, 512, 1)
    }

    fn never() -> Setup {
        Setup::new(512, 0, 0)
    }

    fn try_open(&self, disk: &Simulated, program: &Program) -> Result<Opened, OpenError> {
        let (failures, compaction_failures) = (Arc::clone(&self.failures), Arc::clone(&self.compaction_failures));
        let settings = Settings {
            memory: 1 << 30,
            segment_bytes: self.segment_bytes,
            now: 0,
            on_durable: Box::new(|_| ()),
            on_failure: Box::new(move |failure| failures.lock().unwrap().push(failure)),
            compaction: Compaction {
                floor: self.floor,
                ratio: self.ratio,
                on_failure: Box::new(move |error| compaction_failures.lock().unwrap().push(error.to_string())),
            },
        };
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        Store::open(disk, &program.0, settings)
    }

    #[track_caller]
    fn open(&self, disk: &Simulated, program: &Program) -> Store {
        self.try_open(disk, program).map_err(|e| e.to_string()).unwrap().store
    }

    fn has_failed(&self) -> bool {
        !self.failures.lock().unwrap().is_empty()
    }
}

/// Waits for something that other threads bring about.
#[track_caller]
fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "{what} does not come");
        thread::sleep(Duration::from_micros(200));
    }
}

fn segments(disk: &Simulated) -> Vec<String> {
    disk.files().into_keys().filter(|name| name.ends_with(".log")).collect()
}

fn add_item(store: &Store, name: &str, n: u64) -> (u64, Seq) {
    store.insert(ITEM, vec![text(name), Value::Word(n), Value::Nil]).unwrap()
}

/// Changes the tag 1 until the segments that there are now have been dropped.
#[track_caller]
fn churn(store: &Store, disk: &Simulated) {
    let present = segments(disk).pop();
    let end = Instant::now() + LONG;
    while segments(disk).first() <= present.as_ref() {
        assert!(Instant::now() < end, "the log is not compacted");
        let seq = store.set(TAG, 1, 0, text("churned")).unwrap();
        assert!(store.wait(seq));
    }
}

type Image = BTreeMap<String, Vec<u8>>;
type Row = Vec<Value>;
type Rows = BTreeMap<(u32, u64), Row>;

fn rows(store: &Store, ids: u64) -> Rows {
    let mut rows = Rows::new();
    for table in [ITEM, TAG] {
        for id in 1..=ids {
            if let Ok(row) = store.read_row(table, id, |cells| cells.iter().map(|c| c.to_value()).collect()) {
                let _ = rows.insert((table, id), row);
            }
        }
    }
    rows
}

/// A statement that was not refused.
#[derive(Clone, Debug)]
enum Done {
    Insert(u32, u64, Row),
    Set(u32, u64, u32, Value),
    Delete(u32, u64),
}

/// The state after some of the statements.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    rows: Rows,
    last: [u64; 2],
}

impl Model {
    fn apply(&mut self, done: &Done) {
        match done.clone() {
            Done::Insert(table, id, row) => {
                assert_eq!(id, self.last[table as usize] + 1);
                self.last[table as usize] = id;
                assert_eq!(self.rows.insert((table, id), row), None);
            }
            Done::Set(table, id, column, value) => {
                self.rows.get_mut(&(table, id)).unwrap()[column as usize] = value;
            }
            Done::Delete(table, id) => drop(self.rows.remove(&(table, id)).unwrap()),
        }
    }
}

/// What several threads have done, by the numbers of the records.
#[derive(Default)]
struct History {
    done: Mutex<BTreeMap<Seq, Done>>,
    acknowledged: AtomicU64,
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn text(&mut self) -> String {
        let len = self.below(60) as usize;
        format!("{}{}", self.below(40), "x".repeat(if self.below(8) == 0 { 10 * len } else { len }))
    }
}

impl History {
    fn note(&self, seq: Seq, done: Done) {
        assert!(self.done.lock().unwrap().insert(seq, done).is_none());
    }

    /// A random statement; the number of its record, unless it was refused.
    fn act(&self, store: &Store, random: &mut Random) -> Option<Seq> {
        let (table, id) = (random.below(2) as u32, 1 + random.below(24));
        let (seq, done) = match random.below(8) {
            0..3 => {
                let row = match table {
                    ITEM => {
                        let note = if random.below(2) == 0 { Value::Nil } else { text(&random.text()) };
                        vec![text(&random.text()), Value::Word(random.below(9)), note]
                    }
                    _ => vec![text(&random.text()), if random.below(2) == 0 { Value::Nil } else { Value::Word(id) }],
                };
                let (id, seq) = store.insert(table, row.clone()).ok()?;
                (seq, Done::Insert(table, id, row))
            }
            3..6 => {
                let (column, value) = match (table, random.below(3) as u32) {
                    (ITEM, 1) => (1, Value::Word(random.below(1000))),
                    (ITEM, 2) if random.below(2) == 0 => (2, Value::Nil),
                    (TAG, 1) => (1, Value::Nil),
                    (ITEM, column) => (column, text(&random.text())),
                    _ => (0, text(&random.text())),
                };
                (store.set(table, id, column, value.clone()).ok()?, Done::Set(table, id, column, value))
            }
            _ => (store.delete(table, id).ok()?, Done::Delete(table, id)),
        };
        self.note(seq, done);
        Some(seq)
    }

    /// `threads` do `count` statements each, and wait for some of them.
    fn work(&self, store: &Store, seed: u64, threads: u64, count: u64) {
        thread::scope(|scope| {
            for thread in 0..threads {
                let _ = scope.spawn(move || {
                    let mut random = Random(seed * 1000 + thread);
                    for _ in 0..count {
                        if let Some(seq) = self.act(store, &mut random)
                            && random.below(3) == 0
                            && store.wait(seq)
                        {
                            let _ = self.acknowledged.fetch_max(seq, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        self.done.lock().unwrap().values().for_each(|done| model.apply(done));
        model
    }

    /// The store on `disk` is in the state after a beginning of the statements that has all up to `acknowledged` in it,
    /// and goes on from there.
    #[track_caller]
    fn check(&self, disk: &Simulated, acknowledged: Seq, context: &str) {
        let store = match Setup::never().try_open(disk, &program()) {
            Ok(opened) => opened.store,
            Err(error) => panic!("{context}: {error}"),
        };
        let done = self.done.lock().unwrap();
        let found = rows(&store, done.len() as u64 + 1);
        let mut model = Model::default();
        let mut fitting = Vec::new();
        let mut next = done.iter().peekable();
        loop {
            if next.peek().is_none_or(|(seq, _)| **seq > acknowledged) && model.rows == found {
                fitting.push(model.last);
            }
            let Some((_, done)) = next.next() else { break };
            model.apply(done);
        }
        assert!(!fitting.is_empty(), "{context}: no beginning of the statements leaves these rows: {found:?}");
        let item = add_item(&store, "something new", 0).0;
        let tag = store.insert(TAG, vec![text(""), Value::Word(item)]).unwrap().0;
        assert!(fitting.contains(&[item - 1, tag - 1]), "{context}: {item} {tag} {fitting:?}");
        store.close();
        drop(store);
        let again = Setup::never().open(&disk.restart(), &program());
        assert_eq!(rows(&again, done.len() as u64 + 1).len(), found.len() + 2, "{context}");
    }
}

#[test]
fn cpt_4_the_log_stays_near_the_size_of_the_rows() {
    let disk = Simulated::new(1);
    let setup = Setup::new(2 << 10, 8 << 10, 3);
    let store = setup.open(&disk, &program());
    for n in 0..50 {
        let _ = add_item(&store, &format!("{n:060}"), n);
    }
    let mut random = Random(1);
    for n in 0..20_000 {
        let id = 1 + random.below(50);
        let seq = store.set(ITEM, id, 1, Value::Word(n)).unwrap();
        if n % 32 == 0 {
            assert!(store.wait(seq));
        }
    }
    let live = store.stats().unwrap().live_bytes;
    assert_eq!(live, 50 * (29 + 10 + 64 + 8 + 1_u64).next_multiple_of(8));
    // Compaction looks when a segment is complete; each has a header, a preamble and at the end one record too much,
    // and the last one zeros behind.
    let most = (3 * live).max(8 << 10) + 2 * (2 << 10);
    until("compaction", || {
        let files = disk.files();
        files.values().map(|bytes| bytes.len() as u64).sum::<u64>() <= most + 500 * files.len() as u64
    });
    store.close();
    assert!(store.stats().unwrap().compactions > 100);
    let before = rows(&store, 50);
    drop(store);
    let store = setup.open(&disk.restart(), &program());
    assert_eq!(rows(&store, 50), before);
    assert!(!setup.has_failed() && setup.compaction_failures.lock().unwrap().is_empty());
}

#[test]
fn cpt_4_nothing_is_compacted_below_the_floor_or_with_ratio_0() {
    for (floor, ratio, compacts) in [(1 << 20, 1, false), (0, 0, false), (0, 1000, false), (0, 1, true)] {
        let disk = Simulated::new(2);
        let store = Setup::new(512, floor, ratio).open(&disk, &program());
        let (id, _) = add_item(&store, &"x".repeat(200), 0);
        for n in 0..500 {
            let seq = store.set(ITEM, id, 1, Value::Word(n)).unwrap();
            assert!(store.wait(seq));
        }
        store.close();
        assert_eq!(store.stats().unwrap().compactions > 0, compacts, "{floor} {ratio}");
        assert_eq!(segments(&disk).first().unwrap() != "0000000000000001.log", compacts, "{floor} {ratio}");
    }
}

/// Rows that are all needed: compaction does not go round in circles.
#[test]
fn a_log_that_cannot_be_made_smaller_is_left_alone() {
    let disk = Simulated::new(3);
    let setup = Setup::new(512, 4 << 10, 1);
    let store = setup.open(&disk, &program());
    for n in 0..200 {
        assert!(store.wait(add_item(&store, &format!("{n:050}"), n).1));
    }
    until("an end of compaction", || {
        let before = disk.steps();
        thread::sleep(Duration::from_millis(50));
        disk.steps() == before
    });
}

#[test]
fn id_3_the_numbers_of_rows_that_are_gone_are_not_used_again() {
    let disk = Simulated::new(4);
    let compacted = |store: Store, disk: &Simulated| {
        churn(&store, disk);
        store.close();
        drop(store);
        let disk = disk.restart();
        (Setup::always().open(&disk, &program()), disk)
    };
    let store = Setup::always().open(&disk, &program());
    assert_eq!(store.insert(TAG, vec![text(""), Value::Nil]).unwrap().0, 1);
    for n in 1..=5 {
        assert_eq!(add_item(&store, &n.to_string(), n).0, n);
    }
    let _ = store.delete(ITEM, 5).unwrap();
    let (store, disk) = compacted(store, &disk);
    assert_eq!(add_item(&store, "6", 6).0, 6);
    for id in [1, 2, 3, 4, 6] {
        let _ = store.delete(ITEM, id).unwrap();
    }
    let (store, disk) = compacted(store, &disk);
    assert_eq!((store.len(ITEM), add_item(&store, "7", 7).0), (0, 7));
    let (store, _) = compacted(store, &disk);
    assert_eq!(add_item(&store, "8", 8).0, 8);
}

#[test]
fn cpt_2_statements_of_several_threads_go_on() {
    for seed in 0..10 {
        let disk = Simulated::new(seed);
        let (setup, history) = (Setup::always(), History::default());
        let store = setup.open(&disk, &program());
        let end = Instant::now() + LONG;
        for round in 0.. {
            history.work(&store, seed + 100 * round, 4, 400);
            if store.stats().unwrap().compactions > 10 {
                break;
            }
            assert!(Instant::now() < end, "seed {seed}: the log is not compacted");
        }
        store.close();
        let live = store.stats().unwrap().live_bytes;
        drop(store);
        let disk = disk.restart();
        let store = Setup::never().open(&disk, &program());
        // Recovery counts the rows anew.
        assert_eq!(store.stats().unwrap().live_bytes, live, "seed {seed}");
        let model = history.model();
        assert_eq!(rows(&store, *model.last.iter().max().unwrap()), model.rows, "seed {seed}");
        drop(store);
        history.check(&disk.restart(), Seq::MAX, &format!("seed {seed}"));
        assert!(setup.compaction_failures.lock().unwrap().is_empty(), "seed {seed}");
    }
}

/// A log of a dozen segments, half of which is not needed, and what made it.
fn prepared(seed: u64) -> (Image, History) {
    let disk = Simulated::new(seed);
    let (store, history) = (Setup::never().open(&disk, &program()), History::default());
    history.work(&store, seed, 1, 100);
    store.close();
    drop(store);
    (disk.restart().files(), history)
}

/// `threads` work on a prepared store while all of it is compacted. What they did, and whether the power was on to the end.
fn compact_prepared(disk: &Simulated, history: &History, seed: u64, threads: u64) -> bool {
    let setup = Setup::always();
    let last = segments(disk).pop();
    let Ok(Opened { store, .. }) = setup.try_open(disk, &program()) else { return false };
    history.work(&store, seed + 500, threads, 12);
    let has_failed = || setup.has_failed() || !setup.compaction_failures.lock().unwrap().is_empty();
    until("the end of compaction", || has_failed() || segments(disk).first() >= last.as_ref());
    store.close();
    // The log itself cannot be closed without power.
    assert_eq!(setup.has_failed(), has_failed());
    !setup.has_failed()
}

fn copy(history: &History) -> History {
    History { done: Mutex::new(history.done.lock().unwrap().clone()), acknowledged: AtomicU64::new(0) }
}

#[test]
fn cpt_3_the_power_is_cut_at_any_operation() {
    let cuts = [Action::CutBefore, Action::CutWithin, Action::CutAfter].into_iter().cycle();
    for ((seed, threads), cut) in (1..).zip([0, 0, 0, 1, 1, 1, 2, 2, 2]).zip(cuts) {
        let (files, before) = prepared(seed);
        for at in 1.. {
            let disk = Simulated::with_files(seed * 1000 + at, &files);
            disk.script(move |step| if step.number == at { cut } else { Action::Proceed });
            let history = copy(&before);
            let ended = compact_prepared(&disk, &history, seed, threads);
            let acknowledged = history.acknowledged.load(Ordering::SeqCst).max(last_of(&before));
            history.check(&disk.restart(), acknowledged, &format!("seed {seed}, {cut:?} at {at}"));
            if ended {
                assert!(at > 60, "seed {seed}: {at} operations");
                break;
            }
        }
    }
}

fn last_of(history: &History) -> Seq {
    *history.done.lock().unwrap().keys().last().unwrap()
}

/// After the end of the process only, the disk has all that was written.
#[test]
fn cpt_3_the_process_ends_at_any_operation() {
    for (seed, threads) in [(4, 0), (5, 1), (6, 3)] {
        let (files, before) = prepared(seed);
        let disk = Simulated::with_files(seed, &files);
        let history = Arc::new(copy(&before));
        let images = Arc::<Mutex<Vec<(Seq, Image)>>>::default();
        let (own, noted, taken) = (disk.clone(), Arc::clone(&history), Arc::clone(&images));
        disk.script(move |_| {
            let acknowledged = noted.acknowledged.load(Ordering::SeqCst);
            taken.lock().unwrap().push((acknowledged, own.files()));
            Action::Proceed
        });
        assert!(compact_prepared(&disk, &history, seed, threads), "seed {seed}");
        let images = std::mem::take(&mut *images.lock().unwrap());
        assert!(images.len() > 60, "seed {seed}: {} operations", images.len());
        for (at, (acknowledged, files)) in images.iter().enumerate() {
            let acknowledged = (*acknowledged).max(last_of(&before));
            let disk = Simulated::with_files(at as u64, files);
            history.check(&disk, acknowledged, &format!("seed {seed}, operation {at}"));
        }
    }
}

/// Changes and deletions whose rows lie in a segment that is gone already.
#[test]
fn records_about_rows_of_dropped_segments_are_passed_over() {
    let disk = Simulated::new(5);
    let store = Setup::never().open(&disk, &program());
    let _ = (add_item(&store, "changed", 1), add_item(&store, "deleted", 2), add_item(&store, "as it was", 3));
    let _ = store.insert(TAG, vec![text("gone"), Value::Word(2)]).unwrap();
    for n in 0..100 {
        let _ = store.set(ITEM, 1, 1, Value::Word(n)).unwrap();
        let _ = store.set(ITEM, 2, 0, text(&n.to_string())).unwrap();
    }
    let (_, _) = (store.delete(TAG, 1).unwrap(), store.delete(ITEM, 2).unwrap());
    store.close();
    drop(store);
    let disk = disk.restart();
    let removals = AtomicU64::new(0);
    disk.script(move |step| match step.operation {
        "removal" if removals.fetch_add(1, Ordering::SeqCst) == 0 => Action::Proceed,
        "removal" => Action::CutBefore,
        _ => Action::Proceed,
    });
    let setup = Setup::always();
    let store = setup.open(&disk, &program());
    until("the cut", || !setup.compaction_failures.lock().unwrap().is_empty() || setup.has_failed());
    drop(store);
    // With the power off, the removal may be lost; the segment is not read all the same.
    let disk = disk.restart();
    let Opened { store, records, .. } = Setup::never().try_open(&disk, &program()).map_err(|e| e.to_string()).unwrap();
    assert!(segments(&disk).first().unwrap().as_str() > "0000000000000001.log" && records > 150);
    assert_eq!(
        rows(&store, 9),
        Rows::from([
            ((ITEM, 1), vec![text("changed"), Value::Word(99), Value::Nil]),
            ((ITEM, 3), vec![text("as it was"), Value::Word(3), Value::Nil]),
        ])
    );
}

/// The tables have other numbers in the new schema than in the segments that are compacted, and other columns.
#[test]
fn segments_with_another_schema_are_compacted() {
    let disk = Simulated::new(6);
    let store = Setup::never().open(&disk, &program());
    for n in 0..40 {
        let (id, _) = add_item(&store, &n.to_string(), n);
        let _ = store.insert(TAG, vec![text(&format!("of {n}")), Value::Word(id)]).unwrap();
    }
    store.close();
    drop(store);

    let mut turned = Program::new();
    let _ = turned.table("New", &[("a", TYPE_INT, None)]);
    let _ = turned.table("Tag", &[("label", TYPE_TEXT, None)]);
    let _ = turned.table("Item", &[("n", TYPE_INT, None), ("more", TYPE_INT, None), ("name", TYPE_TEXT, None)]);
    let (new, tag, item) = (0, 1, 2);
    let disk = disk.restart();
    let last = segments(&disk).pop();
    let store = Setup::always().open(&disk, &turned);
    let (row, _) = store.insert(new, vec![Value::Word(1)]).unwrap();
    let end = Instant::now() + LONG;
    while segments(&disk).first() <= last.as_ref() {
        assert!(Instant::now() < end, "the old segments stay");
        assert!(store.wait(store.set(new, row, 0, Value::Word(2)).unwrap()));
    }
    store.close();
    drop(store);
    let store = Setup::never().open(&disk.restart(), &turned);
    let read = |table, id| store.read_row(table, id, |cells| cells.iter().map(|c| c.to_value()).collect::<Row>());
    for n in 0..40 {
        assert_eq!(read(tag, n + 1), Ok(vec![text(&format!("of {n}"))]));
        assert_eq!(read(item, n + 1), Ok(vec![Value::Word(n), Value::Word(0), text(&n.to_string())]));
    }
    assert_eq!((store.len(new), store.len(tag), store.len(item)), (1, 40, 40));
}

#[test]
fn cpt_2_classes_that_the_program_lacks_keep_their_counters() {
    let disk = Simulated::new(7);
    let store = Setup::always().open(&disk, &program());
    for n in 1..=3 {
        let _ = add_item(&store, &n.to_string(), n);
    }
    for id in 1..=3 {
        let _ = store.delete(ITEM, id).unwrap();
    }
    store.close();
    drop(store);

    let mut other = Program::new();
    let _ = other.table("Other", &[("n", TYPE_INT, None)]);
    let disk = disk.restart();
    let last = segments(&disk).pop();
    let store = Setup::always().open(&disk, &other);
    let (row, _) = store.insert(0, vec![Value::Word(0)]).unwrap();
    let end = Instant::now() + LONG;
    while segments(&disk).first() <= last.as_ref() {
        assert!(Instant::now() < end, "the old segments stay");
        assert!(store.wait(store.set(0, row, 0, Value::Word(1)).unwrap()));
    }
    let _ = store.delete(0, row).unwrap();
    store.close();
    drop(store);
    let store = Setup::always().open(&disk.restart(), &program());
    assert_eq!(add_item(&store, "again", 0).0, 4);
}

#[test]
fn cpt_5_a_failed_compaction_changes_nothing_and_is_tried_again() {
    let (files, history) = prepared(8);
    let disk = Simulated::with_files(8, &files);
    let failing = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&failing);
    disk.script(move |step| match step.operation {
        "read" if fails.load(Ordering::SeqCst) => Action::Fail(EIO),
        _ => Action::Proceed,
    });
    let setup = Setup::new(512, 512, 1);
    // Opening reads as well.
    let opening = Arc::clone(&failing);
    let store = setup.open(&disk, &program());
    opening.store(true, Ordering::SeqCst);
    let told = || setup.compaction_failures.lock().unwrap().clone();
    let mut random = Random(8);
    let end = Instant::now() + LONG;
    let mut attempts = 0;
    while attempts < 3 {
        assert!(Instant::now() < end, "compaction does not fail");
        if let Some(seq) = history.act(&store, &mut random) {
            assert!(store.wait(seq));
        }
        attempts = told().len();
    }
    assert!(told().iter().all(|text| text.starts_with("read of 00") && !text.contains('\n')), "{:?}", told());
    failing.store(false, Ordering::SeqCst);
    let dropped = store.stats().unwrap().compactions;
    while store.stats().unwrap().compactions <= dropped + 10 {
        assert!(Instant::now() < end, "compaction does not go on");
        let _ = history.act(&store, &mut random);
    }
    store.close();
    assert!(!setup.has_failed());
    drop(store);
    history.check(&disk.restart(), Seq::MAX, "after failures");
}

/// [CON-7]: with compaction waiting for a sync, statements on all tables go on.
#[test]
fn con_7_no_table_is_locked_while_compaction_waits_for_the_log() {
    let (files, history) = prepared(9);
    let disk = Simulated::with_files(9, &files);
    let gate = Arc::new((Mutex::new(None::<bool>), Condvar::new()));
    let (compacting, held) = (AtomicBool::new(false), Arc::clone(&gate));
    let first = segments(&disk).remove(0);
    let opens = AtomicU64::new(0);
    disk.script(move |step| {
        // The first segment is opened once by recovery, once to be compacted.
        if step.operation == "opening" && step.name == first && opens.fetch_add(1, Ordering::SeqCst) == 1 {
            compacting.store(true, Ordering::SeqCst);
        }
        if step.operation == "sync" && compacting.swap(false, Ordering::SeqCst) {
            let (state, changed) = &*held;
            let mut state = state.lock().unwrap();
            *state = Some(false);
            changed.notify_all();
            while *state == Some(false) {
                state = changed.wait(state).unwrap();
            }
        }
        Action::Proceed
    });
    let store = Arc::new(Setup::always().open(&disk, &program()));
    let (state, changed) = &*gate;
    let (mut waiting, _) = changed.wait_timeout_while(state.lock().unwrap(), LONG, |state| state.is_none()).unwrap();
    assert_eq!(*waiting, Some(false), "compaction does not sync");
    let (done, finished) = mpsc::channel();
    let other = Arc::clone(&store);
    let worker = thread::spawn(move || {
        let mut random = Random(9);
        for _ in 0..50 {
            let _ = history.act(&other, &mut random);
            let _ = rows(&other, 30);
        }
        done.send(history).unwrap();
    });
    let history = finished.recv_timeout(LONG);
    *waiting = Some(true);
    changed.notify_all();
    drop(waiting);
    assert!(history.is_ok(), "statements wait for the log");
    let history = history.unwrap();
    worker.join().unwrap();
    store.close();
    drop(store);
    history.check(&disk.restart(), Seq::MAX, "after the wait");
}
