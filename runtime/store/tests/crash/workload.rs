//! Workload W: three tables with unique, composite and `ref` indexes, texts of 0 to 8 KiB, and statements over them of
//! which some are refused.

use crate::naive::{Naive, Row};
use crate::program::{Program, indexes};
use crate::query::{column, query};
use crate::random::Random;
use abi::desc::{TYPE_FLOAT, TYPE_INT, TYPE_TEXT};
use abi::tables::{Access, ColumnKind, CompareOp, Condition, Ordering, QueryDesc};
use store::{Cell, Refusal, Seq, Store, UpdateError, Value};

const SHELF: usize = 0;
const BOOK: usize = 1;

/// `Shelf { code: ?Text @unique, zone: Int, weight: Float }`, `Book { title: Text, copies: Int, shelf: ref Shelf, spare:
/// ?ref Shelf }` and `Loan { book: ref Book, who: Text @unique, days: multi Int }`.
pub fn program() -> Program {
    let mut program = Program::new();
    let text = program.nullable(TYPE_TEXT);
    let days = program.multi(TYPE_INT);
    let shelf = program.table("Shelf", &[("code", text, None), ("zone", TYPE_INT, None), ("weight", TYPE_FLOAT, None)]);
    program.last().indexes = indexes(&[(&[1, 2], false), (&[0], true)]);
    let spare = program.nullable(shelf);
    let columns =
        [("title", TYPE_TEXT, None), ("copies", TYPE_INT, None), ("shelf", shelf, None), ("spare", spare, None)];
    let book = program.table("Book", &columns);
    program.last().indexes = indexes(&[(&[2, 1], false), (&[0, 1], false), (&[3], false)]);
    let _ = program.table("Loan", &[("book", book, None), ("who", TYPE_TEXT, None), ("days", days, None)]);
    program.last().indexes = indexes(&[(&[0], false), (&[1], true)]);
    program.0.queries.push(walk(LOAN, 1));
    program
}

/// The table whose unique column has an order.
pub const LOAN: usize = 2;

/// All rows in the order of an index.
pub fn walk(table: usize, index: u32) -> QueryDesc {
    query(table as u32, Access::Walk { index }, Ordering::Index { desc: false })
}

/// The rows with a value in the column of an index.
pub fn lookup(table: usize, index: u32, of: u32) -> QueryDesc {
    let condition = Condition { path: column(of), op: CompareOp::Eq, operand: Some(0), binds: true };
    let query = query(table as u32, Access::Index { index, equal: 1, range: false }, Ordering::None);
    QueryDesc { conditions: vec![condition], ..query }
}

/// A statement and what it is to do.
#[derive(Clone, Debug)]
pub enum Statement {
    Insert(usize, Row),
    Set(usize, u64, usize, Value),
    /// `row.n += n`.
    Add(usize, u64, usize, u64),
    Delete(usize, u64),
}

/// The id of a new row, else 0.
pub type Outcome = Result<u64, Refusal>;

impl Statement {
    pub fn on_store(&self, store: &Store) -> (Outcome, Seq) {
        let done = match self.clone() {
            Statement::Insert(table, row) => store.insert(table as u32, row),
            Statement::Set(table, id, column, value) => {
                store.set(table as u32, id, column as u32, value).map(|seq| (0, seq))
            }
            Statement::Add(table, id, column, n) => {
                let add = |cell: Cell<'_>| match cell {
                    Cell::Word(word) => Ok(Value::Word(word.wrapping_add(n))),
                    Cell::Nil | Cell::Bytes(_) => Err(()),
                };
                match store.update(table as u32, id, column as u32, add) {
                    Ok(seq) => Ok((0, seq)),
                    Err(UpdateError::Refused(refusal)) => Err(refusal),
                    Err(UpdateError::Computation(())) => unreachable!("the column is an Int"),
                }
            }
            Statement::Delete(table, id) => store.delete(table as u32, id).map(|seq| (0, seq)),
        };
        done.map_or_else(|refusal| (Err(refusal), 0), |(id, seq)| (Ok(id), seq))
    }

    pub fn on_model(&self, model: &mut Naive) -> Outcome {
        match self.clone() {
            Statement::Insert(table, row) => model.insert(table, row),
            Statement::Set(table, id, column, value) => model.set(table, id, column, value).map(|()| 0),
            Statement::Add(table, id, column, n) => {
                let Some(row) = model.rows[table].get(&id) else { return Err(Refusal::NoRow) };
                let Value::Word(old) = row[column] else { unreachable!("the column is an Int") };
                model.set(table, id, column, Value::Word(old.wrapping_add(n))).map(|()| 0)
            }
            Statement::Delete(table, id) => model.delete(table, id).map(|()| 0),
        }
    }
}

/// The next statement on tables that are as the model is.
pub fn statement(random: &mut Random, model: &Naive) -> Statement {
    let table = random.below(3) as usize;
    let desc = &model.tables[table];
    // Not so many rows that the model becomes slow.
    let most = 14;
    let rows = model.rows[table].len();
    match random.below(10) {
        n if n < if rows < 4 { 8 } else { 4 } && rows < most => Statement::Insert(table, row(random, model, table)),
        4..=6 => {
            let column = random.below(desc.columns.len() as u64) as usize;
            Statement::Set(table, some_id(random, model, table), column, value(random, model, table, column))
        }
        7 => {
            let (table, column) = if random.one_in(2) { (SHELF, 1) } else { (BOOK, 1) };
            Statement::Add(table, some_id(random, model, table), column, random.below(5))
        }
        _ => Statement::Delete(table, some_id(random, model, table)),
    }
}

fn row(random: &mut Random, model: &Naive, table: usize) -> Row {
    (0..model.tables[table].columns.len()).map(|column| value(random, model, table, column)).collect()
}

/// The id of a row, one that was deleted, or one that is not there yet.
fn some_id(random: &mut Random, model: &Naive, table: usize) -> u64 {
    let rows = &model.rows[table];
    if rows.is_empty() || random.one_in(8) {
        return random.below(model.next[table] + 1);
    }
    *rows.keys().nth(random.below(rows.len() as u64) as usize).unwrap()
}

fn value(random: &mut Random, model: &Naive, table: usize, column: usize) -> Value {
    let desc = &model.tables[table].columns[column];
    if desc.nullable && random.one_in(4) {
        return Value::Nil;
    }
    match (desc.kind, desc.refers) {
        (ColumnKind::Int, Some(target)) => Value::Word(some_id(random, model, target as usize)),
        (ColumnKind::Int, None) => Value::Word((random.below(9) as i64 - 4) as u64),
        (ColumnKind::Float, _) => {
            Value::Word([0.0, -0.0, 1.5, f64::NAN, f64::NEG_INFINITY][random.below(5) as usize].to_bits())
        }
        (ColumnKind::Bytes, _) => {
            let len = match random.below(12) {
                0 => random.below(8 << 10),
                1..=3 => random.below(200),
                _ => random.below(3),
            };
            Value::Bytes((0..len).map(|_| b'a' + random.below(26) as u8).collect())
        }
        (ColumnKind::Value, _) => {
            let len = random.below(4) as u32;
            let elements = (0..len).flat_map(|_| random.below(1000).to_le_bytes());
            Value::Bytes(len.to_le_bytes().into_iter().chain(elements).collect())
        }
    }
}

/// Rows that are taken by every store, with references to each other: one for each table.
pub fn probes(next: &[u64]) -> [Row; 3] {
    let text = |text: &str| Value::Bytes(text.as_bytes().into());
    [
        vec![Value::Nil, Value::Word(0), Value::Word(0)],
        vec![text("probe"), Value::Word(1), Value::Word(next[SHELF]), Value::Nil],
        vec![Value::Word(next[BOOK]), text("a probe"), Value::Bytes([0; 4].into())],
    ]
}
