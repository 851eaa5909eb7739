//! Stores that are sound: of all kinds of columns, of one segment and of several, compacted, of a changed schema.

use crate::mutate::Image;
use crate::open;
use crate::program::Program;
use abi::desc::{Default as Declared, TYPE_BOOL, TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc};
use abi::tables::IndexDesc;
use store::disk::simulated::Simulated;
use store::{Opened, Store, Value};

pub struct Sample {
    pub name: &'static str,
    pub image: Image,
    /// The program that has written it, and one with another schema.
    pub program: Program,
    pub other: Program,
}

/// `Bin`, `Lot` with columns of all kinds, `Gone`; or without that and with other columns.
pub fn program(changed: bool) -> Program {
    let mut p = Program::new();
    let variants = if changed { &["New", "Low", "High"][..] } else { &["Low", "High"] };
    let kind = p.bare("Kind", variants);
    let maybe_float = p.nullable(TYPE_FLOAT);
    let pos = p.record("Pos", &[("x", TYPE_INT, None), ("y", maybe_float, None), ("kind", kind, None)]);
    let maybe_pos = p.nullable(pos);
    let step = p.union("Step", |step| {
        let mut variants = vec![("Stay", vec![]), ("Go", vec![("to", pos), ("then", step)])];
        if changed {
            variants.insert(0, ("Jump", vec![("far", TYPE_INT)]));
        }
        variants
    });
    let maybe_int = p.nullable(TYPE_INT);
    let numbers = p.multi(maybe_int);
    let steps = p.multi(step);
    let map = p.ty(TypeDesc::Map(TYPE_TEXT, maybe_pos));
    let maybe_text = p.nullable(TYPE_TEXT);
    let bin = p.table("Bin", &[("code", TYPE_TEXT, None), ("weight", TYPE_FLOAT, None)]);
    p.unique(0);
    p.unique(1);
    let maybe_bin = p.nullable(bin);
    let mut columns = vec![
        ("n", TYPE_INT, None),
        ("b", TYPE_BOOL, None),
        ("kind", kind, None),
        ("note", maybe_text, None),
        ("raw", TYPE_BYTES, None),
        ("json", TYPE_JSON, None),
        ("at", maybe_pos, None),
        ("numbers", numbers, None),
        ("steps", steps, None),
        ("map", map, None),
        ("bin", bin, None),
        ("spare", maybe_bin, None),
    ];
    if changed {
        columns.reverse();
        columns.retain(|(name, ..)| *name != "raw");
        columns.push(("count", TYPE_INT, Some(Declared::Int(7))));
        columns.push(("ints", numbers, None));
    }
    let _ = p.table("Lot", &columns);
    let bin_at = columns.iter().position(|(name, ..)| *name == "bin").unwrap() as u32;
    let n_at = columns.iter().position(|(name, ..)| *name == "n").unwrap() as u32;
    p.last().indexes.push(IndexDesc { columns: vec![n_at, bin_at], unique: false });
    p.last().indexes.push(IndexDesc { columns: vec![bin_at], unique: false });
    if !changed {
        let _ = p.table("Gone", &[("n", TYPE_INT, None)]);
    }
    p
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.into())
}

/// The columns of `Lot` before the change, in order.
fn lot(n: u64, bin: u64) -> Vec<Value> {
    let word = |n: u64| n.to_le_bytes();
    let pos = [&word(n)[..], &[1], &word(0.5_f64.to_bits()), &word(n % 2)].concat();
    let nil_pos = [&word(n)[..], &[0], &word(0)].concat();
    let numbers = [&[2, 0, 0, 0, 1][..], &word(n), &[0]].concat();
    let steps = [&[2, 0, 0, 0, 1, 0, 0, 0, 1][..], &pos, &[0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let map = [&[2, 0, 0, 0, 1, 0, 0, 0][..], b"k", &[1], &nil_pos, &[1, 0, 0, 0], b"j", &[0]].concat();
    vec![
        Value::Word(n),
        Value::Word(n % 2),
        Value::Word(n % 2),
        if n.is_multiple_of(3) { Value::Nil } else { bytes(b"note") },
        bytes(&vec![n as u8; n as usize * 3 % 40]),
        bytes(b"{\"a\": [1]}"),
        if n.is_multiple_of(2) { Value::Nil } else { bytes(&[&[1][..], &pos].concat()) },
        bytes(&numbers),
        bytes(&steps),
        bytes(&map),
        Value::Word(bin),
        if n.is_multiple_of(4) { Value::Word(bin) } else { Value::Nil },
    ]
}

fn fill(store: &Store, rows: u64) {
    for n in 1..=rows {
        let (bin, _) = store.insert(0, vec![bytes(format!("bin {n}").as_bytes()), Value::Word(n)]).unwrap();
        let (id, seq) = store.insert(1, lot(n, bin)).unwrap();
        let _ = store.set(1, id, 3, bytes(b"changed")).unwrap();
        if n.is_multiple_of(3) {
            let (id, _) = store.insert(1, lot(n, bin)).unwrap();
            let _ = store.delete(1, id).unwrap();
        }
        assert!(store.wait(seq));
    }
    let (id, _) = store.insert(2, vec![Value::Word(1)]).unwrap();
    let _ = store.delete(2, id).unwrap();
}

fn made(name: &'static str, make: impl Fn(&Simulated)) -> Sample {
    let disk = Simulated::new(1);
    make(&disk);
    Sample { name, image: disk.restart().files(), program: program(false), other: program(true) }
}

fn opened(disk: &Simulated, changed: bool) -> Store {
    let Opened { store, .. } = open(disk, &program(changed), 1 << 30).map_err(|e| e.to_string()).unwrap();
    store
}

pub fn samples() -> Vec<Sample> {
    let killed = made("a killed one", |disk| {
        let store = opened(disk, false);
        fill(&store, 3);
        assert!(store.wait(8));
    });
    let ended = made("one that ended normally", |disk| {
        let store = opened(disk, false);
        fill(&store, 3);
        store.close();
    });
    let compacted = made("a compacted one", |disk| {
        let store = opened(disk, false);
        fill(&store, 4);
        for n in 0.. {
            let seq = store.set(1, 1, 0, Value::Word(n)).unwrap();
            assert!(store.wait(seq));
            if n > 40 && disk.files().keys().next().unwrap().as_str() > "0000000000000004.log" {
                break;
            }
        }
        store.close();
    });
    let mut changed = made("one of a changed schema", |disk| {
        let store = opened(disk, false);
        fill(&store, 3);
        store.close();
        drop(store);
        let store = opened(disk, true);
        let (_, seq) = store.insert(0, vec![bytes(b"late"), Value::Word(99)]).unwrap();
        assert!(store.wait(seq));
        store.close();
    });
    std::mem::swap(&mut changed.program, &mut changed.other);
    vec![killed, ended, compacted, changed]
}
