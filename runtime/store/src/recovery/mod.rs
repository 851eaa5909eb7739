//! Opening a store: its log is read from the beginning, rows are converted where the program has another schema, indexes
//! are built, and everything is checked before a byte is written (tables specification 9.1 and 10). What is wrong is
//! said in the order of 7.2: damage, then what the program's schema has against the rows, then memory.

mod ahead;
mod contradiction;
mod loader;
#[cfg(test)]
mod tests;

use crate::compact::{Bell, Compaction, Compactor};
use crate::disk::{Disk, Fault};
use crate::jobs;
use crate::log::{Damage, Error, Failure, Found, Log, Objection, Preamble, Record, Setup, Visitor, scan};
use crate::schema::{self, Check, Migration, Schema};
use crate::store::{Seq, Slot, Store};
use crate::table::Table;
use crate::value::{Cell, Value};
use abi::desc::Shapes;
use abi::tables::TableDesc;
use ahead::scan_ahead;
use contradiction::twins;
pub(crate) use contradiction::{Columns, findings};
use loader::Checker;
pub(crate) use loader::{Loaded, Loader, damage, schema_in};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};

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
    /// The rows take more than this bound of memory, in bytes.
    Memory(u64),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Fault(fault) => fault.fmt(f),
            OpenError::Damage(damage) => damage.fmt(f),
            OpenError::Schema(refusal) => refusal.fmt(f),
            OpenError::Memory(bytes) => {
                let mib = bytes >> 20;
                write!(f, "its rows and indexes take more than {mib} MiB; WO_DB_MB sets another bound")
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
        let threads = jobs::cores();
        let (loader, end) = read(&*disk, threads)?;
        let found = end.map_err(OpenError::Damage)?;
        let records = loader.records;
        let target = Schema::of(shapes, settings.now).remembering(&loader.schema);
        let (loader, notices) = become_program(loader, &*disk, target, shapes, threads)?;
        let counters = loader.tables.iter().map(|table| table.next).collect();
        let mut encoded = Vec::new();
        loader.schema.encode(&mut encoded);
        let mut store = into_store(loader, &*disk, shapes, settings.memory, threads)?;
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
    let threads = jobs::cores();
    let (loader, end) = read(disk, threads)?;
    let _ = end.map_err(OpenError::Damage)?;
    check_rows(disk, &loader, Columns::All, threads)?;
    let held = loader.schema.tables.iter().zip(&loader.tables).filter(|(_, loaded)| loaded.rows.len() > 0);
    for (table, loaded) in held {
        if schema::is_volatile(shapes, &table.name) {
            let (class, rows) = (table.name.to_string(), loaded.rows.len());
            return Err(OpenError::Schema(schema::Refusal::Volatile { class, rows }));
        }
    }
    Ok(())
}

/// Where a record lies.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub segment: u64,
    pub offset: u64,
}

/// Reads the whole log, and if it is damaged, what precedes that.
pub(crate) fn read(disk: &dyn Disk, threads: usize) -> Result<(Loader, Result<Found, Damage>), Fault> {
    let mut loader = Loader::default();
    let end = match scan_ahead(disk, threads, &mut Checker::default(), &mut loader) {
        Ok(found) => loader.check_founded().map(|()| found),
        Err(Error::Damage(damage)) => Err(damage),
        Err(Error::Fault(fault)) => return Err(fault),
        Err(Error::Stopped) => {
            let error = std::io::ErrorKind::Interrupted.into();
            return Err(Fault { operation: "reading", path: "log".into(), error });
        }
    };
    Ok((loader, end))
}

/// Refuses rows that cannot be beside each other.
fn check_rows(disk: &dyn Disk, loader: &Loader, columns: Columns, threads: usize) -> Result<(), OpenError> {
    match findings(disk, loader, columns, threads)?.into_iter().next() {
        Some(damage) => Err(OpenError::Damage(damage)),
        None => Ok(()),
    }
}

/// Makes the rows those of the program, unless it may not have them, and says what there is to tell. If nothing is
/// different, whether values are unique has yet to be seen.
fn become_program(
    mut loader: Loader,
    disk: &dyn Disk,
    target: Schema,
    shapes: &Shapes,
    threads: usize,
) -> Result<(Loader, Vec<String>), OpenError> {
    let stored = loader.schema.clone();
    let migration = Migration::between(&stored, &target);
    if !migration.is_needed() {
        check_rows(disk, &loader, Columns::Refs, threads)?;
        return Ok((loader, Vec::new()));
    }
    check_rows(disk, &loader, Columns::All, threads)?;
    if let Some(refusal) = migration.refusal(shapes, |table| loader.rows(table)) {
        return Err(OpenError::Schema(refusal));
    }
    if let Some(refusal) = loader.nil(&migration).and_then(|check| migration.broken(check, Cell::Nil)) {
        return Err(OpenError::Schema(refusal));
    }
    let migrated = loader.migrate(&target, &migration);
    migrated.map_err(|seq| damage_of(disk, seq, "a row does not fit its schema"))?;
    for check in migration.checks() {
        if let Some(value) = breaking(&loader, check, &target)
            && let Some(refusal) = migration.broken(check, value.cell())
        {
            return Err(OpenError::Schema(refusal));
        }
    }
    let notices = migration.notices();
    loader.schema = target;
    Ok((loader, notices))
}

/// The value of a row that breaks a check, if one does.
fn breaking(loader: &Loader, check: Check, target: &Schema) -> Option<Value> {
    let (Check::NotNil { table, column } | Check::Unique { table, column } | Check::Target { table, column }) = check;
    let loaded = loader.tables.get(table)?;
    let desc = target.tables.get(table)?.columns.get(column)?;
    let cell = match check {
        Check::NotNil { .. } => None,
        Check::Target { .. } => {
            let named = &loader.tables.get(target.target(desc)?)?.rows;
            let mut cells = loaded.rows.iter().map(|(_, row)| row.cell(column));
            cells.find(|cell| matches!(cell, Cell::Word(id) if !named.contains(*id)))
        }
        Check::Unique { .. } => {
            let (id, _) = *twins(loaded, column, desc.kind).first()?;
            loaded.rows.get(id).map(|row| row.cell(column))
        }
    };
    cell.map(Cell::to_value)
}

/// Builds the program's tables.
fn into_store(
    loader: Loader,
    disk: &dyn Disk,
    shapes: &Shapes,
    memory: u64,
    threads: usize,
) -> Result<Store, OpenError> {
    let mut number = 0;
    let logged = |desc: &TableDesc| {
        schema::is_stored(desc).then(|| {
            number += 1;
            number - 1
        })
    };
    let store = Store::with(shapes.tables.clone(), shapes.queries.clone(), memory, logged);
    let mut loaded: Vec<Option<Loaded>> = loader.tables.into_iter().map(Some).collect();
    let loaded: Vec<Mutex<Option<Loaded>>> = store
        .slots
        .iter()
        .map(|slot| slot.logged.and_then(|n| loaded.get_mut(usize::from(n))).and_then(Option::take))
        .map(Mutex::new)
        .collect();
    let each = |work: &(dyn Fn(&Slot, &mut Option<Loaded>) -> u64 + Sync)| {
        let costs = jobs::run(threads, loaded.len(), |number| match (store.slots.get(number), loaded.get(number)) {
            (Some(slot), Some(loaded)) => work(slot, &mut loaded.lock().unwrap_or_else(PoisonError::into_inner)),
            _ => 0,
        });
        costs.into_iter().sum::<u64>()
    };
    let most = each(&|slot, loaded| loaded.as_ref().map_or(0, |loaded| read_lock(slot).most(&loaded.rows)));
    let weigh = || each(&|slot, loaded| loaded.as_ref().map_or(0, |loaded| read_lock(slot).weigh(&loaded.rows) as u64));
    // It is known before indexes take up memory that there may not be.
    if most > memory && weigh() > memory {
        drop((loaded, store));
        check_again(disk, threads)?;
        return Err(OpenError::Memory(memory));
    }
    let twice = Mutex::new(None);
    // Tables first, then the indexes of each.
    let shared = (threads / loaded.len().max(1)).max(1);
    let cost = each(&|slot, loaded| {
        let Some(Loaded { rows, next }) = loaded.take() else { return 0 };
        let mut table = slot.table.write().unwrap_or_else(PoisonError::into_inner);
        let (bytes, id) = table.fill(rows, next, shared);
        if let Some(row) = id.and_then(|id| table.rows.get(id)) {
            *twice.lock().unwrap_or_else(PoisonError::into_inner) = Some(row.base());
        }
        bytes as u64
    });
    if let Some(seq) = twice.into_inner().unwrap_or_else(PoisonError::into_inner) {
        check_again(disk, threads)?;
        return Err(damage_of(disk, seq, "another row has the same value in a unique column"));
    }
    if !store.memory.charge(i64::try_from(cost).unwrap_or(i64::MAX)) {
        return Err(OpenError::Memory(memory));
    }
    Ok(store)
}

fn read_lock(slot: &Slot) -> RwLockReadGuard<'_, Table> {
    slot.table.read().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a log once more to find what `check` would find in its rows first.
fn check_again(disk: &dyn Disk, threads: usize) -> Result<(), OpenError> {
    let (loader, _) = read(disk, threads)?;
    check_rows(disk, &loader, Columns::All, threads)
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
