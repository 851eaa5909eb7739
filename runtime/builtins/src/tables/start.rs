//! The store at the start and at the end of a program: the variables that decide about it, and the refusals.

use super::STORE;
use abi::desc::Shapes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::disk::Directory;
use store::{OpenError, Opened, Settings, Store};

/// What to print before the program starts, and why it does not.
#[derive(Debug, Default)]
pub struct Start {
    pub notices: Vec<String>,
    pub refusal: Option<String>,
}

/// `WO_CHECKPOINT_BYTES`: the least size of a log that compaction looks at.
const CHECKPOINT_BYTES: u64 = 4 << 20;
/// Segments that the log has by then, so that compaction can drop one after the other.
const SEGMENTS: u64 = 4;

/// Where the rows of durable tables go.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Memory,
    Directory(PathBuf),
}

/// Makes the store of a program that has tables. `get` reads a variable, `memory` tells what the process may use, in
/// bytes; `own_directory` is where the store of a program goes that is run from its sources.
pub fn open(
    shapes: &Shapes,
    program: &str,
    memory: impl FnOnce() -> u64,
    get: impl Fn(&str) -> Option<String>,
    own_directory: Option<PathBuf>,
) -> Start {
    let mut start = Start::default();
    let place = match decide(shapes, program, &get, own_directory, &mut start.notices) {
        Ok(place) => place,
        Err(refusal) => {
            start.refusal = Some(format!("{program}: {refusal}"));
            return start;
        }
    };
    let mut number = |name: &str, default: Option<u64>, least: u64, most: u64| match get(name)?.trim().parse::<u64>() {
        Ok(n) if (least..=most).contains(&n) => Some(n),
        _ => {
            let text = get(name).unwrap_or_default();
            start.notices.push(format!("{program}: {name}={text} is not a number from {least} to {most}; ignored"));
            default
        }
    };
    let bound = number("WO_DB_MB", None, 1, 1_048_576).map(|mb| mb << 20);
    let checkpoint = number("WO_CHECKPOINT_BYTES", None, 1, i64::MAX as u64).unwrap_or(CHECKPOINT_BYTES);
    if shapes.tables.is_empty() {
        return start;
    }
    let bound = bound.unwrap_or_else(|| memory() / 8 * 3);
    values::encode::set_row_reader(super::row_object);
    let opened = match place {
        Place::Memory => Ok(Store::new(shapes.tables.clone(), shapes.queries.clone(), bound)),
        Place::Directory(path) => on_disk(shapes, program, bound, checkpoint, &path, &mut start.notices),
    };
    match opened {
        Ok(store) => {
            let made = STORE.set(store);
            debug_assert!(made.is_ok(), "a process runs one program");
        }
        Err(refusal) => start.refusal = Some(format!("{program}: {refusal}")),
    }
    start
}

/// Makes everything durable that the program has done. Called once it has ended.
pub fn close() {
    if let Some(store) = STORE.get() {
        store.close();
    }
}

fn on_disk(
    shapes: &Shapes,
    program: &str,
    memory: u64,
    checkpoint: u64,
    path: &std::path::Path,
    notices: &mut Vec<String>,
) -> Result<Store, String> {
    let disk = Directory::open(path).map_err(|e| format!("WO_DATA={e}"))?;
    let disk = Arc::new(disk);
    let name = program.to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let settings = Settings {
        memory,
        segment_bytes: checkpoint / SEGMENTS,
        now: i64::try_from(now).unwrap_or(i64::MAX),
        on_durable: Box::new(sched::durable::announce),
        on_failure: Box::new(move |failure| {
            let n = failure.unacknowledged;
            sched::durable::fail(&format!(
                "{name}: the store cannot be written: {}; {n} records not acknowledged",
                failure.fault
            ));
        }),
    };
    match Store::open(Arc::clone(&disk) as Arc<dyn store::disk::Disk>, shapes, settings) {
        Ok(Opened { store, notices: changed, .. }) => {
            notices.extend(changed.into_iter().map(|line| format!("{program}: {line}")));
            disk.write_owner().map_err(|fault| fault.to_string())?;
            Ok(store)
        }
        Err(OpenError::Damage(damage)) => Err(format!("{}/{damage}", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// What becomes of durable tables; the error is a refusal.
fn decide(
    shapes: &Shapes,
    program: &str,
    get: impl Fn(&str) -> Option<String>,
    own_directory: Option<PathBuf>,
    notices: &mut Vec<String>,
) -> Result<Place, String> {
    let Some(table) = shapes.tables.iter().find(|table| store::schema::is_stored(table)) else {
        return Ok(Place::Memory);
    };
    match (get("WO_DATA").filter(|v| !v.is_empty()), get("WO_EPHEMERAL"), own_directory) {
        (Some(_), Some(value), _) => {
            Err(format!("WO_EPHEMERAL={value} is incompatible with WO_DATA; unset one of the two"))
        }
        (None, Some(value), _) if value != "1" => {
            Err(format!("WO_EPHEMERAL={value} means nothing; the only value is WO_EPHEMERAL=1"))
        }
        (None, Some(_), _) => {
            let notice = "WO_EPHEMERAL=1: tables are kept in memory only and are gone at the end";
            notices.push(format!("{program}: {notice}"));
            Ok(Place::Memory)
        }
        (Some(data), None, _) => Ok(Place::Directory(data.into())),
        (None, None, Some(own)) => {
            notices.push(format!("{program}: tables are kept in {}; WO_DATA=DIR names another place", own.display()));
            Ok(Place::Directory(own))
        }
        (None, None, None) => Err(format!(
            "`{}` is a durable table, which needs a place: start with WO_DATA=DIR, or with WO_EPHEMERAL=1 to keep it in \
             memory, or declare it `durable: false`",
            table.name
        )),
    }
}
