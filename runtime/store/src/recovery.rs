//! Opening a store: its log is read from the beginning, rows are converted where the program has another schema, indexes
//! are built, and everything is checked before a byte is written (tables specification 9.1 and 10).
//!
//! Records of rows whose segment compaction has dropped may be missing at the front: a change or deletion then finds no
//! row. Such a row is *unfounded* until a record that holds all of it, or its deletion, comes.

use crate::bytes::Reader;
use crate::compact::{Bell, Compaction, Compactor};
use crate::disk::{Disk, Fault};
use crate::key;
use crate::lock::Reading;
use crate::log::{Damage, Error, Failure, Found, Kind, Log, Objection, Preamble, Record, Setup, Visitor, scan};
use crate::record;
use crate::rows::{Row, Rows};
use crate::schema::{self, Check, Migration, Schema};
use crate::store::{Seq, Store};

use crate::value::{Cell, Value};
use abi::desc::Shapes;
use abi::tables::TableDesc;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError};

/// What opening needs beside the files and the program.
pub struct Settings {
    /// Bytes that rows and indexes may take.
    pub memory: u64,
    /// Bytes of records after which a new segment of the log is begun.
    pub segment_bytes: u64,
    /// The time in milliseconds, for columns whose default it is.
    pub now: i64,
    /// Called by the log's thread when everything up to a number is durable.
    pub on_durable: Box<dyn Fn(Seq) + Send>,
    /// Called by the log's thread once, when the log can no longer be written.
    pub on_failure: Box<dyn FnOnce(Failure) + Send>,
    pub compaction: Compaction,
}

pub struct Opened {
    pub store: Store,
    /// What has changed in the schema, a line for each class.
    pub notices: Vec<String>,
    /// Records that were read.
    pub records: u64,
}

/// Why a store was not opened; nothing of it was changed.
#[derive(Debug)]
pub enum OpenError {
    Fault(Fault),
    Damage(Damage),
    Schema(schema::Refusal),
    /// The rows take more than the bound of memory: so many bytes.
    Memory(u64),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Fault(fault) => fault.fmt(f),
            OpenError::Damage(damage) => damage.fmt(f),
            OpenError::Schema(refusal) => refusal.fmt(f),
            OpenError::Memory(bytes) => {
                write!(f, "its rows take {} MiB, more than WO_DB_MB allows", bytes.div_ceil(1 << 20))
            }
        }
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> OpenError {
        OpenError::Fault(fault)
    }
}

impl Store {
    /// Opens the store of a program's tables, or makes an empty one.
    pub fn open(disk: Arc<dyn Disk>, shapes: &Shapes, settings: Settings) -> Result<Opened, OpenError> {
        let (found, mut loader) = load(&*disk)?;
        let records = loader.records;
        let target = Schema::of(shapes, settings.now).remembering(&loader.schema);
        let notices = loader.become_program(&*disk, &target, shapes)?;
        let counters = loader.tables.iter().map(|table| table.next).collect();
        let mut encoded = Vec::new();
        loader.schema.encode(&mut encoded);
        let (mut store, twice) = loader.into_store(shapes, settings.memory)?;
        if let Some(seq) = twice {
            return Err(damage_of(&*disk, seq, "another row has the same value in a unique column"));
        }
        if let Some(seq) = store.dangling() {
            return Err(damage_of(&*disk, seq, "the row refers to one that is not there"));
        }
        let bell = Arc::new(Bell::default());
        let rung = Arc::clone(&bell);
        let setup = Setup {
            preamble: Preamble { schema: encoded, counters },
            segment_bytes: settings.segment_bytes,
            on_durable: settings.on_durable,
            on_segment: Box::new(move || rung.ring()),
            on_failure: settings.on_failure,
        };
        let log = Arc::new(Log::start(disk, found, setup)?);
        store.log = Some(Arc::clone(&log));
        store.compactor = Compactor::start(settings.compaction, bell, shapes, Arc::clone(&store.slots), log)?;
        Ok(Opened { store, notices, records })
    }
}

/// Refuses a store with rows of tables that are volatile in the program, which has no durable ones. Nothing is changed.
pub fn check_volatile(disk: &dyn Disk, shapes: &Shapes) -> Result<(), OpenError> {
    let (_, loader) = load(disk)?;
    let held = loader.schema.tables.iter().zip(&loader.tables).filter(|(_, loaded)| loaded.rows.len() > 0);
    for (table, loaded) in held {
        if schema::is_volatile(shapes, &table.name) {
            let (class, rows) = (table.name.to_string(), loaded.rows.len());
            return Err(OpenError::Schema(schema::Refusal::Volatile { class, rows }));
        }
    }
    Ok(())
}

/// Reads the whole log.
fn load(disk: &dyn Disk) -> Result<(Found, Loader), OpenError> {
    let mut loader = Loader::default();
    let found = match scan(disk, &mut loader) {
        Ok(found) => found,
        Err(Error::Fault(fault)) => return Err(OpenError::Fault(fault)),
        Err(Error::Damage(damage)) => return Err(OpenError::Damage(damage)),
        Err(Error::Stopped) => unreachable!("the loader never stops"),
    };
    loader.check_founded().map_err(OpenError::Damage)?;
    Ok((found, loader))
}

/// A table while the log is read: rows without indexes.
pub(crate) struct Loaded {
    pub rows: Rows,
    pub next: u64,
}

impl Loaded {
    fn new(table: &schema::Table) -> Loaded {
        Loaded { rows: Rows::new(table.columns.iter().map(|c| (c.kind, c.nullable)), true), next: 1 }
    }
}

/// Where a record lies.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub segment: u64,
    pub offset: u64,
}

/// Applies the log's records in order. Its tables are those of the schema of the segment at hand.
#[derive(Default)]
pub(crate) struct Loader {
    /// The schema as bytes, to see whether the next segment's is the same.
    encoded: Vec<u8>,
    pub schema: Schema,
    pub tables: Vec<Loaded>,
    /// The number of the first segment: from 1 on the log is whole, and every row that a record speaks of is known.
    first: Option<u64>,
    /// Rows that a record speaks of though nothing has said what they are.
    unfounded: HashMap<(usize, u64), Place>,
    pub records: u64,
}

/// The schema in a segment's preamble.
pub(crate) fn schema_in(preamble: &Preamble) -> Result<Schema, Objection> {
    let mut bytes = preamble.schema.as_slice();
    match Schema::decode(&mut bytes) {
        Some(schema) if bytes.is_empty() => Ok(schema),
        _ => damage("the schema cannot be read"),
    }
}

pub(crate) fn damage<T>(reason: &str) -> Result<T, Objection> {
    Err(Objection::Damage(reason.to_owned()))
}

impl Visitor for Loader {
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection> {
        let _ = self.first.get_or_insert(number);
        if self.encoded != preamble.schema {
            let schema = schema_in(preamble)?;
            self.convert(&schema)?;
            self.schema = schema;
            self.encoded.clone_from(&preamble.schema);
        }
        if preamble.counters.len() != self.tables.len() {
            return damage("there is not one id counter for each table");
        }
        for (table, counter) in self.tables.iter_mut().zip(&preamble.counters) {
            // Rows that compaction has dropped have used up ids.
            if *counter < table.next {
                return damage("an id counter is not above all ids");
            }
            table.next = *counter;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        self.records += 1;
        if matches!(record.kind, Kind::Oldest | Kind::End) {
            return Ok(());
        }
        self.apply(record)
    }
}

impl Loader {
    fn apply(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        let mut body = Reader(record.body);
        let Some((number, id)) = record::read_row_id(&mut body) else { return damage("no row is named") };
        let (Some(table), Some(desc)) = (self.tables.get_mut(number), self.schema.tables.get(number)) else {
            return damage("there is no such table");
        };
        let known = table.rows.contains(id);
        let place = Place { segment: record.segment, offset: record.offset };
        match record.kind {
            Kind::Insert if id != table.next => return damage("the id of a new row is not the next one"),
            Kind::Insert => table.next += 1,
            _ if id >= table.next => return damage("the id was never handed out"),
            _ if !known && self.first == Some(1) => return damage("a record changes a row that is not there"),
            _ => {}
        }
        match record.kind {
            Kind::Insert | Kind::Keep => {
                let Some(values) = record::read_values(body, &desc.columns) else { return damage("no row") };
                if known {
                    table.rows.remove(id);
                }
                let _ = table.rows.insert(id, values);
                table.rows.set_base(id, record.seq);
                let _ = self.unfounded.remove(&(number, id));
            }
            Kind::Change => {
                let Some((column, value)) = record::read_change(body, &desc.columns) else {
                    return damage("no value of a column");
                };
                if known {
                    table.rows.set(id, column, value);
                } else {
                    let _ = self.unfounded.entry((number, id)).or_insert(place);
                }
            }
            Kind::Delete => {
                if !body.0.is_empty() {
                    return damage("more than the row's id");
                }
                table.rows.remove(id);
                let _ = self.unfounded.remove(&(number, id));
            }
            Kind::Oldest | Kind::End => {}
        }
        Ok(())
    }

    /// Makes the rows those of another schema.
    fn convert(&mut self, schema: &Schema) -> Result<(), Objection> {
        let before = std::mem::take(&mut self.schema);
        let Some(migration) = Migration::between(&before, schema) else {
            return damage("the schema has lost a table");
        };
        self.migrate(&before, schema, &migration).or_else(|_| damage("a row does not fit the schema before"))
    }

    /// The error is the number of a record whose row cannot be converted.
    fn migrate(&mut self, before: &Schema, schema: &Schema, migration: &Migration<'_>) -> Result<(), Seq> {
        let mut tables: Vec<Loaded> = schema.tables.iter().map(Loaded::new).collect();
        let mut numbers = HashMap::new();
        for (number, from) in std::mem::take(&mut self.tables).into_iter().enumerate() {
            // A migration knows all tables of both schemas.
            let Some(target) = migration.table(number) else { continue };
            let Some(to) = tables.get_mut(target) else { continue };
            let _ = numbers.insert(number, target);
            to.next = from.next;
            let columns = before.tables.get(number).map_or(0, |table| table.columns.len());
            for (id, row) in from.rows.iter() {
                let values = (0..columns).map(|c| row.cell(c).to_value()).collect();
                let values = migration.row(number, values).map_err(|schema::Malformed| row.base())?;
                let _ = to.rows.insert(id, values);
                to.rows.set_base(id, row.base());
            }
        }
        self.tables = tables;
        self.unfounded = std::mem::take(&mut self.unfounded)
            .into_iter()
            .filter_map(|((number, id), place)| Some(((*numbers.get(&number)?, id), place)))
            .collect();
        Ok(())
    }

    /// No record speaks of a row that nothing has said more of.
    pub fn check_founded(&self) -> Result<(), Damage> {
        match self.unfounded.values().min_by_key(|place| (place.segment, place.offset)) {
            None => Ok(()),
            Some(place) => Err(Damage::new(place.segment, place.offset, "a record changes a row that is not there")),
        }
    }

    /// Makes the rows those of the program, unless it may not have them; what there is to tell.
    fn become_program(&mut self, disk: &dyn Disk, target: &Schema, shapes: &Shapes) -> Result<Vec<String>, OpenError> {
        let stored = std::mem::take(&mut self.schema);
        let Some(migration) = Migration::between(&stored, target) else {
            unreachable!("the target remembers all tables that are stored");
        };
        let rows = |table: usize| self.tables.get(table).map_or(0, |t| t.rows.len());
        if let Some(refusal) = migration.refusal(shapes, rows) {
            return Err(OpenError::Schema(refusal));
        }
        let is_needed = migration.is_needed();
        if is_needed {
            let migrated = self.migrate(&stored, target, &migration);
            migrated.map_err(|seq| damage_of(disk, seq, "a row does not fit its schema"))?;
        }
        for check in migration.checks() {
            if let Some(value) = self.breaking(check, target)
                && let Some(refusal) = migration.broken(check, value.cell())
            {
                return Err(OpenError::Schema(refusal));
            }
        }
        let notices = migration.notices();
        self.schema = if is_needed { target.clone() } else { stored };
        Ok(notices)
    }

    /// The value of a row that breaks a check, if one does.
    fn breaking(&self, check: Check, target: &Schema) -> Option<Value> {
        let (Check::NotNil { table, column } | Check::Unique { table, column } | Check::Target { table, column }) =
            check;
        let rows = &self.tables.get(table)?.rows;
        let desc = target.tables.get(table)?.columns.get(column)?;
        let mut cells = rows.iter().map(|(_, row)| row.cell(column));
        match check {
            Check::NotNil { .. } => cells.find(|cell| *cell == Cell::Nil),
            Check::Target { .. } => {
                let named = &self.tables.get(target.target(desc)?)?.rows;
                cells.find(|cell| matches!(cell, Cell::Word(id) if !named.contains(*id)))
            }
            Check::Unique { .. } => {
                let mut seen = BTreeSet::new();
                cells.find(|cell| {
                    let mut bytes = Vec::new();
                    key::put(&mut bytes, desc.kind, *cell);
                    *cell != Cell::Nil && !seen.insert(bytes)
                })
            }
        }
        .map(Cell::to_value)
    }

    /// Builds the program's tables; the number of the record of a row that has the value of another one in a unique
    /// column, if there is one.
    fn into_store(self, shapes: &Shapes, memory: u64) -> Result<(Store, Option<Seq>), OpenError> {
        let mut number = 0;
        let logged = |desc: &TableDesc| {
            schema::is_stored(desc).then(|| {
                number += 1;
                number - 1
            })
        };
        let store = Store::with(shapes.tables.clone(), shapes.queries.clone(), memory, logged);
        let mut loaded: Vec<Option<Loaded>> = self.tables.into_iter().map(Some).collect();
        let (mut cost, mut twice) = (0, None);
        for slot in store.slots.iter() {
            let taken = slot.logged.and_then(|n| loaded.get_mut(usize::from(n))).and_then(Option::take);
            let Some(Loaded { rows, next }) = taken else { continue };
            let mut table = slot.table.write().unwrap_or_else(PoisonError::into_inner);
            let (bytes, id) = table.fill(rows, next);
            cost += bytes as u64;
            twice = twice.or_else(|| table.rows.get(id?).map(|row| row.base()));
        }
        if !store.memory.charge(i64::try_from(cost).unwrap_or(i64::MAX)) {
            return Err(OpenError::Memory(cost));
        }
        Ok((store, twice))
    }
}

impl Store {
    /// The number of the record of a row that refers to one which is not there.
    fn dangling(&self) -> Option<Seq> {
        let tables = Reading::new(&self.slots, 0..self.slots.len());
        for (number, slot) in self.slots.iter().enumerate() {
            let Some(table) = tables.get(number) else { continue };
            for (column, target) in slot.desc.columns.iter().enumerate().filter_map(|(i, c)| Some((i, c.refers?))) {
                let Some(target) = tables.get(target as usize) else { continue };
                let dangling = |row: Row<'_>| matches!(row.cell(column), Cell::Word(id) if !target.rows.contains(id));
                if let Some((_, row)) = table.rows.iter().find(|(_, row)| dangling(*row)) {
                    return Some(row.base());
                }
            }
        }
        None
    }
}

/// Damage in the record of this number.
fn damage_of(disk: &dyn Disk, seq: Seq, reason: &str) -> OpenError {
    match places(disk, BTreeSet::from([seq])) {
        Ok(places) => {
            let Place { segment, offset } = places.get(&seq).copied().unwrap_or(Place { segment: 1, offset: 0 });
            OpenError::Damage(Damage::new(segment, offset, reason))
        }
        Err(fault) => OpenError::Fault(fault),
    }
}

/// Where the records of these numbers lie in a log that has been read before.
pub(crate) fn places(disk: &dyn Disk, sought: BTreeSet<Seq>) -> Result<HashMap<Seq, Place>, Fault> {
    struct Search {
        sought: BTreeSet<Seq>,
        found: HashMap<Seq, Place>,
    }
    impl Visitor for Search {
        fn segment(&mut self, _: u64, _: &Preamble) -> Result<(), Objection> {
            Ok(())
        }

        fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
            if self.sought.remove(&record.seq) {
                let _ = self.found.insert(record.seq, Place { segment: record.segment, offset: record.offset });
            }
            if self.sought.is_empty() { Err(Objection::Stop) } else { Ok(()) }
        }
    }
    let mut search = Search { sought, found: HashMap::new() };
    match scan(disk, &mut search) {
        Err(Error::Fault(fault)) => Err(fault),
        Ok(_) | Err(Error::Stopped | Error::Damage(_)) => Ok(search.found),
    }
}
