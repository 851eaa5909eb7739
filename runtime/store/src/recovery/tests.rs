//! One thread or several: the same rows, the same damage.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "../../tests/schema/program.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod program;

use super::*;
use crate::disk::simulated::{Action, EIO, Simulated};
use abi::desc::{TYPE_INT, TYPE_TEXT};
use program::Program;
use std::collections::BTreeMap;

type Image = BTreeMap<String, Vec<u8>>;

fn program() -> Program {
    let mut program = Program::new();
    let item = program.table("Item", &[("name", TYPE_TEXT, None), ("n", TYPE_INT, None)]);
    program.unique(0);
    let _ = program.table("Part", &[("of", item, None)]);
    program
}

fn settings() -> Settings {
    Settings {
        memory: 1 << 30,
        segment_bytes: 600,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|failure| panic!("{failure:?}")),
        compaction: Compaction { floor: 0, ratio: 0, on_failure: Box::new(|_| ()) },
    }
}

/// Several segments, and a text that does not fit into a batch.
fn image() -> Image {
    let disk = Simulated::new(1);
    let store = Store::open(Arc::new(disk.clone()), &program().0, settings()).map_err(|e| e.to_string()).unwrap().store;
    let text = |text: &str| Value::Bytes(text.as_bytes().into());
    for n in 0..12 {
        let name = if n == 7 { "x".repeat(300_000) } else { n.to_string() };
        let (id, _) = store.insert(0, vec![text(&name), Value::Word(n)]).unwrap();
        let (part, _) = store.insert(1, vec![Value::Word(id)]).unwrap();
        let _ = store.set(0, id, 1, Value::Word(n + 100)).unwrap();
        let seq = if n % 2 == 0 { store.delete(1, part).unwrap() } else { 1 };
        assert!(store.wait(seq));
    }
    store.close();
    drop(store);
    disk.restart().files()
}

/// Everything that a reading gives, as text.
fn outcome(disk: &Simulated, threads: usize) -> String {
    let (loader, end) = match read(disk, threads) {
        Ok(read) => read,
        Err(fault) => return fault.to_string(),
    };
    let mut out = format!("{} {}\n", loader.records, loader.record_bytes);
    for table in &loader.tables {
        out += &format!("next {}\n", table.next);
        for (id, row) in table.rows.iter() {
            let cells = row.cells().map(|cell| match cell {
                Cell::Bytes(bytes) => format!("{} bytes", bytes.len()),
                cell => format!("{cell:?}"),
            });
            out += &format!("{id} at {}: {:?}\n", row.base(), cells.collect::<Vec<_>>());
        }
    }
    let end =
        end.map(|found| (found.last, found.torn, found.ended, found.segments)).map_err(|damage| damage.to_string());
    let findings = findings(disk, &loader, Columns::All, threads);
    format!("{out}{end:?} {:?}", findings.map_err(|fault| fault.to_string()))
}

#[test]
fn rec_8_threads_change_nothing() {
    let image = image();
    assert!(image.len() > 4);
    let mut outcomes = BTreeSet::new();
    for (name, bytes) in &image {
        let small = bytes.len() < 10_000;
        for at in (0..bytes.len()).step_by(if small { 5 } else { 9_973 }) {
            let mut changed = image.clone();
            changed.get_mut(name).unwrap()[at] ^= 4;
            let disk = Simulated::with_files(1, &changed);
            let alone = outcome(&disk, 1);
            assert_eq!(outcome(&disk, 2), alone, "byte {at} of {name}");
            let _ = outcomes.insert(alone);
        }
    }
    assert!(outcomes.len() > 50, "{} outcomes", outcomes.len());
}

#[test]
fn rec_8_the_operations_on_the_disk_are_the_same() {
    let image = image();
    let steps = |threads| {
        let disk = Simulated::with_files(1, &image);
        let _ = outcome(&disk, threads);
        disk.steps()
    };
    assert_eq!(steps(1), steps(2));
    for at in 1..=steps(1) {
        let failed = |threads| {
            let disk = Simulated::with_files(1, &image);
            disk.script(move |step| if step.number == at { Action::Fail(EIO) } else { Action::Proceed });
            outcome(&disk, threads)
        };
        assert_eq!(failed(1), failed(2), "operation {at}");
    }
}

#[test]
fn results_come_in_the_order_of_the_jobs() {
    for threads in 1..5 {
        assert_eq!(jobs::run(threads, 100, |n| n * n), (0..100).map(|n| n * n).collect::<Vec<_>>());
    }
    assert!(jobs::run(4, 0, |n| n).is_empty());
}
