//! Random statements and queries against a model that does everything the slow way. Each query runs over every access
//! path that its conditions allow: rows and order must be the same with an index and without.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod naive;
#[path = "../schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;
mod query;
mod random;

use abi::desc::{TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc};
use abi::tables::{
    Access, ColumnDesc, ColumnKind, CompareOp, Condition, Ordering, Path, PathEnd, QueryDesc, TableDesc,
};
use naive::{Naive, Row, holds, order};
use program::{Program, indexes};
use query::{column, query};
use random::Random;
use std::sync::Arc;
use store::disk::simulated::Simulated;
use store::{Cell, Compaction, Operands, Settings, Sink, Store, Value};

/// `Bin { code: ?Text @unique, zone: Int, weight: Float, next: ?ref Bin }` and
/// `Lot { part: Text, count: Int, bin: ref Bin, spare: ?ref Bin, note: ?Float, blob: json.Value }`, with simple and
/// composite indexes. `ordered`: the program asks for the order of codes too, and not only for the row that has one.
fn program(ordered: bool) -> Program {
    let mut program = Program::new();
    let (text, note) = (program.nullable(TYPE_TEXT), program.nullable(TYPE_FLOAT));
    let bin = program.ty(TypeDesc::Row(0));
    let next = program.nullable(bin);
    let columns = [("code", text, None), ("zone", TYPE_INT, None), ("weight", TYPE_FLOAT, None), ("next", next, None)];
    assert_eq!(program.table("Bin", &columns), bin);
    program.last().indexes = indexes(&[(&[1, 2], false), (&[2], false), (&[0], true), (&[3], false)]);
    let columns = [
        ("part", TYPE_TEXT, None),
        ("count", TYPE_INT, None),
        ("bin", bin, None),
        ("spare", next, None),
        ("note", note, None),
        ("blob", TYPE_JSON, None),
    ];
    let _ = program.table("Lot", &columns);
    program.last().indexes = indexes(&[(&[0, 1], false), (&[2, 1], false), (&[4], false), (&[3], false)]);
    if ordered {
        program.0.queries.push(query(0, Access::Walk { index: CODE }, Ordering::Index { desc: false }));
    }
    program
}

/// The index on codes.
const CODE: u32 = 2;

fn value(random: &mut Random, desc: &ColumnDesc) -> Value {
    if desc.nullable && random.one_in(4) {
        return Value::Nil;
    }
    match (desc.kind, desc.refers) {
        (ColumnKind::Int, Some(_)) => Value::Word(random.below(30)),
        (ColumnKind::Int, None) => Value::Word((random.below(7) as i64 - 3) as u64),
        (ColumnKind::Float, _) => {
            let floats = [0.0, -0.0, 1.5, -1.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            Value::Word(floats[random.below(8) as usize].to_bits())
        }
        (ColumnKind::Bytes, _) => {
            let texts: [&[u8]; 8] = [
                b"",
                b"a",
                b"a\0",
                b"a\0b",
                b"fifteen bytes..",
                b"sixteen bytes...",
                b"\xff\xff",
                b"a text that is longer than most",
            ];
            Value::Bytes(texts[random.below(8) as usize].into())
        }
        (ColumnKind::Value, _) => Value::Bytes(vec![7; random.below(40) as usize].into()),
    }
}

fn row(random: &mut Random, desc: &TableDesc) -> Row {
    desc.columns.iter().map(|c| value(random, c)).collect()
}

/// Collects ids and the values of the outputs.
#[derive(Default)]
struct Rows(Vec<(u64, Vec<Value>)>);

impl Sink for Rows {
    fn room(&mut self, _: usize) -> bool {
        true
    }

    fn row(&mut self, id: u64, cells: &[Cell<'_>]) -> bool {
        self.0.push((id, cells.iter().map(|c| c.to_value()).collect()));
        true
    }
}

/// A query over one table and what its conditions compare with.
struct Question {
    table: u32,
    conditions: Vec<(u32, CompareOp, Value)>,
    order: Vec<(u32, bool)>,
    skip: u64,
    take: Option<u64>,
}

fn question(random: &mut Random, tables: &[TableDesc]) -> Question {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    let table = random.below(2) as u32;
    let columns = &tables[table as usize].columns;
    let keys = columns.iter().filter(|c| c.kind != ColumnKind::Value).count() as u64;
    let conditions = (0..random.below(4)).map(|_| {
        let column = random.below(keys) as u32;
        let desc = &columns[column as usize];
        let op = [Eq, Eq, Ne, Lt, Le, Gt, Ge][random.below(if desc.nullable { 3 } else { 7 }) as usize];
        (column, op, value(random, desc))
    });
    let conditions = conditions.collect();
    let order = (0..random.below(3)).map(|_| (random.below(keys) as u32, random.one_in(2))).collect();
    let take = if random.one_in(2) { Some(random.below(6)) } else { None };
    Question { table, conditions, order, skip: random.below(3), take }
}

/// The rows that the question is about, by its words.
fn answer(naive: &Naive, q: &Question) -> Vec<u64> {
    let table = q.table as usize;
    let kind = |column: u32| naive.tables[table].columns[column as usize].kind;
    let fits = |row: &Row| q.conditions.iter().all(|(c, op, v)| holds(kind(*c), &row[*c as usize], *op, v));
    let mut rows: Vec<(&u64, &Row)> = naive.rows[table].iter().filter(|(_, row)| fits(row)).collect();
    rows.sort_by(|(_, l), (_, r)| {
        let by = |(c, desc): &(u32, bool)| {
            let order = order(kind(*c), &l[*c as usize], &r[*c as usize]);
            if *desc { order.reverse() } else { order }
        };
        q.order.iter().map(by).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let take = q.take.map_or(usize::MAX, |t| t as usize);
    rows.into_iter().map(|(id, _)| *id).skip(q.skip as usize).take(take).collect()
}

/// Every access that finds at least the rows of the question, with the conditions it binds and the order it yields.
fn accesses(desc: &TableDesc, q: &Question, ordered: bool) -> Vec<(Access, Vec<bool>, Ordering)> {
    let sort = match (q.order.is_empty(), q.take) {
        (true, _) => Ordering::None,
        (false, Some(_)) => Ordering::Heap,
        (false, None) => Ordering::Sort,
    };
    let unbound = vec![false; q.conditions.len()];
    let mut out = vec![(Access::Scan, unbound.clone(), sort)];
    for (number, index) in desc.indexes.iter().enumerate() {
        let yields = |from: usize| {
            let same = index.columns[from..].iter().eq(q.order.iter().map(|(c, _)| c));
            let desc = q.order.first().is_some_and(|o| o.1);
            (same && !q.order.is_empty() && q.order.iter().all(|o| o.1 == desc)).then_some(Ordering::Index { desc })
        };
        let index_number = number as u32;
        let ordered = ordered || !index.unique;
        if let Some(ordering) = yields(0).filter(|_| ordered) {
            out.push((Access::Walk { index: index_number }, unbound.clone(), ordering));
        }
        let mut bound = unbound.clone();
        for equal in 0..=index.columns.len() {
            let next = index.columns.get(equal);
            let ranges: Vec<bool> = q
                .conditions
                .iter()
                .map(|(c, op, _)| Some(c) == next && !matches!(op, CompareOp::Eq | CompareOp::Ne))
                .collect();
            for range in [false, true] {
                if equal == 0 && !(range && ordered) || range && !ranges.contains(&true) {
                    continue;
                }
                let binds = bound.iter().zip(&ranges).map(|(b, r)| *b || range && *r).collect();
                let access = Access::Index { index: index_number, equal: equal as u32, range };
                out.push((access.clone(), binds, yields(equal).unwrap_or(sort)));
            }
            let equals = q.conditions.iter().position(|(c, op, _)| Some(c) == next && *op == CompareOp::Eq);
            match equals {
                Some(at) => bound[at] = true,
                None => break,
            }
        }
    }
    out
}

/// A store on a disk, with segments of a few hundred records.
fn open(disk: &Simulated, program: &Program) -> Store {
    let settings = Settings {
        memory: 1 << 30,
        segment_bytes: 32 << 10,
        now: 0,
        on_durable: Box::new(|_| ()),
        // The store that was before learns that the power is off.
        on_failure: Box::new(|_| ()),
        compaction: Compaction { floor: 64 << 10, ratio: 1, on_failure: Box::new(|_| ()) },
    };
    let opened = Store::open(Arc::new(disk.clone()), &program.0, settings);
    opened.map_err(|error| error.to_string()).unwrap().store
}

#[test]
fn sem_8_random_statements_and_queries_agree_with_the_model() {
    agree_with_the_model(None, true);
}

#[test]
fn sem_8_unique_values_without_an_order_agree_with_the_model() {
    agree_with_the_model(None, false);
}

/// T11: the same on a disk, opened again now and then.
#[test]
fn sem_8_a_store_that_is_opened_again_agrees_with_the_model() {
    agree_with_the_model(Some(Simulated::new(1)), true);
    agree_with_the_model(Some(Simulated::new(2)), false);
}

fn agree_with_the_model(mut disk: Option<Simulated>, ordered: bool) {
    let seed = std::env::var("STORE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0x5eed_0001_u64);
    let rounds = std::env::var("STORE_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20_000);
    println!("STORE_SEED={seed} STORE_ROUNDS={rounds}");
    let mut random = Random(seed);
    let program = program(ordered);
    let tables = program.0.tables.clone();
    let mut naive = Naive::new(tables.clone());
    let mut store = match &disk {
        Some(disk) => open(disk, &program),
        None => Store::new(tables.clone(), program.0.queries.clone(), 1 << 30),
    };
    let mut last = 0;
    for round in 0..rounds {
        if let Some(disk) = &mut disk
            && random.one_in(1000)
        {
            // A normal end, or a loss of power when everything is durable.
            if random.one_in(2) {
                store.close();
            } else {
                assert!(store.wait(last), "round {round}");
            }
            let next = disk.restart();
            drop(std::mem::replace(&mut store, open(&next, &program)));
            *disk = next;
        }
        let t = random.below(2) as usize;
        let id = random.below(40);
        let desc = &tables[t];
        match random.below(10) {
            0..=3 => {
                let row = row(&mut random, desc);
                let got = store.insert(t as u32, row.clone());
                last = got.map_or(last, |(_, seq)| seq);
                assert_eq!(got.map(|(id, _)| id), naive.insert(t, row), "insert, round {round}");
            }
            4..=6 => {
                let c = random.below(desc.columns.len() as u64) as usize;
                let v = value(&mut random, &desc.columns[c]);
                let got = store.set(t as u32, id, c as u32, v.clone());
                last = got.unwrap_or(last);
                assert_eq!(got.map(drop), naive.set(t, id, c, v), "set, round {round}");
            }
            7 => {
                // Younger rows are deleted too, or the tables would fill with old ones that others refer to.
                let newest = naive.rows[t].keys().next_back().copied().unwrap_or(1);
                let id = if random.one_in(2) { id } else { newest.saturating_sub(random.below(20)) };
                let got = store.delete(t as u32, id);
                last = got.unwrap_or(last);
                assert_eq!(got.map(drop), naive.delete(t, id), "delete, round {round}");
            }
            8 => {
                let got = store.referrers(1, 1, id).ok();
                let expected = naive.rows[0].contains_key(&id).then(|| naive.referrers(1, 2, id));
                assert_eq!(got, expected, "referrers, round {round}");
                assert_eq!(store.count_referrers(1, 1, id).ok(), expected.map(|e| e.len() as u64));
            }
            _ => {
                if round % 7 == 0 {
                    continue;
                }
                ask(&store, &naive, &question(&mut random, &tables), round, ordered);
            }
        }
    }
    for (t, rows) in naive.rows.iter().enumerate() {
        assert_eq!(store.len(t as u32), rows.len() as u64);
        for (id, row) in rows {
            let got = store.read_row(t as u32, *id, |cells| cells.iter().map(|c| c.to_value()).collect::<Row>());
            assert_eq!(got.as_ref(), Ok(row));
        }
    }
    // Nothing is left of rows that are gone, not even in the account.
    for t in [1, 0, 0] {
        let ids: Vec<u64> = naive.rows[t].keys().copied().collect();
        for id in ids.into_iter().rev() {
            if t == 0 {
                let _ = (store.set(0, id, 3, Value::Nil), naive.set(0, id, 3, Value::Nil));
            }
        }
        let ids: Vec<u64> = naive.rows[t].keys().copied().collect();
        for id in ids {
            assert_eq!(store.delete(t as u32, id).map(drop), naive.delete(t, id));
        }
    }
    assert_eq!(store.memory_used(), 0);
}

fn ask(store: &Store, naive: &Naive, q: &Question, round: usize, ordered: bool) {
    let desc = &naive.tables[q.table as usize];
    let expected = answer(naive, q);
    for (access, binds, ordering) in accesses(desc, q, ordered) {
        let condition = |(i, (number, op, _)): (usize, &(u32, CompareOp, Value))| Condition {
            path: column(*number),
            op: *op,
            operand: Some(i as u32),
            binds: binds[i],
        };
        let query = QueryDesc {
            conditions: q.conditions.iter().enumerate().map(condition).collect(),
            order: q.order.iter().map(|(c, desc)| (column(*c), *desc)).collect(),
            outputs: vec![Path { steps: Vec::new(), end: PathEnd::Id }, column(0)],
            ..query(q.table, access.clone(), ordering)
        };
        let values: Vec<Cell<'_>> = q.conditions.iter().map(|(_, _, v)| v.cell()).collect();
        let operands = Operands { values: &values, skip: q.skip, take: q.take, ..Operands::default() };
        let mut rows = Rows::default();
        assert_eq!(store.evaluate(&query, &operands, &mut rows, &mut 0), Ok(Some(())));
        let ids: Vec<u64> = rows.0.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, expected, "round {round}: {query:?} with {operands:?}");
        for (id, outputs) in &rows.0 {
            assert_eq!(outputs, &[Value::Word(*id), naive.rows[q.table as usize][id][0].clone()]);
        }
        let count = store.count_rows(&QueryDesc { ordering: Ordering::None, ..query.clone() }, &operands, &mut 0);
        assert_eq!(count, Ok(expected.len() as u64), "round {round}: count of {query:?}");
    }
}
