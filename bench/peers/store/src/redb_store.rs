//! redb: rows by number, their numbers by unique text, and an index.

use crate::{Item, Result, Store};
use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition, WriteTransaction};
use std::path::Path;

const ROWS: TableDefinition<u64, (&str, i64, i64, &str)> = TableDefinition::new("rows");
const CODES: TableDefinition<&str, u64> = TableDefinition::new("codes");
const SHELVES: TableDefinition<(i64, u64), ()> = TableDefinition::new("shelves");

pub struct Redb {
    db: Database,
    next: u64,
}

fn add(all: &WriteTransaction, id: u64, item: &Item) -> Result<()> {
    let code = item.code.as_str();
    if all.open_table(CODES)?.insert(code, id)?.is_some() {
        return Err("taken".into());
    }
    all.open_table(ROWS)?.insert(id, (code, item.shelf, item.count, item.note))?;
    all.open_table(SHELVES)?.insert((item.shelf, id), ())?;
    Ok(())
}

impl Store for Redb {
    fn open(dir: &Path) -> Result<Redb> {
        let db = Database::create(dir.join("redb.db"))?;
        let make = db.begin_write()?;
        let next = make.open_table(ROWS)?.len()? + 1;
        let _ = (make.open_table(CODES)?, make.open_table(SHELVES)?);
        make.commit()?;
        Ok(Redb { db, next })
    }

    fn insert(&mut self, item: &Item) -> Result<()> {
        self.insert_all(&mut std::iter::once(Item { code: item.code.clone(), ..*item }))
    }

    fn insert_all(&mut self, items: &mut dyn Iterator<Item = Item>) -> Result<()> {
        let all = self.db.begin_write()?;
        for item in items {
            add(&all, self.next, &item)?;
            self.next += 1;
        }
        Ok(all.commit()?)
    }

    fn find(&mut self, code: &str) -> Result<Option<i64>> {
        let now = self.db.begin_read()?;
        let Some(id) = now.open_table(CODES)?.get(code)? else { return Ok(None) };
        Ok(now.open_table(ROWS)?.get(id.value())?.map(|row| row.value().2))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.db.begin_read()?.open_table(ROWS)?.len()?)
    }
}
