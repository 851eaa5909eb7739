//! A store without a program, for tools: what its log holds, by the schema in it (tables specification 12). Nothing is
//! changed, and any bytes may be in the files.

mod json;

use crate::disk::{Disk, Fault, LOCK};
use crate::jobs;
use crate::log::{self, Damage, Found};
use crate::recovery::{self, Columns, Loaded, Loader};
use crate::schema::{self, ClassName};

/// What a store holds; if it is damaged, what precedes the damage.
pub struct Contents {
    loader: Loader,
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
        let (loader, end) = recovery::read(disk, jobs::cores())?;
        Ok(Contents { loader, end })
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
        self.loader.record_bytes
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
        recovery::findings(disk, &self.loader, Columns::All, jobs::cores())
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
