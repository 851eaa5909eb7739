//! The log's records, applied in order: rows without indexes, always those of the schema of the segment at hand.
//!
//! Records of rows whose segment compaction has dropped may be missing at the front: a change or deletion then finds no
//! row. Such a row is *unfounded* until a record that holds all of it, or its deletion, comes.

use super::Place;
use crate::bytes::Reader;
use crate::log::{self, Damage, Kind, Objection, Preamble, Record, Visitor};
use crate::record;
use crate::rows::Rows;
use crate::schema::{self, Check, Forms, Migration, Schema};
use crate::store::Seq;
use crate::value::Cell;
use std::collections::HashMap;

/// No id and no counter is higher: no program gets there, and ids are never negative as an Int.
const MOST_IDS: u64 = 1 << 62;

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

/// Applies the log's records.
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
    /// Encoded size of all records.
    pub record_bytes: u64,
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

/// Checks what can be said of a record without the rows: its form, and that its values are some of their types.
#[derive(Default)]
pub(super) struct Checker {
    encoded: Vec<u8>,
    schema: Schema,
    forms: Forms,
}

impl Visitor for Checker {
    fn segment(&mut self, _number: u64, preamble: &Preamble) -> Result<(), Objection> {
        if self.encoded != preamble.schema {
            self.schema = schema_in(preamble)?;
            self.forms = Forms::new(&self.schema.types);
            self.encoded.clone_from(&preamble.schema);
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        if matches!(record.kind, Kind::Oldest | Kind::End) {
            return Ok(());
        }
        let mut body = Reader(record.body);
        let Some((number, _)) = record::read_row_id(&mut body) else { return damage("no row is named") };
        let Some(desc) = self.schema.tables.get(number).filter(|desc| !desc.retired) else {
            return damage("there is no such table");
        };
        match record.kind {
            Kind::Insert | Kind::Keep => {
                for column in &desc.columns {
                    self.check(column, record::read_value(&mut body, column))?;
                }
                if body.0.is_empty() { Ok(()) } else { damage("more than the values of the row") }
            }
            Kind::Change => match record::read_change(body, &desc.columns) {
                Some((number, cell)) => desc.columns.get(number).map_or(Ok(()), |c| self.check(c, Some(cell))),
                None => damage("no value of a column"),
            },
            _ if body.0.is_empty() => Ok(()),
            _ => damage("more than the row's id"),
        }
    }
}

impl Checker {
    fn check(&self, column: &schema::Column, cell: Option<Cell<'_>>) -> Result<(), Objection> {
        match cell {
            Some(cell) if self.forms.is_value(column, cell) => Ok(()),
            _ => damage(&format!("no value of `{}`", column.name)),
        }
    }
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
            if *counter > MOST_IDS {
                return damage("an id counter is higher than any can be");
            }
            table.next = *counter;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        if !matches!(record.kind, Kind::Oldest | Kind::End) {
            self.apply(record)?;
        }
        self.records += 1;
        self.record_bytes += log::record_size(record.body.len());
        Ok(())
    }
}

impl Loader {
    fn apply(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        let mut body = Reader(record.body);
        let Some((number, id)) = record::read_row_id(&mut body) else { return damage("no row is named") };
        let (Some(table), Some(desc)) = (self.tables.get_mut(number), self.schema.tables.get(number)) else {
            return damage("there is no such table");
        };
        // No row has an id that was never handed out.
        let known = record.kind != Kind::Insert && table.rows.contains(id);
        match record.kind {
            Kind::Insert if id != table.next => return damage("the id of a new row is not the next one"),
            Kind::Insert => table.next += 1,
            _ if id >= table.next => return damage("the id was never handed out"),
            _ if !known && self.first == Some(1) => return damage("a record changes a row that is not there"),
            _ => {}
        }
        match record.kind {
            Kind::Insert | Kind::Keep => {
                let Some(cells) = record::read_values(body, &desc.columns) else { return damage("no row") };
                if known {
                    table.rows.remove(id);
                }
                if table.rows.is_full() {
                    return damage("more rows than a table may have");
                }
                table.rows.restore(id, &cells, record.seq);
                self.found(number, id);
            }
            Kind::Change => {
                let Some((column, cell)) = record::read_change(body, &desc.columns) else {
                    return damage("no value of a column");
                };
                if known {
                    table.rows.set(id, column, cell.to_value());
                } else {
                    let place = Place { segment: record.segment, offset: record.offset };
                    let _ = self.unfounded.entry((number, id)).or_insert(place);
                }
            }
            Kind::Delete => {
                table.rows.remove(id);
                self.found(number, id);
            }
            Kind::Oldest | Kind::End => {}
        }
        Ok(())
    }

    /// The row is known from here on, or known to be gone.
    fn found(&mut self, table: usize, id: u64) {
        if !self.unfounded.is_empty() {
            let _ = self.unfounded.remove(&(table, id));
        }
    }

    /// Makes the rows those of the next segment's schema. A program with that schema has had them.
    fn convert(&mut self, schema: &Schema) -> Result<(), Objection> {
        let before = std::mem::take(&mut self.schema);
        let migration = Migration::between(&before, schema);
        if !migration.is_complete() {
            return damage("the schema has lost a table");
        }
        if migration.is_barred(|table| self.rows(table)) || self.nil(&migration).is_some() {
            return damage("the rows before do not fit the schema");
        }
        self.migrate(schema, &migration).or_else(|_| damage("a row does not fit the schema before"))
    }

    /// How many rows a table has.
    pub fn rows(&self, table: usize) -> u64 {
        self.tables.get(table).map_or(0, |loaded| loaded.rows.len())
    }

    /// A column that may not be nil any longer and is in some row.
    pub fn nil(&self, migration: &Migration<'_>) -> Option<Check> {
        let is_nil = |(table, column): (usize, usize)| {
            self.tables.get(table).is_some_and(|t| t.rows.iter().any(|(_, row)| row.cell(column) == Cell::Nil))
        };
        migration.not_nil().into_iter().find(|(old, _)| is_nil(*old)).map(|(_, check)| check)
    }

    /// Gives the rows, which are those of the old schema, the form of the new one. The error is the number of a record
    /// whose row cannot be converted.
    pub fn migrate(&mut self, schema: &Schema, migration: &Migration<'_>) -> Result<(), Seq> {
        let mut tables: Vec<Loaded> = schema.tables.iter().map(Loaded::new).collect();
        for (number, from) in std::mem::take(&mut self.tables).into_iter().enumerate() {
            let Some(to) = migration.table(number).and_then(|target| tables.get_mut(target)) else { continue };
            to.next = from.next;
            for (id, row) in from.rows.iter() {
                let values = row.cells().map(Cell::to_value).collect();
                let values = migration.row(number, values).map_err(|schema::Malformed| row.base())?;
                let _ = to.rows.insert(id, values);
                to.rows.set_base(id, row.base());
            }
        }
        self.tables = tables;
        self.unfounded = std::mem::take(&mut self.unfounded)
            .into_iter()
            .filter_map(|((number, id), place)| Some(((migration.table(number)?, id), place)))
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
}
