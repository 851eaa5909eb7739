//! `woc db`: looks into the store of a program without the program (tables specification 12). Nothing is written, and a
//! store that a program has open is refused.

use std::fmt::Write as _;
use std::path::Path;

use store::disk::{Directory, Disk, Fault};
use store::inspect::{Contents, Table, files};

use crate::options::{Db, USAGE};
use crate::{output, pipeline};

const OK: i32 = 0;
/// Something is wrong in the store.
const FINDINGS: i32 = 1;
/// The store cannot be opened or read.
const UNREADABLE: i32 = USAGE;

/// Bytes of a dump that are written at once.
const PIECE: usize = 64 << 10;

/// Carries a command out; the result is the exit status.
pub fn run(command: &Db) -> i32 {
    let (Db::Stat { dir, .. } | Db::Check { dir } | Db::Dump { dir, .. }) = command;
    let disk = match Directory::open_read_only(dir) {
        Ok(disk) => disk,
        Err(error) => return refuse(&error.to_string()),
    };
    let done = foreign(&disk, dir).and_then(|text| match text {
        Some(text) => Ok(refuse(&text)),
        None => Contents::read(&disk).and_then(|contents| match command {
            Db::Stat { json, .. } => stat(&contents, &disk, dir, *json),
            Db::Check { .. } => check(&contents, &disk, dir),
            Db::Dump { table, .. } => Ok(dump(&contents, dir, table.as_deref())),
        }),
    });
    done.unwrap_or_else(|fault| refuse(&fault.to_string()))
}

fn refuse(text: &str) -> i32 {
    output::stderr(&format!("woc: {text}\n"));
    UNREADABLE
}

/// Why a directory is something else than a store, such as a project: it has files, but none of a store's. An empty one
/// is a store that nothing was written to.
fn foreign(disk: &dyn Disk, dir: &Path) -> Result<Option<String>, Fault> {
    if disk.list()?.is_empty() || !files(disk)?.is_empty() {
        return Ok(None);
    }
    let within = dir.join(pipeline::DATA);
    let hint = if within.is_dir() { format!("; `{}` is one", within.display()) } else { String::new() };
    Ok(Some(format!("{}: not a store: none of its files is one's{hint}", dir.display())))
}

fn stat(contents: &Contents, disk: &dyn Disk, dir: &Path, json: bool) -> Result<i32, Fault> {
    if let Some(damage) = contents.damage() {
        return Ok(refuse(&format!("{}/{damage}", dir.display())));
    }
    let (files, tables) = (files(disk)?, contents.tables());
    output::stdout(&if json { stat_json(contents, &files, &tables) } else { stat_text(contents, &files, &tables) });
    Ok(OK)
}

/// The part of the records that is not needed any longer, from 0 to 1.
fn unneeded(contents: &Contents, tables: &[Table<'_>]) -> f64 {
    let live: u64 = tables.iter().map(Table::live_bytes).sum();
    match contents.record_bytes() {
        0 => 0.0,
        all => 1.0 - live.min(all) as f64 / all as f64,
    }
}

fn stat_text(contents: &Contents, files: &[(String, u64)], tables: &[Table<'_>]) -> String {
    let mut out = String::new();
    let file_rows = files.iter().map(|(name, bytes)| vec![name.clone(), bytes.to_string()]);
    columns(&mut out, &["file", "bytes"], 1, file_rows.collect());
    out.push('\n');
    let table_rows = tables.iter().map(|table| {
        let label = if table.is_retired() { "(no class of the program)" } else { table.label() };
        let numbers = [table.rows(), table.next_id(), table.live_bytes()].map(|n| n.to_string());
        [table.class().to_string(), label.to_owned()].into_iter().chain(numbers).collect()
    });
    columns(&mut out, &["class", "label", "rows", "next id", "live bytes"], 2, table_rows.collect());
    let _ = write!(
        out,
        "\nrecords {} in {} bytes, {:.0} % no longer needed\nlast sequence number {}\ntorn tail {} bytes\n",
        contents.records(),
        contents.record_bytes(),
        unneeded(contents, tables) * 100.0,
        contents.last_seq(),
        contents.torn_bytes()
    );
    out
}

/// Appends rows below their headings: the first `texts` columns are aligned to the left, the others to the right.
fn columns(out: &mut String, headings: &[&str], texts: usize, mut rows: Vec<Vec<String>>) {
    rows.insert(0, headings.iter().map(|heading| (*heading).to_owned()).collect());
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column < texts { write!(line, "{cell:<width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn stat_json(contents: &Contents, files: &[(String, u64)], tables: &[Table<'_>]) -> String {
    let quote = |text: &str| {
        let mut out = Vec::new();
        codec::json::quote(&mut out, text.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    };
    let files = files.iter().map(|(name, bytes)| format!("{{\"name\":{},\"bytes\":{bytes}}}", quote(name)));
    let classes = tables.iter().map(|table| {
        format!(
            "{{\"class\":{},\"label\":{},\"retired\":{},\"rows\":{},\"next_id\":{},\"live_bytes\":{}}}",
            quote(&table.class().to_string()),
            quote(table.label()),
            table.is_retired(),
            table.rows(),
            table.next_id(),
            table.live_bytes()
        )
    });
    format!(
        "{{\"files\":[{}],\"tables\":[{}],\"records\":{},\"record_bytes\":{},\"unneeded\":{:.4},\"last_seq\":{},\
         \"torn_bytes\":{}}}\n",
        files.collect::<Vec<_>>().join(","),
        classes.collect::<Vec<_>>().join(","),
        contents.records(),
        contents.record_bytes(),
        unneeded(contents, tables),
        contents.last_seq(),
        contents.torn_bytes()
    )
}

fn check(contents: &Contents, disk: &dyn Disk, dir: &Path) -> Result<i32, Fault> {
    let findings = contents.findings(disk)?;
    let mut out = String::new();
    for finding in &findings {
        let _ = writeln!(out, "{}/{finding}", dir.display());
    }
    if contents.torn_bytes() > 0 {
        let torn = contents.torn_bytes();
        let _ = writeln!(out, "note: a torn tail of {torn} bytes, which the next start of the program cuts off");
    }
    if findings.is_empty() {
        let rows: u64 = contents.tables().iter().map(Table::rows).sum();
        let _ = writeln!(out, "{}: {} records, {rows} rows, nothing wrong", dir.display(), contents.records());
    }
    output::stdout(&out);
    Ok(if findings.is_empty() { OK } else { FINDINGS })
}

fn dump(contents: &Contents, dir: &Path, class: Option<&str>) -> i32 {
    let tables: Vec<(String, Table<'_>)> =
        contents.tables().into_iter().map(|table| (table.class().to_string(), table)).collect();
    let wanted = |name: &str| class.is_none_or(|class| class == name);
    if let (None, Some(class)) = (contents.damage(), class)
        && !tables.iter().any(|(name, _)| wanted(name))
    {
        return refuse(&format!("{}: the store knows no class `{class}`", dir.display()));
    }
    let mut out = Vec::with_capacity(PIECE);
    for (name, table) in tables.iter().filter(|(name, _)| wanted(name)) {
        let mut head = b"{\"table\":".to_vec();
        codec::json::quote(&mut head, name.as_bytes());
        table.each_row(|id, row| {
            out.extend_from_slice(&head);
            out.extend_from_slice(format!(",\"id\":{id},\"row\":").as_bytes());
            out.extend_from_slice(row);
            out.extend_from_slice(b"}\n");
            if out.len() >= PIECE {
                output::stdout_bytes(&out);
                out.clear();
            }
        });
    }
    output::stdout_bytes(&out);
    match contents.damage() {
        None => OK,
        Some(damage) => {
            output::stderr(&format!("woc: {}/{damage}\n", dir.display()));
            FINDINGS
        }
    }
}
