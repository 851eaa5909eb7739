//! Statements from several threads at once, the bound of memory, the size of a row, what a query looks at.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;
#[path = "model/query.rs"]
mod query;

use abi::desc::{TYPE_INT, TYPE_TEXT};
use abi::tables::{Access, CompareOp, Condition, Ordering as Yields, QueryDesc};
use program::{Program, indexes};
use query::{column, query};
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Cell, Operands, Refusal, Sink, Store, Value};

/// `Counter { n: Int }`, `Name { name: Text @unique }`, `Target { n: Int }`, `Referrer { to: ref Target }`.
fn store(memory: u64) -> Store {
    let mut program = Program::new();
    let _ = program.table("Counter", &[("n", TYPE_INT, None)]);
    let _ = program.table("Name", &[("name", TYPE_TEXT, None)]);
    program.unique(0);
    let target = program.table("Target", &[("n", TYPE_INT, None)]);
    let _ = program.table("Referrer", &[("to", target, None)]);
    program.last().indexes = indexes(&[(&[0], false)]);
    Store::new(program.0.tables, Vec::new(), memory)
}

/// Inserts into a table that is in no log; the id.
fn insert(store: &Store, table: u32, values: Vec<Value>) -> Result<u64, Refusal> {
    store.insert(table, values).map(|(id, _)| id)
}

const COUNTER: u32 = 0;
const NAME: u32 = 1;
const TARGET: u32 = 2;
const REFERRER: u32 = 3;

fn threads(n: u64, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for i in 0..n {
            let work = &work;
            let _ = scope.spawn(move || work(i));
        }
    });
}

fn text(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.into())
}

#[test]
fn upd_2_counters_of_many_threads_lose_nothing() {
    let store = store(1 << 20);
    let rows: Vec<u64> = (0..5).map(|_| insert(&store, COUNTER, vec![Value::Word(0)]).unwrap()).collect();
    let add = |cell: Cell<'_>| match cell {
        Cell::Word(n) => Ok(Value::Word(n + 1)),
        Cell::Nil | Cell::Bytes(_) => Err(()),
    };
    threads(8, |i| {
        for n in 0..2000 {
            let _ = store.update(COUNTER, rows[((n + i) % 5) as usize], 0, add).unwrap();
        }
    });
    let word = |id| store.read(COUNTER, id, 0, |cell| if let Cell::Word(n) = cell { n } else { 0 }).unwrap();
    assert_eq!(rows.into_iter().map(word).sum::<u64>(), 16_000);
}

#[test]
fn ins_1_the_same_keys_from_many_threads_go_in_once() {
    let store = store(1 << 24);
    let refused = AtomicU64::new(0);
    threads(8, |_| {
        for n in 0..500_u64 {
            match insert(&store, NAME, vec![text(format!("key {n}").as_bytes())]) {
                Ok(id) => assert!((1..=500).contains(&id)),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::Unique);
                    let _ = refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    assert_eq!((store.len(NAME), refused.into_inner()), (500, 3500));
    assert!((1..=500).all(|id| store.read(NAME, id, 0, |_| ()).is_ok()), "ids have gaps");
}

#[test]
fn del_1_no_reference_is_ever_without_its_row() {
    let store = store(1 << 24);
    let target = AtomicU64::new(insert(&store, TARGET, vec![Value::Word(0)]).unwrap());
    threads(6, |i| {
        for n in 0..1000 {
            let id = target.load(Ordering::SeqCst);
            if i % 2 == 0 {
                match insert(&store, REFERRER, vec![Value::Word(id)]) {
                    // With the reference there, the row is.
                    Ok(row) => {
                        store.read(TARGET, id, 0, |_| ()).unwrap();
                        let _ = store.delete(REFERRER, row).unwrap();
                    }
                    Err(refusal) => assert_eq!(refusal, Refusal::NoTarget, "round {n}"),
                }
            } else if store.delete(TARGET, id).is_ok() {
                target.store(insert(&store, TARGET, vec![Value::Word(0)]).unwrap(), Ordering::SeqCst);
            }
        }
    });
    assert_eq!((store.len(TARGET), store.len(REFERRER)), (1, 0));
}

#[test]
fn lim_1_beyond_the_bound_nothing_changes_and_deletes_give_back() {
    let store = store(100_000);
    let mut rows = Vec::new();
    let refusal = loop {
        match insert(&store, NAME, vec![text(format!("{:0100}", rows.len()).as_bytes())]) {
            Ok(id) => rows.push(id),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, Refusal::Memory);
    let used = store.memory_used();
    assert!(rows.len() > 200 && used <= 100_000, "{} rows in {used} bytes", rows.len());
    assert_eq!(store.set(NAME, 1, 0, text(&[b'x'; 5000])), Err(Refusal::Memory));
    assert_eq!(store.read(NAME, 1, 0, |cell| matches!(cell, Cell::Bytes(b) if b.len() == 100)), Ok(true));
    assert_eq!((store.len(NAME), store.memory_used()), (rows.len() as u64, used));
    for id in rows.iter().take(20) {
        let _ = store.delete(NAME, *id).unwrap();
    }
    // A refused insert has taken no id.
    assert_eq!(insert(&store, NAME, vec![text(&[b'y'; 100])]), Ok(rows.len() as u64 + 1));
    for id in 1..=rows.len() as u64 + 1 {
        let _ = store.delete(NAME, id);
    }
    assert_eq!((store.len(NAME), store.memory_used()), (0, 0));
}

#[test]
fn col_3_a_row_has_a_largest_size() {
    let store = store(1 << 30);
    let largest = store::MAX_ROW - 5;
    let id = insert(&store, NAME, vec![text(&vec![b'a'; largest])]).unwrap();
    assert_eq!(insert(&store, NAME, vec![text(&vec![b'b'; largest + 1])]), Err(Refusal::TooLarge));
    assert_eq!(store.set(NAME, id, 0, text(&vec![b'b'; largest + 1])), Err(Refusal::TooLarge));
    assert_eq!(store.set(NAME, id, 0, text(b"small")).map(drop), Ok(()));
    assert_eq!(insert(&store, NAME, vec![text(b"small")]), Err(Refusal::Unique));
}

#[test]
fn id_3_an_id_is_never_given_twice() {
    let store = store(1 << 20);
    for n in 1..=1000 {
        assert_eq!(insert(&store, COUNTER, vec![Value::Word(n)]), Ok(n));
        if n % 3 != 0 {
            let _ = store.delete(COUNTER, n).unwrap();
        }
    }
    assert_eq!(store.len(COUNTER), 333);
    assert_eq!(store.read(COUNTER, 999, 0, |cell| cell.to_value()), Ok(Value::Word(999)));
    assert_eq!(store.delete(COUNTER, 1000), Err(Refusal::NoRow));
}

/// How many rows there were, and the bytes that the query may take while it runs.
struct Count {
    rows: u64,
    room: usize,
}

impl Sink for Count {
    fn room(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(0);
        left.is_some()
    }

    fn row(&mut self, _: u64, _: &[Cell<'_>]) -> bool {
        self.rows += 1;
        true
    }
}

/// How many rows a query gives and counts, or why not; what counting has looked at.
fn ask(store: &Store, query: &QueryDesc, operands: &Operands<'_>) -> ([Result<u64, Refusal>; 2], u64) {
    let (mut count, mut seen) = (Count { rows: 0, room: 0 }, 0);
    let given = store.evaluate(query, operands, &mut count, &mut 0).map(|done| done.map_or(u64::MAX, |()| count.rows));
    let counted = store.count_rows(query, operands, &mut seen);
    ([given, counted], seen)
}

fn backlink() -> QueryDesc {
    let query = query(REFERRER, Access::Backlink { index: 0 }, Yields::None);
    QueryDesc { tables: vec![TARGET, REFERRER], ..query }
}

#[test]
fn id_6_a_backlink_of_no_row_is_refused_even_if_nothing_is_taken() {
    let store = store(1 << 20);
    let target = insert(&store, TARGET, vec![Value::Word(0)]).unwrap();
    let gone = insert(&store, TARGET, vec![Value::Word(0)]).unwrap();
    let _ = (insert(&store, REFERRER, vec![Value::Word(target)]).unwrap(), store.delete(TARGET, gone).unwrap());
    for (take, rows) in [(None, 1), (Some(1), 1), (Some(0), 0)] {
        let of = |row| ask(&store, &backlink(), &Operands { row, take, ..Operands::default() }).0;
        assert_eq!(of(target), [Ok(rows); 2], "take {take:?}");
        assert_eq!(of(gone), [Err(Refusal::NoRow); 2], "take {take:?}");
    }
}

#[test]
fn pln_3_counting_looks_at_no_more_than_it_needs() {
    let store = store(1 << 20);
    let target = insert(&store, TARGET, vec![Value::Word(0)]).unwrap();
    for _ in 0..100 {
        let _ = insert(&store, REFERRER, vec![Value::Word(target)]).unwrap();
    }
    for (skip, take, rows, looked_at) in
        [(0, None, 100, 100), (0, Some(5), 5, 5), (3, Some(5), 5, 8), (98, Some(5), 2, 100), (9, Some(0), 0, 0)]
    {
        let operands = Operands { row: target, skip, take, ..Operands::default() };
        let asked = ask(&store, &backlink(), &operands);
        assert_eq!(asked, ([Ok(rows); 2], looked_at), "skip {skip}, take {take:?}");
    }
}

/// Rows of a range come by their ids, which are put in order first.
#[test]
fn what_a_query_keeps_while_it_runs_is_accounted_for() {
    let store = store(1 << 20);
    let target = insert(&store, TARGET, vec![Value::Word(0)]).unwrap();
    for _ in 0..1000 {
        let _ = insert(&store, REFERRER, vec![Value::Word(target)]).unwrap();
    }
    let condition = Condition { path: column(0), op: CompareOp::Gt, operand: Some(0), binds: true };
    for ordering in [Yields::None, Yields::Sort] {
        let query = QueryDesc {
            conditions: vec![condition.clone()],
            order: vec![(column(0), false)],
            ..query(REFERRER, Access::Index { index: 0, equal: 0, range: true }, ordering)
        };
        let operands = Operands { values: &[Cell::Word(0)], ..Operands::default() };
        let with = |room| {
            let mut count = Count { rows: 0, room };
            store.evaluate(&query, &operands, &mut count, &mut 0).map(|done| done.map(|()| count.rows))
        };
        assert_eq!((with(7999), with(1 << 20)), (Ok(None), Ok(Some(1000))), "{ordering:?}");
        // Nothing is kept of rows that are counted.
        assert_eq!(store.count_rows(&query, &operands, &mut 0), Ok(1000));
    }
}
