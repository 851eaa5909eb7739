//! A store without a program, for tools: what its log holds, by the schema in it (tables specification 12). Nothing is
//! changed, and any bytes may be in the files.

mod json;

use crate::bytes::Reader;
use crate::disk::{Disk, Fault, LOCK};
use crate::key;
use crate::log::{self, Damage, Error, Found, Kind, Objection, Preamble, Record, Visitor, scan};
use crate::record;
use crate::recovery::{Loaded, Loader, Place, damage, places};
use crate::schema::{self, ClassName};
use crate::store::Seq;
use crate::value::Cell;
use std::collections::HashMap;

/// What a store holds; if it is damaged, what precedes the damage.
pub struct Contents {
    loader: Loader,
    /// Encoded size of all records.
    record_bytes: u64,
    /// The end of the log, or what stands before it.
    end: Result<Found, Damage>,
}

/// A table in a store.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    contents: &'a Contents,
    desc: &'a schema::Table,
    loaded: &'a Loaded,
}

/// The files of a store and their sizes, by name.
pub fn files(disk: &dyn Disk) -> Result<Vec<(String, u64)>, Fault> {
    let mut names = disk.list()?;
    names.retain(|name| name == LOCK || log::is_file(name));
    names.sort_unstable();
    names.into_iter().map(|name| disk.open(&name)?.size().map(|size| (name, size))).collect()
}

impl Contents {
    /// Reads a store.
    pub fn read(disk: &dyn Disk) -> Result<Contents, Fault> {
        let mut verifier = Verifier { loader: Loader::default(), record_bytes: 0, json: Vec::new() };
        let end = match scan(disk, &mut verifier) {
            Ok(found) => Ok(found),
            Err(Error::Damage(damage)) => Err(damage),
            Err(Error::Fault(fault)) => return Err(fault),
            Err(Error::Stopped) => unreachable!("nothing stops the scan"),
        };
        let Verifier { loader, record_bytes, .. } = verifier;
        let end = end.and_then(|found| loader.check_founded().map(|()| found));
        Ok(Contents { loader, record_bytes, end })
    }

    /// What keeps the log from being read to its end.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.end.as_ref().err()
    }

    /// The highest sequence number.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.end.as_ref().map_or(0, |found| found.last)
    }

    /// Bytes of the torn tail, which the next start of a program cuts off.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.end.as_ref().map_or(0, |found| found.torn)
    }

    #[must_use]
    pub fn records(&self) -> u64 {
        self.loader.records
    }

    /// Bytes of all records.
    #[must_use]
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// All tables by the names of their classes.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let loaded = self.loader.schema.tables.iter().zip(&self.loader.tables);
        let mut tables: Vec<Table<'_>> = loaded.map(|(desc, loaded)| Table { contents: self, desc, loaded }).collect();
        tables.sort_by_cached_key(|table| table.desc.name.to_string());
        tables
    }

    /// Everything that is wrong with a store: damage, or else each row that cannot be beside the others.
    pub fn findings(&self, disk: &dyn Disk) -> Result<Vec<Damage>, Fault> {
        if let Err(damage) = &self.end {
            return Ok(vec![damage.clone()]);
        }
        let mut wrong = Vec::new();
        for (number, table) in self.loader.tables.iter().enumerate() {
            self.twice(number, table, &mut wrong);
            self.dangling(number, table, &mut wrong);
        }
        let found = places(disk, wrong.iter().map(|(seq, _)| *seq).collect())?;
        let at = |seq: Seq| found.get(&seq).copied().unwrap_or(Place { segment: 1, offset: 0 });
        let mut findings: Vec<(Place, String)> = wrong.into_iter().map(|(seq, reason)| (at(seq), reason)).collect();
        findings.sort_by_key(|(place, _)| (place.segment, place.offset));
        Ok(findings.into_iter().map(|(place, reason)| Damage::new(place.segment, place.offset, reason)).collect())
    }

    /// Rows with a value in a unique column that an earlier row has, by the numbers of their records.
    fn twice(&self, number: usize, table: &Loaded, wrong: &mut Vec<(Seq, String)>) {
        let Some(desc) = self.loader.schema.tables.get(number) else { return };
        for column in desc.indexes.iter().filter(|index| index.unique).filter_map(|index| index.columns.first()) {
            let column = *column as usize;
            let Some(declared) = desc.columns.get(column) else { continue };
            let mut first: HashMap<Vec<u8>, u64> = HashMap::new();
            for (id, row) in table.rows.iter().filter(|(_, row)| row.cell(column) != Cell::Nil) {
                let mut bytes = Vec::new();
                key::put(&mut bytes, declared.kind, row.cell(column));
                let other = *first.entry(bytes).or_insert(id);
                if other != id {
                    let reason = format!("{} {id} has the same `{}` as row {other}", desc.name, declared.name);
                    wrong.push((row.base(), reason));
                }
            }
        }
    }

    /// Rows with a `ref` to a row that is not there.
    fn dangling(&self, number: usize, table: &Loaded, wrong: &mut Vec<(Seq, String)>) {
        let schema = &self.loader.schema;
        let Some(desc) = schema.tables.get(number) else { return };
        for (column, declared) in desc.columns.iter().enumerate().filter(|(_, column)| schema.is_ref(column)) {
            let target = schema.target(declared).and_then(|target| self.loader.tables.get(target));
            for (id, row) in table.rows.iter() {
                if let Cell::Word(to) = row.cell(column)
                    && !target.is_some_and(|target| target.rows.contains(to))
                {
                    let reason =
                        format!("{} {id} refers to a row that is not there, in `{}`", desc.name, declared.name);
                    wrong.push((row.base(), reason));
                }
            }
        }
    }
}

impl<'a> Table<'a> {
    #[must_use]
    pub fn class(&self) -> &'a ClassName {
        &self.desc.name
    }

    #[must_use]
    pub fn label(&self) -> &'a str {
        &self.desc.label
    }

    /// The program that wrote the store last lacks the class; only the number of the next id is kept.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.desc.retired
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        self.loaded.rows.len()
    }

    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.loaded.next
    }

    /// Bytes that records of the rows as they are would take.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.loaded.rows.encoded()
    }

    /// Gives each row's id, ascending, and its columns as an object of JSON.
    pub fn each_row(&self, mut take: impl FnMut(u64, &[u8])) {
        let schema = &self.contents.loader.schema;
        let mut text = Vec::new();
        for (id, row) in self.loaded.rows.iter() {
            text.clear();
            for (number, column) in self.desc.columns.iter().enumerate() {
                text.push(if number == 0 { b'{' } else { b',' });
                codec::json::quote(&mut text, column.name.as_bytes());
                text.push(b':');
                let written = json::column(schema, column, row.cell(number), &mut text);
                debug_assert!(written.is_some(), "the scan has read it");
            }
            text.extend_from_slice(if self.desc.columns.is_empty() { b"{}" } else { b"}" });
            take(id, &text);
        }
    }
}

/// Loads rows and sees to it that every value can be decoded.
struct Verifier {
    loader: Loader,
    record_bytes: u64,
    /// Values as text, which nobody reads.
    json: Vec<u8>,
}

impl Visitor for Verifier {
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection> {
        self.loader.segment(number, preamble)
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        self.verify(record)?;
        self.loader.record(record)?;
        self.record_bytes += log::record_size(record.body.len());
        Ok(())
    }
}

impl Verifier {
    /// Whether the values in the record are some; all else about it is left to the loader.
    fn verify(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        let schema = &self.loader.schema;
        let mut body = Reader(record.body);
        let Some((number, _)) = record::read_row_id(&mut body) else { return Ok(()) };
        let columns = schema.tables.get(number).map_or(&[][..], |table| &table.columns);
        let values: Vec<_> = match record.kind {
            Kind::Insert | Kind::Keep => (0..).zip(record::read_values(body, columns).unwrap_or_default()).collect(),
            Kind::Change => record::read_change(body, columns).into_iter().collect(),
            Kind::Delete | Kind::Oldest | Kind::End => Vec::new(),
        };
        for (column, value) in values {
            self.json.clear();
            let Some(column) = columns.get(column) else { continue };
            if json::column(schema, column, value.cell(), &mut self.json).is_none() {
                return damage(&format!("no value of `{}`", column.name));
            }
        }
        Ok(())
    }
}
