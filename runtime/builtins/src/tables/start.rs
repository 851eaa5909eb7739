//! The store at the start and at the end of a program: the variables that decide about it, and the refusals.

use super::STORE;
use abi::desc::Shapes;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::disk::Directory;
use store::log::Error;
use store::{Compaction, OpenError, Opened, Settings, Stats, Store};

/// What to print before the program starts, and why it does not.
#[derive(Debug, Default)]
pub struct Start {
    pub notices: Vec<String>,
    pub refusal: Option<String>,
}

/// `WO_CHECKPOINT_BYTES`: the least size of a log that compaction looks at.
const CHECKPOINT_BYTES: u64 = 4 << 20;
/// Segments that the log has by then, so that compaction can drop one after the other; and the most bytes of one.
const SEGMENTS: u64 = 4;
const SEGMENT_BYTES: u64 = 64 << 20;
/// `WO_CHECKPOINT_RATIO`: how many times the size of the rows a log has that compaction looks at.
const CHECKPOINT_RATIO: u64 = 3;

/// What `WO_WAL_STATS` tells beside the store's own counters: records that were read at the start, and milliseconds.
static REPLAY: OnceLock<(u64, u128)> = OnceLock::new();

/// Where the rows of durable tables go.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Memory,
    /// Nowhere, as there are no durable tables; but this directory may hold rows of some that were.
    Checked(PathBuf),
    /// The value of `WO_DATA`.
    Named(PathBuf),
    /// The project's own.
    Own(PathBuf),
}

/// Makes the store of a program that has tables. `variable` reads a variable, `memory` tells what the process may use, in
/// bytes; `own_directory` is where the store of a program goes that is run from its sources.
pub fn open(
    shapes: &Shapes,
    program: &str,
    memory: impl FnOnce() -> u64,
    variable: impl Fn(&str) -> Option<OsString>,
    own_directory: Option<PathBuf>,
) -> Start {
    let mut start = Start::default();
    let get = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    let data = variable("WO_DATA").filter(|value| !value.is_empty()).map(PathBuf::from);
    let place = match decide(shapes, data, get("WO_EPHEMERAL"), own_directory) {
        Ok(place) => place,
        Err(refusal) => {
            start.refusal = Some(format!("{program}: {refusal}"));
            return start;
        }
    };
    if place == Place::Memory && shapes.tables.iter().any(store::schema::is_stored) {
        let notice = "WO_EPHEMERAL=1: tables are kept in memory only and are gone at the end";
        start.notices.push(format!("{program}: {notice}"));
    }
    let mut number = |name: &str, least: u64, most: u64| {
        let text = get(name)?;
        let number = text.trim().parse::<u64>().ok().filter(|n| (least..=most).contains(n));
        if number.is_none() {
            start.notices.push(format!("{program}: {name}={text} is not a number from {least} to {most}; ignored"));
        }
        number
    };
    let bound = number("WO_DB_MB", 1, 1_048_576).map(|mb| mb << 20);
    let floor = number("WO_CHECKPOINT_BYTES", 1, i64::MAX as u64).unwrap_or(CHECKPOINT_BYTES);
    let ratio = number("WO_CHECKPOINT_RATIO", 0, i64::MAX as u64).unwrap_or(CHECKPOINT_RATIO);
    if shapes.tables.is_empty() {
        return start;
    }
    let bound = bound.unwrap_or_else(|| memory() / 8 * 3);
    values::encode::set_row_reader(super::row_object);
    let in_memory = || Store::new(shapes.tables.clone(), shapes.queries.clone(), bound);
    let mut on_disk = |path: &Path| {
        let (name, directory) = (program.to_owned(), path.to_owned());
        let on_failure = Box::new(move |error: &Error| {
            let place = placed(&directory, error);
            sched::stderr::line(&format!("{name}: compaction failed and will be tried again: {place}"));
        });
        let begun = Instant::now();
        let compaction = Compaction { floor, ratio, on_failure };
        let (store, records) = on_disk(shapes, program, bound, compaction, path, &mut start.notices)?;
        if get("WO_WAL_STATS").is_some_and(|v| v == "1") {
            let _ = REPLAY.set((records, begun.elapsed().as_millis()));
        }
        Ok(store)
    };
    let opened = match &place {
        Place::Memory => Ok(in_memory()),
        Place::Checked(path) => check(shapes, path).map(|()| in_memory()).map_err(named),
        Place::Named(path) => on_disk(path).map_err(named),
        Place::Own(path) => on_disk(path),
    };
    match opened {
        Ok(store) => {
            if let Place::Own(path) = place {
                let notice = format!("tables are kept in {}; WO_DATA=DIR names another place", path.display());
                start.notices.push(format!("{program}: {notice}"));
            }
            let made = STORE.set(store);
            debug_assert!(made.is_ok(), "a process runs one program");
        }
        Err(refusal) => start.refusal = Some(format!("{program}: {refusal}")),
    }
    start
}

/// Makes everything durable that the program has done. Called once it has ended.
pub fn close() {
    let Some(store) = STORE.get() else { return };
    store.close();
    if let (Some(stats), Some((records, ms))) = (store.stats(), REPLAY.get()) {
        sched::last_line(&stats_line(&stats, *records, *ms));
    }
}

fn stats_line(stats: &Stats, replay_records: u64, replay_ms: u128) -> String {
    let Stats { log, compactions, compact_bytes, compact_ms, compact_pause_us_max, live_bytes } = stats;
    let store::log::Stats { batches, records, peak_batch, bytes, syncs, sync_us, sync_us_p50, sync_us_p99 } = log;
    format!(
        "walstats batches={batches} records={records} peak_batch={peak_batch} bytes={bytes} syncs={syncs} \
         sync_us={sync_us} sync_us_p50={sync_us_p50} sync_us_p99={sync_us_p99} compactions={compactions} \
         compact_bytes={compact_bytes} compact_ms={compact_ms} \
         compact_pause_us_max={compact_pause_us_max} live_bytes={live_bytes} replay_records={replay_records} \
         replay_ms={replay_ms}"
    )
}

/// An error of the log, with the directory where it is in it.
fn placed(directory: &Path, error: &Error) -> String {
    match error {
        // Its file is named without the directory, which a fault's path begins with.
        Error::Damage(damage) => format!("{}/{damage}", directory.display()),
        error => error.to_string(),
    }
}

/// The store in a directory, and how many records were read.
fn on_disk(
    shapes: &Shapes,
    program: &str,
    memory: u64,
    compaction: Compaction,
    path: &Path,
    notices: &mut Vec<String>,
) -> Result<(Store, u64), String> {
    let disk = Arc::new(Directory::open(path).map_err(|e| e.to_string())?);
    let name = program.to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let settings = Settings {
        memory,
        segment_bytes: (compaction.floor / SEGMENTS).min(SEGMENT_BYTES),
        now: i64::try_from(now).unwrap_or(i64::MAX),
        on_durable: Box::new(sched::durable::announce),
        on_failure: Box::new(move |failure| {
            let n = failure.unacknowledged;
            sched::durable::fail(&format!(
                "{name}: the store cannot be written: {}; {n} records not acknowledged",
                failure.fault
            ));
        }),
        compaction,
    };
    match Store::open(Arc::clone(&disk) as Arc<dyn store::disk::Disk>, shapes, settings) {
        Ok(Opened { store, notices: changed, records }) => {
            notices.extend(changed.into_iter().map(|line| format!("{program}: {line}")));
            disk.write_owner().map_err(|fault| refused(path, &OpenError::Fault(fault)))?;
            Ok((store, records))
        }
        Err(error) => Err(refused(path, &error)),
    }
}

/// Refuses a directory that holds rows of tables that the program declares volatile. Nothing is written; where there is
/// nothing, there are no rows.
fn check(shapes: &Shapes, path: &Path) -> Result<(), String> {
    if !path.exists() {
        return Ok(());
    }
    let disk = Directory::open_read_only(path).map_err(|e| e.to_string())?;
    store::check_volatile(&disk, shapes).map_err(|error| refused(path, &error))
}

/// Why the store in this directory was not opened; the directory comes first.
fn refused(path: &Path, error: &OpenError) -> String {
    match error {
        OpenError::Damage(damage) => format!("{}/{damage}", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}

/// A refusal that begins with the value of `WO_DATA`.
fn named(refusal: String) -> String {
    format!("WO_DATA={refusal}")
}

/// What becomes of durable tables; the error is a refusal.
fn decide(
    shapes: &Shapes,
    data: Option<PathBuf>,
    ephemeral: Option<String>,
    own_directory: Option<PathBuf>,
) -> Result<Place, String> {
    let Some(table) = shapes.tables.iter().find(|table| store::schema::is_stored(table)) else {
        let checked = data.filter(|_| ephemeral.is_none() && shapes.tables.iter().any(|table| table.declared));
        return Ok(checked.map_or(Place::Memory, Place::Checked));
    };
    match (data, ephemeral.as_deref(), own_directory) {
        (Some(_), Some(value), _) => {
            Err(format!("WO_EPHEMERAL={value} is incompatible with WO_DATA; unset one of the two"))
        }
        (None, Some("1"), _) => Ok(Place::Memory),
        (None, Some(value), _) => Err(format!("WO_EPHEMERAL={value} means nothing; the only value is WO_EPHEMERAL=1")),
        (Some(data), None, _) => Ok(Place::Named(data)),
        (None, None, Some(own)) => Ok(Place::Own(own)),
        (None, None, None) => Err(format!(
            "`{}` is a durable table, which needs a place: start with WO_DATA=DIR, or with WO_EPHEMERAL=1 to keep it in \
             memory, or declare it `durable: false`",
            table.name
        )),
    }
}
