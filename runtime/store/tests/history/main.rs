//! T15: statements of four actors on two rows of two tables have one order that agrees with real time ([CON-1]), in
//! memory, in a log, and across a loss of power ([CON-4]). The orders are found by search.
//!
//! `HISTORIES=N` plays N histories of each kind instead of a few; `HISTORY_SEED=N` begins with that seed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod order;
#[path = "../schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;
#[path = "../model/random.rs"]
mod random;
mod search;

use abi::desc::TYPE_INT;
use abi::tables::{Access, CompareOp, Condition, IndexDesc, Ordering, Path, PathEnd, QueryDesc};
use order::{Action, History, Operation, State};
use program::Program;
use random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Instant;
use store::disk::simulated::{Action as Does, Simulated};
use store::{Cell, Compaction, Operands, Seq, Settings, Sink, Store, Value};

const ACTORS: usize = 4;
const LEFT: u32 = 0;
const RIGHT: u32 = 1;

static COUNT: AtomicUsize = AtomicUsize::new(0);

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// `Left { n: Int }` and `Right { n: Int, left: ref Left }`.
fn program(durable: [bool; 2]) -> Program {
    let mut program = Program::new();
    let left = program.table("Left", &[("n", TYPE_INT, None)]);
    program.last().durable = durable[0];
    let _ = program.table("Right", &[("n", TYPE_INT, None), ("left", left, None)]);
    program.last().durable = durable[1];
    program.last().indexes = vec![IndexDesc { columns: vec![1], unique: false }];
    program
}

fn open(disk: &Simulated, program: &Program) -> Store {
    let settings = Settings {
        memory: 1 << 30,
        segment_bytes: 4 << 10,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|_| ()),
        compaction: Compaction { floor: 4 << 10, ratio: 1, on_failure: Box::new(|_| ()) },
    };
    Store::open(Arc::new(disk.clone()), &program.0, settings).map_err(|error| error.to_string()).unwrap().store
}

/// Two new rows, both 0.
fn rows(store: &Store) -> [u64; 2] {
    let (left, _) = store.insert(LEFT, vec![Value::Word(0)]).unwrap();
    let (right, seq) = store.insert(RIGHT, vec![Value::Word(0), Value::Word(left)]).unwrap();
    assert!(store.wait(seq));
    [left, right]
}

/// Called where a statement holds its locks: now and then others get a chance to come between.
fn number(cell: Cell<'_>) -> i64 {
    if COUNT.fetch_add(1, SeqCst).is_multiple_of(5) {
        thread::yield_now();
    }
    if let Cell::Word(word) = cell { word as i64 } else { panic!("{cell:?}") }
}

#[derive(Default)]
struct Both(Vec<State>);

impl Sink for Both {
    fn room(&mut self, _: usize) -> bool {
        true
    }

    fn row(&mut self, _: u64, cells: &[Cell<'_>]) -> bool {
        self.0.push([number(cells[1]), number(cells[0])]);
        true
    }
}

/// `from r in Right where r.left == left select` both numbers.
fn read_both(store: &Store, left: u64) -> State {
    let column = |steps: &[u32], column| Path { steps: steps.to_vec(), end: PathEnd::Column(column) };
    let query = QueryDesc {
        table: RIGHT,
        access: Access::Index { index: 0, equal: 1, range: false },
        conditions: vec![Condition { path: column(&[], 1), op: CompareOp::Eq, operand: Some(0), binds: true }],
        order: Vec::new(),
        ordering: Ordering::None,
        outputs: vec![column(&[], 0), column(&[1], 0)],
        tables: vec![LEFT, RIGHT],
        operands: None,
        source: None,
        skip: None,
        take: None,
        result: 0,
        ids: false,
        computed: Vec::new(),
    };
    let operands = Operands { values: &[Cell::Word(left)], ..Operands::default() };
    let mut both = Both::default();
    assert_eq!(store.evaluate(&query, &operands, &mut both, &mut 0), Ok(Some(())));
    assert_eq!(both.0.len(), 1);
    both.0[0]
}

/// Does something with one of the rows or both; what it told, and what to wait for.
fn act(store: &Store, rows: [u64; 2], random: &mut Random) -> (Action, Seq) {
    let row = random.below(2) as usize;
    let (table, id) = (row as u32, rows[row]);
    let update = |new: &dyn Fn(i64) -> i64| {
        let compute = |cell: Cell<'_>| Ok::<_, ()>(Value::Word(new(number(cell)) as u64));
        store.update(table, id, 0, compute).unwrap()
    };
    let value = 1 + random.below(9) as i64;
    match random.below(8) {
        0 | 1 => (Action::Read(row, store.read(table, id, 0, number).unwrap()), 0),
        2 | 3 => (Action::ReadBoth(read_both(store, rows[0])), 0),
        4 => (Action::Write(row, value), store.set(table, id, 0, Value::Word(value as u64)).unwrap()),
        5 | 6 => (Action::Add(row, value), update(&|n| n.wrapping_add(value))),
        _ => (Action::Multiply(row, 3), update(&|n| n.wrapping_mul(3))),
    }
}

/// Some operations of one actor, up to one that does not come back.
fn acts(store: &Store, rows: [u64; 2], random: &mut Random, clock: Instant) -> Vec<Operation> {
    let now = || clock.elapsed().as_nanos() as u64;
    let mut done = Vec::new();
    for _ in 0..3 + random.below(6) {
        let begin = now();
        let (action, seq) = act(store, rows, random);
        let end = store.wait(seq).then(now);
        done.push(Operation { begin, end, action });
        if end.is_none() {
            break;
        }
        if random.one_in(3) {
            thread::yield_now();
        }
    }
    done
}

/// A history on each pair of rows, each begun by all actors together.
fn play(store: &Store, pairs: &[[u64; 2]], seed: u64) -> Vec<History> {
    let (clock, arrived) = (Instant::now(), AtomicUsize::new(0));
    let actor = |number: usize| {
        let mut random = Random((seed * 16 + number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let meet = |(round, pair): (usize, &[u64; 2])| {
            let _ = arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < (round + 1) * ACTORS {
                thread::yield_now();
            }
            acts(store, *pair, &mut random, clock)
        };
        pairs.iter().enumerate().map(meet).collect::<Vec<_>>()
    };
    let mut histories = vec![History { start: [0, 0], actors: Vec::new(), found: None }; pairs.len()];
    thread::scope(|scope| {
        let threads: Vec<_> = (0..ACTORS).map(|number| scope.spawn(move || actor(number))).collect();
        for thread in threads {
            for (history, operations) in histories.iter_mut().zip(thread.join().unwrap()) {
                history.actors.push(operations);
            }
        }
    });
    histories
}

/// Histories in a store that is not disturbed.
fn have_orders(store: &Store, kind: &str) {
    let (count, seed) = (setting("HISTORIES", 1000), setting("HISTORY_SEED", 1));
    println!("HISTORIES={count} HISTORY_SEED={seed}");
    let mut meetings = 0;
    for seed in (seed..).take(count.div_ceil(100) as usize) {
        let pairs: Vec<_> = (0..100).map(|_| rows(store)).collect();
        for history in play(store, &pairs, seed) {
            assert!(history.has_an_order(), "{kind}, seed {seed}: {history:#?}");
            meetings += history.meetings();
        }
    }
    println!("{kind}: {meetings} meetings");
    assert!(meetings as u64 > count, "{kind}: only {meetings} meetings in {count} histories");
}

#[test]
fn t15_con_1_statements_in_memory_have_an_order() {
    let tables = program([false, false]).0.tables;
    have_orders(&Store::new(tables, Vec::new(), 1 << 30), "volatile");
}

#[test]
fn t15_con_1_durable_statements_have_an_order() {
    for durable in [[true, true], [true, false]] {
        let disk = Simulated::new(setting("HISTORY_SEED", 1));
        have_orders(&open(&disk, &program(durable)), &format!("durable: {durable:?}"));
    }
}

/// What a start finds is what some moment of the order had left, after all that was acknowledged.
#[test]
fn t15_con_4_a_loss_of_power_leaves_a_beginning_of_the_order() {
    let (count, first) = (setting("HISTORIES", 400), setting("HISTORY_SEED", 1));
    println!("HISTORIES={count} HISTORY_SEED={first}");
    let program = program([true, true]);
    let (mut meetings, mut kept, mut lost) = (0, 0, 0);
    for seed in (first..).take(count as usize) {
        let disk = Simulated::new(seed);
        let store = open(&disk, &program);
        let pair = rows(&store);
        let cut = disk.steps() + 1 + seed % 24;
        let how = [Does::CutBefore, Does::CutWithin, Does::CutAfter][seed as usize % 3];
        disk.script(move |step| if step.number == cut { how } else { Does::Proceed });
        let mut history = play(&store, &[pair], seed).remove(0);
        let next = disk.restart();
        drop(store);
        let store = open(&next, &program);
        history.found = Some(read_both(&store, pair[0]));
        assert!(history.has_an_order(), "seed {seed}: {history:#?}");
        meetings += history.meetings();
        // Whether writes that did not come back are there.
        let mut without = history.clone();
        for operations in &mut without.actors {
            operations.retain(|operation| operation.end.is_some());
        }
        let is_there = !without.has_an_order();
        let pending = history.actors.iter().flatten().any(|operation| operation.end.is_none());
        (kept, lost) = (kept + u64::from(pending && is_there), lost + u64::from(pending && !is_there));
    }
    println!("{meetings} meetings, {kept} with writes that did not come back and {lost} without them");
    assert!(meetings as u64 > count && kept > 0 && lost > 0, "{meetings} meetings, {kept} {lost}");
}
