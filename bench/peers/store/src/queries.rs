//! The queries of docs/examples/db-bench/queries.wo by SQLite, each over a table with the same indexes and one without. What
//! is selected is not in the index, so that the rows are read.

use crate::{Dice, Result, cpu, sqlite_store};
use rusqlite::{Connection, params};
use std::path::Path;

/// With the conditions of queries.wo; `?1` to `?3` are a shelf, or a weight and the one 100 further, or a zone and an aisle.
const QUERIES: [(&str, &str); 9] = [
    ("equal", "SELECT weight FROM TABLE WHERE shelf = ?1"),
    ("one", "SELECT weight FROM TABLE WHERE shelf = ?1 LIMIT 1"),
    ("range", "SELECT shelf FROM TABLE WHERE weight >= ?1 AND weight < ?2"),
    ("prefix", "SELECT shelf FROM TABLE WHERE zone = ?1 AND aisle = ?2"),
    ("first", "SELECT shelf FROM TABLE ORDER BY weight LIMIT 10"),
    ("last", "SELECT shelf FROM TABLE ORDER BY weight DESC LIMIT 10"),
    ("sorted", "SELECT shelf FROM TABLE WHERE weight < ?1 ORDER BY weight"),
    ("sort", "SELECT shelf FROM TABLE WHERE weight < ?1 ORDER BY aisle, zone"),
    ("count", "SELECT count(*) FROM TABLE WHERE weight < ?1"),
];

/// What stands for `?1` and so on.
fn parameters(name: &str, key: i64, rows: i64) -> Vec<i64> {
    match name {
        "equal" | "one" => vec![key % (rows / 10)],
        "range" => vec![key, key + 100],
        "prefix" => vec![key % 100, key / 100 % (rows / 1000)],
        "first" | "last" => vec![],
        _ => vec![rows / 10],
    }
}

pub fn run(dir: &Path, rows: i64) -> Result<()> {
    let mut db = sqlite_store::connect(dir)?;
    // All of it in memory, as ours is.
    db.execute_batch("PRAGMA cache_size = -1000000")?;
    let columns = "(id INTEGER PRIMARY KEY, shelf INTEGER, zone INTEGER, aisle INTEGER, weight INTEGER, note TEXT)";
    db.execute_batch(&format!(
        "CREATE TABLE parts {columns};
         CREATE INDEX by_shelf ON parts (shelf);
         CREATE INDEX by_place ON parts (zone, aisle, weight);
         CREATE INDEX by_weight ON parts (weight);
         CREATE TABLE loose_parts {columns};"
    ))?;
    let all = db.transaction()?;
    for table in ["parts", "loose_parts"] {
        let insert =
            format!("INSERT INTO {table} (shelf, zone, aisle, weight, note) VALUES (?1, ?2, ?3, ?4, 'spare part')");
        let mut insert = all.prepare(&insert)?;
        for n in 0..rows {
            insert.execute(params![n % (rows / 10), n % 100, n / 100 % (rows / 1000), n * 7919 % rows])?;
        }
    }
    all.commit()?;
    let mut took = Vec::new();
    for (name, query) in QUERIES {
        for (table, suffix) in [("parts", ""), ("loose_parts", "_loose")] {
            let us = asking(&db, name, &query.replace("TABLE", table), rows)?;
            took.push(format!(r#""{name}{suffix}_us":{us:.2}"#));
        }
    }
    println!("{{{}}}", took.join(","));
    Ok(())
}

/// Microseconds of the processor for one such query, by so many that the kernel's clock can tell.
fn asking(db: &Connection, name: &str, query: &str, rows: i64) -> Result<f64> {
    let mut query = db.prepare(query)?;
    let mut dice = Dice::new();
    let before = cpu()?;
    let (mut asked, mut wanted) = (0, 1);
    while cpu()? - before < 20.0 {
        while asked < wanted {
            let values = parameters(name, dice.roll(rows), rows);
            let found = query.query_map(rusqlite::params_from_iter(values), |row| row.get(0))?;
            let found = found.collect::<rusqlite::Result<Vec<i64>>>()?;
            assert!(!found.is_empty(), "{name} has found nothing");
            asked += 1;
        }
        wanted *= 2;
    }
    Ok((cpu()? - before) * 10_000.0 / f64::from(asked))
}
