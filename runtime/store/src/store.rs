//! The statements that change or read single rows.

use crate::MAX_ROW;
use crate::compact::Compactor;
use crate::key;
use crate::lock::{Reading, Writing, only};
use crate::log::{self, Kind, Log};
use crate::memory::Memory;
use crate::query;
use crate::record;
use crate::table::Table;
use crate::value::{Cell, Value};
use abi::tables::{QueryDesc, TableDesc};
use std::sync::{Arc, RwLock};

/// Why a statement did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The row does not exist.
    NoRow,
    /// A `ref` names no row.
    NoTarget,
    /// A unique column has this value already.
    Unique,
    /// A `ref` column holds the row's id.
    Referenced,
    TooLarge,
    /// The bound of the store's memory.
    Memory,
}

/// A refused `Store::update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateError<E> {
    Refused(Refusal),
    /// The computation failed.
    Computation(E),
}

/// The number of a record in the log; 0: there is none, and nothing to wait for.
pub type Seq = u64;

#[derive(Debug)]
pub(crate) struct Slot {
    pub desc: TableDesc,
    /// Number of the table in the log's schema, if its rows are in the log.
    pub logged: Option<u16>,
    pub table: RwLock<Table>,
    /// Indexes that start with a `ref` column to this table: the table, the index.
    pub referrers: Vec<(usize, usize)>,
    /// The tables of `referrers`, and those that `ref` columns lead to: ascending, each once, without this one.
    pub referring: Vec<usize>,
    pub targets: Vec<usize>,
    /// The unique indexes by column, in the order of columns.
    pub unique: Vec<(usize, usize)>,
}

/// All tables of a program.
pub struct Store {
    pub(crate) slots: Arc<[Slot]>,
    pub(crate) queries: Vec<QueryDesc>,
    pub(crate) memory: Memory,
    /// Ends before the log does.
    pub(crate) compactor: Option<Compactor>,
    pub(crate) log: Option<Arc<Log>>,
}

/// What a store with a log has done since it was opened.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    pub log: log::Stats,
    /// Segments that compaction has dropped, the bytes of their records, and how long that took.
    pub compactions: u64,
    pub compact_bytes: u64,
    pub compact_ms: u64,
    /// The longest time that it has held a table's lock.
    pub compact_pause_us_max: u64,
    /// Bytes that the log would take if it held each row once.
    pub live_bytes: u64,
}

impl Store {
    /// An empty store whose rows and indexes may take `memory` bytes; nothing of it is written anywhere.
    #[must_use]
    pub fn new(tables: Vec<TableDesc>, queries: Vec<QueryDesc>, memory: u64) -> Store {
        Store::with(tables, queries, memory, |_| None)
    }

    /// An empty store; `logged` gives the number in the log's schema of a table whose rows are in the log.
    pub(crate) fn with(
        tables: Vec<TableDesc>,
        queries: Vec<QueryDesc>,
        memory: u64,
        mut logged: impl FnMut(&TableDesc) -> Option<u16>,
    ) -> Store {
        let mut slots: Vec<Slot> = Vec::with_capacity(tables.len());
        let links: Vec<(usize, usize, usize)> = tables.iter().enumerate().flat_map(links).collect();
        let ordered = |table: usize, index: usize, columns: usize| {
            links.iter().any(|link| (link.0, link.1) == (table, index))
                || queries.iter().any(|query| query.table as usize == table && query::asks_order(query, index, columns))
        };
        for (number, desc) in tables.into_iter().enumerate() {
            let referrers: Vec<_> = links.iter().filter(|l| l.2 == number).map(|l| (l.0, l.1)).collect();
            let indexes = desc.indexes.iter().enumerate().filter(|(_, index)| index.unique);
            let mut unique: Vec<_> =
                indexes.filter_map(|(i, index)| Some((*index.columns.first()? as usize, i))).collect();
            unique.sort_unstable();
            let logged = logged(&desc);
            slots.push(Slot {
                table: RwLock::new(Table::new(&desc, logged.is_some(), |index, columns| {
                    ordered(number, index, columns)
                })),
                logged,
                referring: others(number, referrers.iter().map(|r| r.0)),
                targets: others(number, desc.columns.iter().filter_map(|c| c.refers.map(|t| t as usize))),
                desc,
                referrers,
                unique,
            });
        }
        Store { slots: slots.into(), queries, memory: Memory::new(memory), compactor: None, log: None }
    }

    #[must_use]
    pub fn table(&self, table: u32) -> Option<&TableDesc> {
        self.slots.get(table as usize).map(|slot| &slot.desc)
    }

    /// Adds a record about a row of a table that is in the log. The caller holds the table's lock: records of a row come
    /// in the order of its changes.
    fn stage(&self, kind: Kind, body: &[u8]) -> Seq {
        self.log.as_ref().map_or(0, |log| log.stage(kind, |out| out.extend_from_slice(body)))
    }

    /// Adds a row with a value for every column; its id.
    pub fn insert(&self, table: u32, values: Vec<Value>) -> Result<(u64, Seq), Refusal> {
        let own = table as usize;
        let slot = self.slots.get(own).ok_or(Refusal::NoRow)?;
        let desc = &slot.desc;
        let fits = values.iter().map(|value| max_size(value.cell())).sum::<usize>() <= MAX_ROW;
        let mut body = slot.logged.filter(|_| fits).map(|number| {
            let mut body = Vec::with_capacity(64);
            let cells = values.iter().map(Value::cell).zip(desc.columns.iter().map(|c| c.nullable));
            record::put_row(&mut body, number, 0, cells);
            body
        });
        let mut locks = Writing::new(&self.slots, own, &slot.targets).ok_or(Refusal::NoRow)?;
        for (column, value) in desc.columns.iter().zip(&values) {
            if let (Some(target), Value::Word(id)) = (column.refers, value) {
                check_target(&locks, target, *id)?;
            }
        }
        let table = locks.own();
        for (column, index) in &slot.unique {
            check_unique(table, *index, values.get(*column).map_or(Cell::Nil, Value::cell), 0)?;
        }
        if !fits {
            return Err(Refusal::TooLarge);
        }
        let (draft, cost) = table.draft(values);
        if table.rows.is_full() || !self.memory.charge(signed(cost)) {
            return Err(Refusal::Memory);
        }
        let id = table.insert(draft);
        let seq = body.as_mut().map_or(0, |body| {
            record::set_id(body, id);
            self.stage(Kind::Insert, body)
        });
        if seq > 0 {
            table.rows.set_base(id, seq);
        }
        Ok((id, seq))
    }

    /// Calls `read` with the value of a column, while its table is locked.
    pub fn read<R>(&self, table: u32, id: u64, column: u32, read: impl FnOnce(Cell<'_>) -> R) -> Result<R, Refusal> {
        let table = only(&self.slots, table).ok_or(Refusal::NoRow)?;
        let row = table.rows.get(id).ok_or(Refusal::NoRow)?;
        Ok(read(row.cell(column as usize)))
    }

    /// Calls `read` with the values of all columns of a row, in order.
    pub fn read_row<R>(&self, table: u32, id: u64, read: impl FnOnce(&[Cell<'_>]) -> R) -> Result<R, Refusal> {
        let columns = self.table(table).map_or(0, |desc| desc.columns.len());
        let table = only(&self.slots, table).ok_or(Refusal::NoRow)?;
        let row = table.rows.get(id).ok_or(Refusal::NoRow)?;
        let cells: Vec<Cell<'_>> = (0..columns).map(|c| row.cell(c)).collect();
        Ok(read(&cells))
    }

    /// Gives a column a new value.
    pub fn set(&self, table: u32, id: u64, column: u32, value: Value) -> Result<Seq, Refusal> {
        match self.update(table, id, column, |_| Ok::<Value, ()>(value)) {
            Ok(seq) => Ok(seq),
            Err(UpdateError::Refused(refusal)) => Err(refusal),
            Err(UpdateError::Computation(())) => Err(Refusal::NoRow),
        }
    }

    /// Gives a column the value that `compute` makes of its present one, with nothing in between.
    pub fn update<E>(
        &self,
        table: u32,
        id: u64,
        column: u32,
        compute: impl FnOnce(Cell<'_>) -> Result<Value, E>,
    ) -> Result<Seq, UpdateError<E>> {
        let refused = UpdateError::Refused;
        let (own, column) = (table as usize, column as usize);
        let slot = self.slots.get(own).ok_or(refused(Refusal::NoRow))?;
        let desc = &slot.desc;
        let refers = desc.columns.get(column).and_then(|c| c.refers);
        let target = refers.map(|t| t as usize).filter(|t| *t != own);
        let mut locks = Writing::new(&self.slots, own, target.as_slice()).ok_or(refused(Refusal::NoRow))?;
        let row = locks.get(own).and_then(|t| t.rows.get(id)).ok_or(refused(Refusal::NoRow))?;
        let old = row.cell(column);
        let value = compute(old).map_err(UpdateError::Computation)?;
        let new = value.cell();
        if let (Some(target), Cell::Word(id)) = (refers, new) {
            check_target(&locks, target, id).map_err(refused)?;
        }
        let table = locks.own();
        let row = table.rows.get(id).ok_or(refused(Refusal::NoRow))?;
        if let Some((_, index)) = slot.unique.iter().find(|u| u.0 == column) {
            check_unique(table, *index, new, id).map_err(refused)?;
        }
        let size = |c: usize| if c == column { max_size(new) } else { max_size(row.cell(c)) };
        if matches!(new, Cell::Bytes(_)) && (0..desc.columns.len()).map(size).sum::<usize>() > MAX_ROW {
            return Err(refused(Refusal::TooLarge));
        }
        let nullable = desc.columns.get(column).is_some_and(|c| c.nullable);
        let body = slot.logged.map(|number| record::change(number, id, column as u16, new, nullable));
        let (change, growth) = table.change(row, column, value);
        if !self.memory.charge(growth) {
            return Err(refused(Refusal::Memory));
        }
        table.apply(id, change);
        Ok(body.map_or(0, |body| self.stage(Kind::Change, &body)))
    }

    /// Removes a row that no other row refers to.
    pub fn delete(&self, table: u32, id: u64) -> Result<Seq, Refusal> {
        let own = table as usize;
        let slot = self.slots.get(own).ok_or(Refusal::NoRow)?;
        let mut locks = Writing::new(&self.slots, own, &slot.referring).ok_or(Refusal::NoRow)?;
        if !locks.get(own).is_some_and(|t| t.rows.contains(id)) {
            return Err(Refusal::NoRow);
        }
        let prefix = reference(id);
        for (referring, index) in &slot.referrers {
            let Some(table) = locks.get(*referring) else { continue };
            // The row's own references to itself do not count.
            if table.beginning(*index, &prefix).any(|key| *referring != own || key.id() != id) {
                return Err(Refusal::Referenced);
            }
        }
        let _ = self.memory.charge(-signed(locks.own().remove(id)));
        let mut body = Vec::new();
        Ok(slot.logged.map_or(0, |number| {
            record::put_row_id(&mut body, number, id);
            self.stage(Kind::Delete, &body)
        }))
    }

    /// Makes everything durable that has been done, and says in the log that this was a normal end. Without effect where
    /// there is no log.
    pub fn close(&self) {
        if let Some(compactor) = &self.compactor {
            compactor.stop();
        }
        if let Some(log) = &self.log {
            log.close();
        }
    }

    /// Blocks until a write is durable; false if it will never be. Fibers do not wait like this.
    pub fn wait(&self, seq: Seq) -> bool {
        self.log.as_ref().is_none_or(|log| log.wait(seq))
    }

    /// What has been done, if there is a log.
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        let log = self.log.as_ref()?.stats();
        let totals = self.compactor.as_ref().map(Compactor::totals).unwrap_or_default();
        Some(Stats {
            log,
            compactions: totals.segments,
            compact_bytes: totals.read,
            compact_ms: u64::try_from(totals.busy.as_millis()).unwrap_or(u64::MAX),
            compact_pause_us_max: u64::try_from(totals.pause.as_micros()).unwrap_or(u64::MAX),
            live_bytes: live_bytes(&self.slots),
        })
    }

    /// The rows of `table` whose column, the first of `index`, refers to the row `id`, which must exist; ascending.
    pub fn referrers(&self, table: u32, index: u32, id: u64) -> Result<Vec<u64>, Refusal> {
        self.with_referrers(table, index, id, |keys| keys.map(key::Key::id).collect()).map(|mut ids: Vec<u64>| {
            ids.sort_unstable();
            ids
        })
    }

    /// The number of `referrers`.
    pub fn count_referrers(&self, table: u32, index: u32, id: u64) -> Result<u64, Refusal> {
        self.with_referrers(table, index, id, |keys| keys.count() as u64)
    }

    fn with_referrers<R>(
        &self,
        table: u32,
        index: u32,
        id: u64,
        read: impl FnOnce(&mut dyn Iterator<Item = &key::Key>) -> R,
    ) -> Result<R, Refusal> {
        let (table, index) = (table as usize, index as usize);
        let target = self.target(table, index).ok_or(Refusal::NoRow)?;
        let tables = if target == table { vec![table] } else { vec![table.min(target), table.max(target)] };
        let locks = Reading::new(&self.slots, tables.into_iter());
        if !locks.get(target).is_some_and(|t| t.rows.contains(id)) {
            return Err(Refusal::NoRow);
        }
        let referring = locks.get(table).ok_or(Refusal::NoRow)?;
        Ok(read(&mut referring.beginning(index, &reference(id))))
    }

    /// The table that the first column of an index refers to.
    pub(crate) fn target(&self, table: usize, index: usize) -> Option<usize> {
        let desc = &self.slots.get(table)?.desc;
        let column = *desc.indexes.get(index)?.columns.first()?;
        Some(desc.columns.get(column as usize)?.refers? as usize)
    }

    /// Memory that rows and indexes take.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// How many rows a table has.
    #[must_use]
    pub fn len(&self, table: u32) -> u64 {
        only(&self.slots, table).map_or(0, |t| t.rows.len())
    }
}

/// Bytes that the log would take if it held each row once.
pub(crate) fn live_bytes(slots: &[Slot]) -> u64 {
    let logged = (0..).zip(slots).filter(|(_, slot)| slot.logged.is_some());
    logged.filter_map(|(table, _)| only(slots, table)).map(|table| table.rows.encoded()).sum()
}

/// Numbers of tables for a statement on `own`: ascending, each once, without `own`.
fn others(own: usize, tables: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut out: Vec<usize> = tables.filter(|t| *t != own).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// For each column that refers to a table: the table it is of, an index that starts with it, the target.
fn links((number, desc): (usize, &TableDesc)) -> Vec<(usize, usize, usize)> {
    let link = |(i, column): (usize, &abi::tables::ColumnDesc)| {
        let target = column.refers? as usize;
        let index = desc.indexes.iter().position(|index| index.columns.first() == Some(&(i as u32)))?;
        Some((number, index, target))
    };
    desc.columns.iter().enumerate().filter_map(link).collect()
}

/// The key of a `ref` column that names the row.
pub(crate) fn reference(id: u64) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(16);
    key::put(&mut prefix, abi::tables::ColumnKind::Int, Cell::Word(id));
    prefix
}

fn check_target(locks: &Writing<'_>, target: u32, id: u64) -> Result<(), Refusal> {
    let found = locks.get(target as usize).is_some_and(|t| t.rows.contains(id));
    if found { Ok(()) } else { Err(Refusal::NoTarget) }
}

/// Whether the column of a unique index may have this value in the row `own`.
fn check_unique(table: &Table, index: usize, cell: Cell<'_>, own: u64) -> Result<(), Refusal> {
    let taken = cell != Cell::Nil && table.find(index, cell).is_some_and(|row| row.id() != own);
    if taken { Err(Refusal::Unique) } else { Ok(()) }
}

/// Bytes that a value takes encoded at most: its column may become nullable.
fn max_size(cell: Cell<'_>) -> usize {
    cell.size(true)
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
