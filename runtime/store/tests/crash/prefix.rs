//! T9: what a statement has read is durable once a statement after it is acknowledged, whoever wrote it.

use crate::life::open;
use crate::random::Random;
use crate::seeds;
use crate::verdict::rows;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
use store::disk::simulated::{Action, Simulated};
use store::{Cell, Store, Value};

fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().into())
}

/// Writes rows `name 0`, `name 1`, … without waiting for them, and tells how far it has come.
fn write(store: &Store, name: &str) {
    for n in 0..60 {
        let _ = store.insert(0, vec![text(&format!("{name} {n}")), Value::Word(n), Value::Word(0)]).unwrap();
        if n % 5 == 0 {
            thread::yield_now();
        }
    }
}

/// Copies rows that it finds into another table; those that are acknowledged.
fn copy(store: &Store, name: &str, random: &mut Random, acknowledged: &Mutex<BTreeSet<u64>>) {
    for n in 0..60 {
        // The newest rows are the ones that are not durable yet.
        let id = (store.len(0) + 1).saturating_sub(1 + random.below(3));
        let Ok(true) = store.read(0, id, 0, |cell| matches!(cell, Cell::Bytes(_))) else { continue };
        let shelf = 1 + random.below(store.len(0));
        let row = vec![text(&format!("{name} {n}")), Value::Word(id), Value::Word(shelf), Value::Nil];
        let (copy, seq) = store.insert(1, row).unwrap();
        if random.one_in(2) && store.wait(seq) {
            let _ = acknowledged.lock().unwrap().insert(copy);
        }
    }
}

#[test]
fn con_4_an_acknowledged_copy_has_its_original() {
    seeds(40, |seed| {
        let disk = Simulated::new(seed);
        let store = open(&disk).unwrap();
        let cut = disk.steps() + 1 + seed % 60;
        disk.script(move |step| if step.number >= cut { Action::CutWithin } else { Action::Proceed });
        let acknowledged = Mutex::default();
        thread::scope(|scope| {
            for name in ["a", "b"] {
                let (store, acknowledged) = (&store, &acknowledged);
                let _ = scope.spawn(move || write(store, name));
                let mut random = Random(seed << 8 | u64::from(name == "a") | 2);
                let _ = scope.spawn(move || copy(store, name, &mut random, acknowledged));
            }
        });
        let next = disk.restart();
        drop(store);
        let store = open(&next).unwrap();
        let (originals, copies) = (rows(&store, 0), rows(&store, 1));
        for id in acknowledged.into_inner().unwrap() {
            assert!(copies.contains_key(&id), "acknowledged copy {id} is lost");
        }
        for (id, row) in &copies {
            let (Value::Word(original), Value::Word(shelf)) = (&row[1], &row[2]) else { panic!("{row:?}") };
            assert!(originals.contains_key(original), "copy {id} of {original} has no original");
            assert!(originals.contains_key(shelf), "copy {id} refers to {shelf}");
        }
    });
}
