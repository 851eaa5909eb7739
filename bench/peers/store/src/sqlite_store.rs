//! SQLite: an integer key, a unique text, one index.

use crate::{Item, Result, Store};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;

pub struct Sqlite(Connection);

const INSERT: &str = "INSERT INTO items (code, shelf, count, note) VALUES (?1, ?2, ?3, ?4)";

pub fn connect(dir: &Path) -> Result<Connection> {
    let db = Connection::open(dir.join("sqlite.db"))?;
    let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    assert_eq!(mode, "wal");
    db.execute_batch("PRAGMA synchronous = FULL")?;
    Ok(db)
}

impl Store for Sqlite {
    fn open(dir: &Path) -> Result<Sqlite> {
        let db = connect(dir)?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS items
               (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, shelf INTEGER NOT NULL, count INTEGER NOT NULL, note TEXT NOT NULL);
             CREATE INDEX IF NOT EXISTS items_shelf ON items (shelf);",
        )?;
        Ok(Sqlite(db))
    }

    fn insert(&mut self, item: &Item) -> Result<()> {
        self.0.prepare_cached(INSERT)?.execute(params![item.code, item.shelf, item.count, item.note])?;
        Ok(())
    }

    fn insert_all(&mut self, items: &mut dyn Iterator<Item = Item>) -> Result<()> {
        let all = self.0.transaction()?;
        for item in items {
            all.prepare_cached(INSERT)?.execute(params![item.code, item.shelf, item.count, item.note])?;
        }
        Ok(all.commit()?)
    }

    fn find(&mut self, code: &str) -> Result<Option<i64>> {
        let mut query = self.0.prepare_cached("SELECT count FROM items WHERE code = ?1")?;
        Ok(query.query_row([code], |row| row.get(0)).optional()?)
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.0.query_row("SELECT count(*) FROM items", [], |row| row.get::<_, i64>(0))? as u64)
    }
}
