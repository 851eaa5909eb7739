//! A crash while a program with another schema opens the store leaves the old schema with the old rows, or the new one with
//! the converted rows.

use super::program::Program;
use super::{add, item, open, program, text, try_open};
use abi::desc::{TYPE_INT, TYPE_TEXT};
use std::collections::BTreeMap;
use store::Value;
use store::disk::simulated::{Action, EIO, Simulated, Step};

type Files = BTreeMap<String, Vec<u8>>;

const ROWS: u64 = 100;
const ITEM: u32 = 1;

/// `Other { n: Int }`, `Item { count: Int, n: Int, name: Text }`.
fn changed() -> Program {
    let mut changed = Program::new();
    let _ = changed.table("Other", &[("n", TYPE_INT, None)]);
    let _ = changed.table("Item", &[("count", TYPE_INT, None), ("n", TYPE_INT, None), ("name", TYPE_TEXT, None)]);
    changed
}

/// A store of several segments. Every third row is gone.
fn prepared() -> Files {
    let disk = Simulated::new(1);
    let store = open(&disk);
    for n in 1..=ROWS {
        assert_eq!(add(&store, &format!("{n:060}"), n), Ok(n));
        if n.is_multiple_of(3) {
            let _ = store.delete(super::ITEM, n).unwrap();
        }
    }
    store.close();
    drop(store);
    let files = disk.restart().files();
    assert!(files.len() > 2, "{}", files.len());
    files
}

fn is_there(n: u64) -> bool {
    !n.is_multiple_of(3) && n <= ROWS
}

/// Whether the old program finds its own schema, and the old rows.
fn is_old(files: &Files) -> bool {
    let opened = try_open(&Simulated::with_files(7, files), &program()).0.map_err(|e| e.to_string()).unwrap();
    if !opened.notices.is_empty() {
        return false;
    }
    for n in 1..=ROWS + 1 {
        assert_eq!(item(&opened.store, n), is_there(n).then(|| (format!("{n:060}"), n)));
    }
    assert_eq!(add(&opened.store, "next", 0), Ok(ROWS + 1));
    true
}

/// Whether the new program finds its own schema. It opens the store and finds the converted rows in any case.
fn is_new(files: &Files) -> bool {
    let disk = Simulated::with_files(8, files);
    let opened = try_open(&disk, &changed()).0.map_err(|e| e.to_string()).unwrap();
    let store = opened.store;
    let row = |id| store.read_row(ITEM, id, |cells| cells.iter().map(|c| c.to_value()).collect::<Vec<_>>()).ok();
    for n in 1..=ROWS + 1 {
        let wanted = is_there(n).then(|| vec![Value::Word(0), Value::Word(n), text(&format!("{n:060}"))]);
        assert_eq!(row(n), wanted);
    }
    let added = vec![Value::Word(1), Value::Word(2), text("three")];
    assert_eq!(store.insert(ITEM, added).unwrap().0, ROWS + 1);
    assert_eq!(store.insert(0, vec![Value::Word(1)]).unwrap().0, 1);
    opened.notices.is_empty()
}

#[test]
fn scm_12_the_power_is_cut_at_any_operation_of_a_migration() {
    let before = prepared();
    assert!(is_old(&before) && !is_new(&before));
    let cuts = [Action::CutBefore, Action::CutWithin, Action::CutAfter].map(Some);
    for cut in cuts.into_iter().chain([None]) {
        let mut seen = [0, 0];
        for at in 1.. {
            let disk = Simulated::with_files(at, &before);
            disk.script(move |step: &Step| match cut {
                Some(cut) if step.number == at => cut,
                // The end of the process: what was written is there.
                None if step.number >= at => Action::Fail(EIO),
                _ => Action::Proceed,
            });
            let is_open = try_open(&disk, &changed()).0.is_ok();
            let files = if cut.is_some() { disk.restart().files() } else { disk.files() };
            let (old, new) = (is_old(&files), is_new(&files));
            assert!(old != new, "{cut:?} at {at}: old {old}, new {new}");
            assert!(new || !is_open, "{cut:?} at {at}: the new schema is lost");
            seen[usize::from(new)] += 1;
            if is_open && disk.steps() < at {
                break;
            }
        }
        assert!(seen[0] > 20 && seen[1] > 0, "{cut:?}: {seen:?}");
    }
}
