//! Verdict V: the store equals the model after some beginning of the statements that holds all acknowledged ones, in its
//! rows, its indexes and the ids that it hands out next.

use crate::life::{History, open};
use crate::naive::{Naive, Row, order};
use crate::query::query;
use crate::workload::{LOAN, lookup, probes, program, walk};
use abi::tables::{Access, Ordering, QueryDesc};
use std::collections::BTreeMap;
use std::fmt;
use store::disk::simulated::Simulated;
use store::{Cell, OpenError, Operands, Sink, Store, Value};

/// Rows of the three tables, and the ids of the next ones.
#[derive(Clone, PartialEq)]
pub struct State {
    pub rows: Vec<BTreeMap<u64, Row>>,
    pub next: Vec<u64>,
}

/// Short enough to be read: of long values, their length.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rows, next) in self.rows.iter().zip(&self.next) {
            writeln!(f, "next {next}")?;
            for (id, row) in rows {
                write!(f, "  {id}:")?;
                for value in row {
                    match value {
                        Value::Bytes(bytes) if bytes.len() > 12 => write!(f, " {} bytes", bytes.len())?,
                        Value::Bytes(bytes) => write!(f, " {:?}", String::from_utf8_lossy(bytes))?,
                        Value::Word(word) => write!(f, " {}", *word as i64)?,
                        Value::Nil => write!(f, " nil")?,
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

impl State {
    pub fn of(model: &Naive) -> State {
        State { rows: model.rows.clone(), next: model.next.clone() }
    }

    /// What a start would find on `disk`, which stays as it is; the error is the refusal to open.
    pub fn on(disk: &Simulated) -> Result<State, OpenError> {
        let copy = Simulated::with_files(1, &disk.files());
        let store = open(&copy)?;
        let rows: Vec<_> = (0..3).map(|table| rows(&store, table)).collect();
        check_indexes(&store, &rows);
        // The next id is known once it has been used. A row that a probe refers to is the probe before it.
        let mut next = vec![0; 3];
        for table in 0..3 {
            let [shelf, book, loan] = probes(&next);
            let probe = [shelf, book, loan].into_iter().nth(table).unwrap();
            next[table] = store.insert(table as u32, probe).unwrap().0;
        }
        store.close();
        drop(store);
        let store = open(&copy.restart()).unwrap();
        for (table, rows) in rows.iter().enumerate() {
            assert_eq!(store.len(table as u32), rows.len() as u64 + 1, "after the probes");
        }
        Ok(State { rows, next })
    }

    /// How many of the statements there are, all acknowledged ones among them.
    #[track_caller]
    pub fn find_in(&self, history: &History) -> usize {
        let mut model = history.sure.clone();
        let mut count = history.acknowledged;
        loop {
            if self.next == model.next && self.rows == model.rows {
                return count;
            }
            let Some(statement) = history.statements.get(count) else { break };
            let _ = statement.on_model(&mut model);
            count += 1;
        }
        let (sure, all) = (State::of(&history.sure), State::of(&history.model));
        let counts = (history.acknowledged, history.statements.len());
        panic!("no beginning of {counts:?} statements\nacknowledged: {sure:?}\nall: {all:?}\nfound: {self:?}");
    }
}

/// The verdict on what a start would find: how many statements there are.
#[track_caller]
pub fn verdict(disk: &Simulated, history: &History) -> usize {
    let state = State::on(disk).unwrap_or_else(|error| panic!("does not open: {error}"));
    state.find_in(history)
}

#[derive(Default)]
struct Ids(Vec<u64>);

impl Sink for Ids {
    fn room(&mut self, _: usize) -> bool {
        true
    }

    fn row(&mut self, id: u64, _: &[Cell<'_>]) -> bool {
        self.0.push(id);
        true
    }
}

fn ids(store: &Store, query: &QueryDesc, values: Vec<Cell<'_>>) -> Vec<u64> {
    let mut ids = Ids::default();
    let operands = Operands { values: &values, ..Operands::default() };
    assert_eq!(store.evaluate(query, &operands, &mut ids, &mut 0), Ok(Some(())));
    ids.0
}

pub fn rows(store: &Store, table: usize) -> BTreeMap<u64, Row> {
    let all = store_ids(store, table);
    let read = |id: u64| {
        let row = store.read_row(table as u32, id, |cells| cells.iter().map(|c| c.to_value()).collect());
        (id, row.unwrap())
    };
    let rows: BTreeMap<u64, Row> = all.into_iter().map(read).collect();
    assert_eq!(store.len(table as u32), rows.len() as u64);
    rows
}

/// Each index holds each row, in the order of its columns where the program asks for it.
fn check_indexes(store: &Store, rows: &[BTreeMap<u64, Row>]) {
    for (number, (table, rows)) in program().0.tables.iter().zip(rows).enumerate() {
        for (index, desc) in table.indexes.iter().enumerate() {
            let first = desc.columns[0] as usize;
            if desc.unique && number != LOAN {
                for (id, row) in rows.iter().filter(|(_, row)| row[first] != Value::Nil) {
                    let lookup = lookup(number, index as u32, first as u32);
                    assert_eq!(ids(store, &lookup, vec![row[first].cell()]), [*id], "index {index} of {}", table.name);
                }
                continue;
            }
            let mut expected: Vec<(&u64, &Row)> = rows.iter().collect();
            expected.sort_by(|(_, l), (_, r)| {
                let by = |c: &u32| {
                    let c = *c as usize;
                    order(table.columns[c].kind, &l[c], &r[c])
                };
                desc.columns.iter().map(by).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
            });
            let found = ids(store, &walk(number, index as u32), Vec::new());
            let expected: Vec<u64> = expected.into_iter().map(|(id, _)| *id).collect();
            assert_eq!(found, expected, "index {index} of {}", table.name);
            // What refers to a row is found by the index on the column.
            if let Some(target) = table.columns[first].refers {
                for id in store_ids(store, target as usize) {
                    let refers = |(_, row): &(&u64, &Row)| row[first] == Value::Word(id);
                    let expected: Vec<u64> = rows.iter().filter(refers).map(|(id, _)| *id).collect();
                    assert_eq!(store.referrers(number as u32, index as u32, id), Ok(expected));
                }
            }
        }
    }
}

fn store_ids(store: &Store, table: usize) -> Vec<u64> {
    ids(store, &query(table as u32, Access::Scan, Ordering::None), Vec::new())
}
