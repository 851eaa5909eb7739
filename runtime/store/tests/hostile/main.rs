//! T21: any bytes as the files of a store, to what `woc db` does with them and to a start. The answer is a refusal or a
//! store that holds together, and it comes soon. `HOSTILE_RUNS` sets the number of stores.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod memory;
mod mutate;
#[path = "../schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;
mod samples;
mod seal;

use mutate::{Image, Random, mutate};
use program::Program;
use samples::{Sample, samples};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::disk::Disk;
use store::disk::simulated::Simulated;
use store::inspect::{Contents, files};
use store::{Compaction, OpenError, Opened, Settings, Store, Value};

fn open(disk: &Simulated, program: &Program, memory: u64) -> Result<Opened, OpenError> {
    let settings = Settings {
        memory,
        segment_bytes: 700,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|failure| panic!("{failure:?}")),
        compaction: Compaction { floor: 700, ratio: 2, on_failure: Box::new(|error| panic!("{error}")) },
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::open(disk, &program.0, settings)
}

type Rows = Vec<(u32, u64, Vec<Value>)>;

/// All rows of the program's tables by looking for the ids below that of the next row.
fn rows(store: &Store, next: &[u64]) -> Rows {
    let mut rows = Vec::new();
    for (table, next) in (0..).zip(next) {
        for id in (1..*next).take(2000) {
            if let Ok(row) = store.read_row(table, id, |cells| cells.iter().map(|c| c.to_value()).collect()) {
                rows.push((table, id, row));
            }
        }
    }
    rows
}

/// What `woc db` does: what is wrong, and the numbers of the next ids by the names of the classes.
fn inspect(disk: &Simulated) -> (Vec<String>, Vec<(String, u64)>) {
    let contents = Contents::read(disk).unwrap();
    let findings = contents.findings(disk).unwrap();
    let _ = (files(disk).unwrap(), contents.last_seq(), contents.torn_bytes(), contents.records());
    for table in contents.tables() {
        let _ = (table.label(), table.live_bytes(), table.is_retired());
        let mut count = 0;
        table.each_row(|id, row| {
            count += 1;
            assert!(id < table.next_id());
            // The reader takes no deep ones.
            if row.len() < 10_000 {
                let mut json = codec::json::Reader::new(row, ());
                assert!(json.skip().is_some() && json.at_end(), "{}", String::from_utf8_lossy(row));
            }
        });
        assert_eq!(count, table.rows());
    }
    let tables = contents.tables();
    let next = tables.iter().map(|table| (table.class().to_string(), table.next_id())).collect();
    (findings.iter().map(ToString::to_string).collect(), next)
}

/// Uses a store that has opened, ends it, and opens it again.
fn live(disk: &Simulated, program: &Program, store: Store, next: &[u64]) {
    let before = rows(&store, next);
    for (table, id, row) in before.iter().take(40) {
        for (column, value) in (0..).zip(row) {
            // Unless it is refused, the row stays as it is.
            let _ = store.set(*table, *id, column, value.clone());
        }
        assert_eq!(store.read_row(*table, *id, |cells| cells.len()), Ok(row.len()));
        assert_eq!(store.read(*table, *id, 0, |cell| cell.to_value()), Ok(row[0].clone()));
    }
    let mut ids = Vec::new();
    if let Some((table, _, row)) = before.first()
        && let Ok((id, _)) = store.insert(*table, row.clone())
    {
        assert_eq!(id, next[*table as usize]);
        ids.push((*table, id));
    }
    for (table, id) in &ids {
        let _ = store.delete(*table, *id).unwrap();
    }
    store.close();
    drop(store);
    let again = match open(&disk.restart(), program, 1 << 30) {
        Ok(opened) => opened.store,
        Err(error) => panic!("it opened once: {error}"),
    };
    assert_eq!(rows(&again, next), before);
}

/// Whether the store opened.
fn answer(image: &Image, sample: &Sample) -> bool {
    let disk = Simulated::with_files(1, image);
    let (findings, next) = inspect(&disk);
    assert_eq!(disk.files(), *image);
    for program in [&sample.program, &sample.other] {
        let disk = Simulated::with_files(1, image);
        match open(&disk, program, 1 << 30) {
            Ok(Opened { store, .. }) => {
                assert_eq!(findings, [""; 0]);
                let next_of = |name: &String| next.iter().find(|(class, _)| class == name).map_or(1, |(_, next)| *next);
                let next: Vec<u64> = program.0.tables.iter().map(|table| next_of(&table.name)).collect();
                live(&disk, program, store, &next);
            }
            Err(error) => {
                assert_eq!(disk.files(), *image, "{error}");
                // Damage comes first, and is what `check` finds.
                match &error {
                    OpenError::Damage(damage) => assert_eq!(Some(&damage.to_string()), findings.first()),
                    _ => assert_eq!(findings, [""; 0], "{error}"),
                }
            }
        }
    }
    findings.is_empty()
}

#[test]
fn t21_any_bytes_are_answered() {
    let runs = std::env::var("HOSTILE_RUNS").map_or(600, |runs| runs.parse().unwrap());
    let first: u64 = std::env::var("HOSTILE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let samples = samples();
    for sample in &samples {
        assert!(answer(&sample.image, sample), "{} is sound", sample.name);
    }
    let (mut sound, mut damaged) = (0, 0);
    for seed in first..first + runs {
        let mut random = Random(seed);
        let sample = &samples[random.below(samples.len())];
        let (image, what) = mutate(&samples, sample, &mut random);
        let bytes: usize = image.values().map(Vec::len).sum();
        let begun = Instant::now();
        let answered = std::panic::catch_unwind(|| answer(&image, sample));
        let took = begun.elapsed();
        let Ok(opens) = answered else { panic!("seed {seed}: {} with {what:?}", sample.name) };
        assert!(
            took < Duration::from_secs(5) * (1 + bytes as u32 / (1 << 20)),
            "seed {seed}: {took:?} for {bytes} bytes"
        );
        if opens { sound += 1 } else { damaged += 1 }
    }
    println!("{sound} stores were sound, {damaged} damaged");
    assert!(sound > runs / 20 && damaged > runs / 4, "{sound} sound, {damaged} damaged");
}
