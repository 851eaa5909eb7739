//! Stores without their programs: what is wrong with rows is found where it lies, and no bytes of records do harm.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;

use abi::desc::{TYPE_BOOL, TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc};
use program::Program;
use std::sync::Arc;
use store::disk::Disk;
use store::disk::simulated::Simulated;
use store::inspect::Contents;
use store::log::{Kind, Log, Objection, Preamble, Record, Setup, Visitor, scan};
use store::schema::Schema;
use store::{Compaction, OpenError, Settings, Store};

struct Nothing;

impl Visitor for Nothing {
    fn segment(&mut self, _: u64, _: &Preamble) -> Result<(), Objection> {
        Ok(())
    }

    fn record(&mut self, _: &Record<'_>) -> Result<(), Objection> {
        Ok(())
    }
}

/// The store of a program with these records, whatever they are.
fn store(program: &Program, records: &[(Kind, Vec<u8>)]) -> Simulated {
    let disk = Simulated::new(1);
    let mut schema = Vec::new();
    Schema::of(&program.0, 0).encode(&mut schema);
    let setup = Setup {
        preamble: Preamble { schema, counters: program.0.tables.iter().map(|_| 1).collect() },
        segment_bytes: 1 << 20,
        on_durable: Box::new(|_| ()),
        on_segment: Box::new(|| ()),
        on_failure: Box::new(|failure| panic!("{failure:?}")),
    };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let log = Log::start(shared, scan(&disk, &mut Nothing).unwrap(), setup).unwrap();
    for (kind, body) in records {
        let _ = log.stage(*kind, |out| out.extend_from_slice(body));
    }
    log.close();
    disk
}

fn insert(table: u16, id: u64, values: &[&[u8]]) -> (Kind, Vec<u8>) {
    let mut body = [&table.to_le_bytes()[..], &id.to_le_bytes()].concat();
    values.iter().for_each(|value| body.extend_from_slice(value));
    (Kind::Insert, body)
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn word(word: u64) -> [u8; 8] {
    word.to_le_bytes()
}

fn findings(disk: &Simulated) -> Vec<String> {
    let before = disk.files();
    let contents = Contents::read(disk).unwrap();
    let findings = contents.findings(disk).unwrap();
    assert_eq!(disk.files(), before);
    findings.iter().map(ToString::to_string).collect()
}

fn refusal(disk: &Simulated, program: &Program) -> Option<OpenError> {
    refusal_with(disk, program, 1 << 30)
}

fn refusal_with(disk: &Simulated, program: &Program, memory: u64) -> Option<OpenError> {
    let settings = Settings {
        memory,
        segment_bytes: 1 << 20,
        compaction: Compaction { floor: 0, ratio: 0, on_failure: Box::new(|error| panic!("{error}")) },
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|failure| panic!("{failure:?}")),
    };
    Store::open(Arc::new(disk.restart()), &program.0, settings).err()
}

/// Where the records of a store's only segment begin.
fn places(disk: &Simulated) -> Vec<u64> {
    struct Places(Vec<u64>);
    impl Visitor for Places {
        fn segment(&mut self, _: u64, _: &Preamble) -> Result<(), Objection> {
            Ok(())
        }

        fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
            self.0.push(record.offset);
            Ok(())
        }
    }
    let mut places = Places(Vec::new());
    let _ = scan(disk, &mut places).unwrap();
    places.0
}

#[test]
fn rows_that_cannot_be_beside_the_others() {
    let mut program = Program::new();
    let item = program.table("Item", &[("name", TYPE_TEXT, None)]);
    program.unique(0);
    let maybe = program.nullable(item);
    let _ = program.table("Part", &[("of", item, None), ("spare", maybe, None)]);
    let sound = [
        insert(0, 1, &[&text("a")]),
        insert(0, 2, &[&text("b")]),
        insert(1, 1, &[&word(2), &[0]]),
        insert(1, 2, &[&word(1), &[1], &word(2)]),
    ];
    let disk = store(&program, &sound);
    assert_eq!(findings(&disk), [""; 0]);
    assert!(refusal(&disk, &program).is_none());

    let mut wrong = sound.to_vec();
    wrong[2] = insert(1, 1, &[&word(9), &[0]]);
    wrong.push(insert(0, 3, &[&text("a")]));
    wrong.push(insert(1, 3, &[&word(1), &[1], &word(0)]));
    let disk = store(&program, &wrong);
    let at = places(&disk);
    let line =
        |record: usize, reason: &str| format!("0000000000000001.log is damaged at offset {}: {reason}", at[record]);
    assert_eq!(
        findings(&disk),
        [
            line(2, "Part 1 refers to a row that is not there, in `of`"),
            line(4, "Item 3 has the same `name` as row 1"),
            line(5, "Part 3 refers to a row that is not there, in `spare`"),
        ]
    );
    assert!(matches!(refusal(&disk, &program), Some(OpenError::Damage(_))));
}

#[test]
fn a_change_of_no_row_and_values_that_are_none() {
    let mut program = Program::new();
    let kind = program.bare("Kind", &["Low", "High"]);
    let list = program.multi(TYPE_INT);
    let _ = program.table("Item", &[("b", TYPE_BOOL, None), ("kind", kind, None), ("list", list, None)]);
    let list_of = |count: u32, words: &[u64]| {
        let words: Vec<u8> = words.iter().flat_map(|n| word(*n)).collect();
        let body = [&count.to_le_bytes()[..], &words].concat();
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    };
    let row = |b: u64, kind: u64, list: &[u8]| insert(0, 1, &[&word(b), &word(kind), list]);
    let good = list_of(2, &[7, 8]);
    let change = |column: u16, value: &[u8]| {
        let body = [&0u16.to_le_bytes()[..], &word(1), &column.to_le_bytes(), value].concat();
        (Kind::Change, body)
    };
    assert_eq!(findings(&store(&program, &[row(1, 1, &good), change(2, &list_of(0, &[]))])), [""; 0]);
    for (records, reason) in [
        (vec![row(2, 1, &good)], "no value of `b`"),
        (vec![row(1, 2, &good)], "no value of `kind`"),
        (vec![row(1, 1, &list_of(3, &[7, 8]))], "no value of `list`"),
        (vec![row(1, 1, &list_of(1, &[7, 8]))], "no value of `list`"),
        (vec![row(1, 1, &good), change(0, &word(2))], "no value of `b`"),
        (vec![row(1, 1, &good), (Kind::Delete, row(0, 0, &[]).1[..10].to_vec()), change(0, &word(1))], "not there"),
    ] {
        let disk = store(&program, &records);
        let found = findings(&disk);
        assert!(found.len() == 1 && found[0].ends_with(reason), "{found:?} instead of {reason}");
        // A start finds the same.
        assert_eq!(refusal(&disk, &program).map(|refusal| refusal.to_string()), found.first().cloned());
    }
}

/// What containers hold is looked at as closely as columns are: nil only where it may be, keys once.
#[test]
fn rec_4_values_within_values() {
    let mut program = Program::new();
    let kind = program.bare("Kind", &["Low", "High"]);
    let pos = program.record("Pos", &[("kind", kind, None), ("name", TYPE_TEXT, None)]);
    let maybe = program.nullable(pos);
    let list = program.multi(maybe);
    let step = program.union("Step", |step| vec![("Stay", vec![]), ("Go", vec![("to", pos), ("then", step)])]);
    let words = program.ty(TypeDesc::Map(TYPE_TEXT, TYPE_BOOL));
    let floats = program.ty(TypeDesc::Map(TYPE_FLOAT, TYPE_INT));
    let types = [pos, list, step, words, floats];
    let number = |n: u32| n.to_le_bytes().to_vec();
    let at = |kind: u64| [&[1][..], &word(kind), &text("n")].concat();
    let entry = |key: f64| [word(key.to_bits()), word(1)].concat();
    let nil = number(u32::MAX);
    for (column, bytes, sound) in [
        (0, at(1), true),
        (0, at(2), false),
        (0, vec![0], false),
        (0, [&[1][..], &word(1), &nil].concat(), false),
        (1, [number(2), at(1), vec![0]].concat(), true),
        (1, nil.clone(), false),
        (1, number(u32::MAX - 1), false),
        (2, [number(1), at(0), number(0)].concat(), true),
        (2, [number(1), at(0), nil.clone()].concat(), false),
        (2, number(2), false),
        (3, [number(2), text("a"), word(0).into(), text("b"), word(1).into()].concat(), true),
        (3, [number(2), text("a"), word(0).into(), text("a"), word(1).into()].concat(), false),
        (3, [number(1), text("a"), word(2).into()].concat(), false),
        (4, [number(2), entry(0.5), entry(f64::NAN)].concat(), true),
        (4, [number(2), entry(0.0), entry(-0.0)].concat(), false),
    ] {
        let mut program = program.clone();
        let _ = program.table("Item", &[("value", types[column], None)]);
        let value = [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat();
        let disk = store(&program, &[insert(0, 1, &[&value])]);
        let found = findings(&disk);
        assert_eq!(found.is_empty(), sound, "column {column}, {bytes:?}: {found:?}");
        assert_eq!(refusal(&disk, &program).map(|refusal| refusal.to_string()), found.first().cloned());
    }
}

/// 7.2: damage, among it rows that cannot be beside each other by the schema of the store, then the schema, then memory.
#[test]
fn t20_damage_comes_before_the_schema_and_memory() {
    let program = |unique: bool| {
        let mut program = Program::new();
        let _ = program.table("Item", &[("name", TYPE_TEXT, None)]);
        if unique {
            program.unique(0);
        }
        program
    };
    let twice = [insert(0, 1, &[&text("a")]), insert(0, 2, &[&text("b")]), insert(0, 3, &[&text("a")])];
    let disk = store(&program(true), &twice);
    let found = findings(&disk);
    assert!(found.len() == 1 && found[0].ends_with("Item 3 has the same `name` as row 1"), "{found:?}");
    for other in [program(true), program(false), Program::new()] {
        for memory in [1 << 30, 1] {
            assert_eq!(refusal_with(&disk, &other, memory).map(|refusal| refusal.to_string()), found.first().cloned());
        }
    }
    // By the program's schema alone it is no damage.
    let disk = store(&program(false), &twice);
    assert_eq!(findings(&disk), [""; 0]);
    for memory in [1 << 30, 1] {
        assert!(matches!(refusal_with(&disk, &program(true), memory), Some(OpenError::Schema(_))));
    }
    assert!(matches!(refusal_with(&disk, &program(false), 1), Some(OpenError::Memory(1))));
    assert!(refusal(&disk, &program(false)).is_none());
}

/// A segment begins with a schema that no program could have had beside the rows before.
#[test]
fn rec_4_a_schema_that_the_rows_do_not_fit() {
    let with = |columns: &[(&str, u32)]| {
        let mut program = Program::new();
        let maybe = program.nullable(TYPE_INT);
        let pos = program.record("Pos", &[("x", TYPE_INT, None)]);
        let ty = |ty: u32| {
            if ty == u32::MAX {
                maybe
            } else if ty == u32::MAX - 1 {
                pos
            } else {
                ty
            }
        };
        let columns: Vec<_> = columns.iter().map(|(name, number)| (*name, ty(*number), None)).collect();
        let _ = program.table("Item", &columns);
        program
    };
    let (maybe, pos) = (u32::MAX, u32::MAX - 1);
    let old = with(&[("n", TYPE_INT), ("maybe", maybe)]);
    let gone = Schema::of(&Program::new().0, 0).remembering(&Schema::of(&old.0, 0));
    for (schema, sound) in [
        (Schema::of(&with(&[("n", TYPE_INT), ("maybe", maybe), ("more", TYPE_TEXT)]).0, 0), true),
        (Schema::of(&with(&[("n", TYPE_TEXT), ("maybe", maybe)]).0, 0), false),
        (Schema::of(&with(&[("n", TYPE_INT), ("maybe", TYPE_INT)]).0, 0), false),
        (Schema::of(&with(&[("n", TYPE_INT), ("at", pos)]).0, 0), false),
        (gone, false),
        (Schema::default(), false),
    ] {
        let disk = store(&old, &[insert(0, 1, &[&word(7), &[0]])]);
        let mut encoded = Vec::new();
        schema.encode(&mut encoded);
        let setup = Setup {
            preamble: Preamble { schema: encoded, counters: schema.tables.iter().map(|_| 2).collect() },
            segment_bytes: 1 << 20,
            on_durable: Box::new(|_| ()),
            on_segment: Box::new(|| ()),
            on_failure: Box::new(|failure| panic!("{failure:?}")),
        };
        Log::start(Arc::new(disk.clone()), scan(&disk, &mut Nothing).unwrap(), setup).unwrap().close();
        let found = findings(&disk);
        assert_eq!(found.is_empty(), sound, "{found:?}");
        assert!(
            found.iter().all(|line| line.starts_with("0000000000000002.log is damaged at offset 64: ")),
            "{found:?}"
        );
    }
}

/// T3 and T21: a store with a changed byte is damaged, or nothing of its rows is different but for the last record.
#[test]
fn a_changed_byte_is_found() {
    let mut program = Program::new();
    let _ = program.table("Item", &[("name", TYPE_TEXT, None)]);
    let records: Vec<_> = (1..=4).map(|id| insert(0, id, &[&text("same")])).collect();
    let disk = store(&program, &records);
    let rows = |disk: &Simulated| {
        let contents = Contents::read(disk).unwrap();
        let mut rows = Vec::new();
        contents.tables().iter().for_each(|table| table.each_row(|id, row| rows.push((id, row.to_vec()))));
        (contents.findings(disk).unwrap().is_empty(), rows)
    };
    let (_, sound) = rows(&disk);
    let last = *places(&disk).last().unwrap() as usize;
    let mut files = disk.files();
    let name = files.keys().find(|name| name.ends_with(".log")).unwrap().clone();
    files.get_mut(&name).unwrap().truncate(last + 64);
    for at in 0..last + 64 {
        for bit in 0..8 {
            let mut files = files.clone();
            files.get_mut(&name).unwrap()[at] ^= 1 << bit;
            let (clean, rows) = rows(&Simulated::with_files(1, &files));
            assert!(sound.starts_with(&rows), "byte {at}, bit {bit}");
            assert!(!clean || rows == sound, "byte {at}, bit {bit}");
        }
    }
}

/// Bodies that were written as they are but are those of no row, in a schema of all kinds of columns.
#[test]
fn random_bodies_never_panic() {
    let mut program = Program::new();
    let pos = program.record("Pos", &[("x", TYPE_INT, None), ("y", TYPE_FLOAT, None)]);
    let step = program.union("Step", |step| vec![("Stay", vec![]), ("Go", vec![("to", pos), ("then", step)])]);
    let steps = program.multi(step);
    let map = program.ty(TypeDesc::Map(TYPE_TEXT, pos));
    let bytes = program.nullable(TYPE_BYTES);
    let _ =
        program.table("A", &[("step", steps, None), ("map", map, None), ("raw", bytes, None), ("j", TYPE_JSON, None)]);
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let blob = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    let at = [&[1][..], &word(5), &word(0.5_f64.to_bits())].concat();
    // [Stay, Go(Pos, Stay), Stay] and {k: Pos}.
    let steps = [&[3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..], &at, &[0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let map = [&[1, 0, 0, 0][..], &text("k"), &at].concat();
    let values = [blob(&steps), blob(&map), [&[1][..], &text("raw")].concat(), text("[1]")].concat();
    let mut rows = 0;
    for _ in 0..400 {
        let records: Vec<(Kind, Vec<u8>)> = (1..=next(4) + 1)
            .map(|id| {
                let mut record = insert(0, id, &[&values]);
                for _ in 0..next(3) {
                    let at = next(record.1.len() as u64) as usize;
                    let below = [2, 5, 256][next(3) as usize];
                    record.1[at] = next(below) as u8;
                }
                record
            })
            .collect();
        let disk = store(&program, &records);
        let contents = Contents::read(&disk).unwrap();
        let _ = contents.findings(&disk).unwrap();
        for table in contents.tables() {
            assert!(table.live_bytes() <= contents.record_bytes());
            table.each_row(|_, row| {
                rows += 1;
                let mut json = codec::json::Reader::new(row, ());
                assert!(json.skip().is_some() && json.at_end(), "{}", String::from_utf8_lossy(row));
            });
        }
    }
    assert!(rows > 200, "{rows} rows could be read");
}
