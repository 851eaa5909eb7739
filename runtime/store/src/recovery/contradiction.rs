//! Rows that cannot be beside the others, by the schema that they were written with: a value twice in a unique column,
//! a reference to a row that is not there.

use super::loader::{Loaded, Loader};
use super::{Place, places};
use crate::disk::{Disk, Fault};
use crate::jobs;
use crate::key;
use crate::log::Damage;
use crate::schema::{self, Column, Schema};
use crate::store::Seq;
use crate::value::Cell;
use abi::tables::ColumnKind;
use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A row and what is wrong with it.
struct Contradiction {
    /// The last record that holds all of the row.
    seq: Seq,
    table: usize,
    id: u64,
    column: usize,
    /// The row that has the same value, with the lowest id; none if the value names a row that is not there.
    twin: Option<u64>,
}

/// A column to be looked at.
struct Job {
    table: usize,
    column: usize,
    /// The table that its values refer to; else they are unique.
    refers: Option<Option<usize>>,
}

/// What is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    All,
    /// References alone: whether values are unique shows when indexes are built.
    Refs,
}

/// All contradictions, by columns.
fn contradictions(loader: &Loader, columns: Columns, threads: usize) -> Vec<Contradiction> {
    let schema = &loader.schema;
    let jobs = schema.tables.iter().enumerate().flat_map(|(table, desc)| jobs_of(schema, table, desc));
    let jobs: Vec<Job> = jobs.filter(|job| columns == Columns::All || job.refers.is_some()).collect();
    let found = jobs::run(threads, jobs.len(), |number| jobs.get(number).map_or_else(Vec::new, |job| job.run(loader)));
    found.into_iter().flatten().collect()
}

fn jobs_of(schema: &Schema, table: usize, desc: &schema::Table) -> Vec<Job> {
    let unique: BTreeSet<usize> = desc.unique().collect();
    let refs = desc.columns.iter().enumerate().filter(|(_, column)| schema.is_ref(column));
    let refs = refs.map(|(number, column)| Job { table, column: number, refers: Some(schema.target(column)) });
    unique.into_iter().map(|column| Job { table, column, refers: None }).chain(refs).collect()
}

impl Job {
    fn run(&self, loader: &Loader) -> Vec<Contradiction> {
        let Some(table) = loader.tables.get(self.table) else { return Vec::new() };
        let column = loader.schema.tables.get(self.table).and_then(|desc| desc.columns.get(self.column));
        match (self.refers, column) {
            (Some(target), _) => self.dangling(table, target.and_then(|target| loader.tables.get(target))),
            (None, Some(column)) => {
                let twins = twins(table, self.column, column.kind);
                twins.into_iter().map(|(id, twin)| self.contradiction(table, id, Some(twin))).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    fn contradiction(&self, table: &Loaded, id: u64, twin: Option<u64>) -> Contradiction {
        let seq = table.rows.get(id).map_or(0, |row| row.base());
        Contradiction { seq, table: self.table, id, column: self.column, twin }
    }

    fn dangling(&self, table: &Loaded, target: Option<&Loaded>) -> Vec<Contradiction> {
        let is_there = |id: u64| target.is_some_and(|target| target.rows.contains(id));
        let dangling =
            table.rows.iter().filter(|(_, row)| matches!(row.cell(self.column), Cell::Word(id) if !is_there(id)));
        dangling.map(|(id, _)| self.contradiction(table, id, None)).collect()
    }
}

/// The rows with a value in a column, nil aside, that a row with a lower id has too; with the lowest of those ids.
pub(super) fn twins(table: &Loaded, column: usize, kind: ColumnKind) -> Vec<(u64, u64)> {
    // Equal hashes stand beside each other in the end, and only those values are compared: nearly always there are none.
    let state = RandomState::new();
    let hash = |cell: Cell<'_>| match cell {
        Cell::Nil => None,
        Cell::Word(word) => Some(key::ordered(kind, word)),
        Cell::Bytes(bytes) => Some(state.hash_one(bytes)),
    };
    let mut hashes = Vec::with_capacity(usize::try_from(table.rows.len()).unwrap_or(0));
    hashes.extend(table.rows.iter().filter_map(|(_, row)| hash(row.cell(column))));
    hashes.sort_unstable();
    if hashes.windows(2).all(|pair| matches!(pair, [a, b] if a != b)) {
        return Vec::new();
    }
    let hashed = table.rows.iter().filter_map(|(id, row)| Some((hash(row.cell(column))?, id)));
    let mut hashes: Vec<(u64, u64)> = hashed.collect();
    hashes.sort_unstable();
    let mut twins = Vec::new();
    for group in hashes.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let bytes_of = |id: u64| match table.rows.get(id).map(|row| row.cell(column)) {
            Some(Cell::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let mut rows: Vec<(&[u8], u64)> = group.iter().map(|(_, id)| (bytes_of(*id), *id)).collect();
        rows.sort_unstable();
        for same in rows.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, twin), others @ ..] = same {
                twins.extend(others.iter().map(|(_, id)| (*id, *twin)));
            }
        }
    }
    twins.sort_unstable();
    twins
}

impl Contradiction {
    fn reason(&self, schema: &Schema) -> String {
        let Some(desc) = schema.tables.get(self.table) else { return String::new() };
        let column = desc.columns.get(self.column).map_or("", |column: &Column| &column.name);
        match self.twin {
            Some(twin) => format!("{} {} has the same `{column}` as row {twin}", desc.name, self.id),
            None => format!("{} {} refers to a row that is not there, in `{column}`", desc.name, self.id),
        }
    }
}

/// Each row that cannot be beside the others, in the order of the last records that hold them whole.
pub(crate) fn findings(
    disk: &dyn Disk,
    loader: &Loader,
    columns: Columns,
    threads: usize,
) -> Result<Vec<Damage>, Fault> {
    let found = contradictions(loader, columns, threads);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let places = places(disk, found.iter().map(|contradiction| contradiction.seq).collect())?;
    let place = |of: &Contradiction| places.get(&of.seq).copied().unwrap_or(Place { segment: 1, offset: 0 });
    let mut placed: Vec<(Place, Contradiction)> = found.into_iter().map(|found| (place(&found), found)).collect();
    placed.sort_by_key(|(place, _)| (place.segment, place.offset));
    let damage =
        |(place, found): (Place, Contradiction)| Damage::new(place.segment, place.offset, found.reason(&loader.schema));
    Ok(placed.into_iter().map(damage).collect())
}
