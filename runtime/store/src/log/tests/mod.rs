//! The log over a disk in memory: what was staged comes back, whatever happens in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod batches;
mod crash;
mod damage;
mod document;
mod memory;
mod segments;

use super::*;
use memory::{Image, Memory, Random};

/// Sequence number, kind, body.
type Entry = (u64, Kind, Vec<u8>);

#[derive(Default)]
struct Collect {
    entries: Vec<Entry>,
    /// Where each of them lies: segment, offset.
    places: Vec<(u64, u64)>,
    preambles: Vec<(u64, Preamble)>,
}

impl Visitor for Collect {
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection> {
        self.preambles.push((number, preamble.clone()));
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        self.entries.push((record.seq, record.kind, record.body.to_vec()));
        self.places.push((record.segment, record.offset));
        Ok(())
    }
}

/// What a log has told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(Vec<u64>, Vec<Failure>)>>);

impl Told {
    fn durable(&self) -> Vec<u64> {
        self.0.lock().unwrap().0.clone()
    }

    fn failures(&self) -> Vec<u64> {
        self.0.lock().unwrap().1.iter().map(|failure| failure.unacknowledged).collect()
    }
}

const SEGMENT: u64 = 300;

fn setup(segment_bytes: u64, told: &Told) -> Setup {
    let (durable, failed) = (told.clone(), told.clone());
    Setup {
        preamble: Preamble { schema: b"two tables".to_vec(), counters: vec![1, 1] },
        segment_bytes,
        on_durable: Box::new(move |seq| durable.0.lock().unwrap().0.push(seq)),
        on_segment: Box::new(|| ()),
        on_failure: Box::new(move |failure| failed.0.lock().unwrap().1.push(failure)),
    }
}

fn read(disk: &Memory) -> Result<(Collect, Found), Error> {
    let before = disk.operations();
    let mut collect = Collect::default();
    let found = scan(disk, &mut collect);
    assert_eq!(disk.operations(), before, "a scan changes nothing");
    Ok((collect, found?))
}

/// Starts a log with small segments on what is there.
fn open(disk: &Memory) -> Log {
    let (_, found) = read(disk).unwrap();
    Log::start(Arc::new(disk.clone()), found, setup(SEGMENT, &Told::default())).unwrap()
}

/// All that can be read, or the damage.
fn entries(image: &Image) -> Result<Vec<Entry>, Damage> {
    match read(&Memory::from(image.clone())) {
        Ok((collect, _)) => Ok(collect.entries),
        Err(Error::Damage(damage)) => Err(damage),
        Err(error) => panic!("{error:?}"),
    }
}

fn insert(table: u16, id: u64, rest: &[u8]) -> Vec<u8> {
    [&table.to_le_bytes()[..], &id.to_le_bytes(), rest].concat()
}

/// Stages a record of each in a batch of its own.
fn write(log: &Log, kind: Kind, body: &[u8]) -> Entry {
    let seq = log.stage(kind, |out| out.extend_from_slice(body));
    assert!(log.wait(seq));
    (seq, kind, body.to_vec())
}

/// A log of several segments as a crash leaves it, and what was written.
fn sample() -> (Image, Vec<Entry>) {
    let disk = Memory::default();
    let log = open(&disk);
    let mut written = Vec::new();
    for id in 1..=12 {
        written.push(write(&log, Kind::Insert, &insert((id % 2) as u16, id, &vec![b'x'; id as usize * 3])));
        written.push(write(&log, Kind::Delete, &insert((id % 2) as u16, id, b"")));
    }
    drop(log);
    assert!(disk.image().len() >= 4, "several segments");
    (disk.image(), written)
}

/// The segments that are needed.
fn segments(log: &Log) -> Vec<Extent> {
    log.shared.lock().segments.clone()
}

/// Writes until a new segment has been begun, which holds a record at most; its number.
fn begin_segment(log: &Log) -> u64 {
    let before = segments(log).len();
    while segments(log).len() == before {
        let _ = write(log, Kind::Change, b"filling");
    }
    segments(log).last().unwrap().number
}

fn last_name(image: &Image) -> String {
    image.keys().rfind(|name| name.ends_with(".log")).unwrap().clone()
}

#[test]
fn what_was_staged_comes_back() {
    let disk = Memory::default();
    let mut written = Vec::new();
    for round in 0..4u8 {
        let log = open(&disk);
        for size in [0, 1, 7, 8, 9, 250, 700] {
            written.push(write(&log, Kind::Change, &vec![round; size]));
        }
        log.close();
        let end = written.len() as u64 + 1;
        written.push((end, Kind::End, Vec::new()));
        let (collect, found) = read(&disk).unwrap();
        assert_eq!(collect.entries, written);
        assert_eq!((found.last, found.ended, found.torn, found.leftovers.len()), (end, true, 0, 0));
    }
}

#[test]
fn a_record_may_be_larger_than_segment_and_window() {
    let disk = Memory::default();
    let log = open(&disk);
    let mut written = vec![write(&log, Kind::Change, b"small")];
    for size in [3 << 20, 5, 1 << 20] {
        written.push(write(&log, Kind::Change, &vec![7; size]));
    }
    drop(log);
    assert_eq!(entries(&disk.image()), Ok(written));
}

#[test]
fn a_new_store_has_one_segment_and_no_records() {
    let disk = Memory::default();
    let (_, found) = read(&disk).unwrap();
    assert_eq!((found.last, found.segments.len()), (0, 0));
    drop(open(&disk));
    let (collect, found) = read(&disk).unwrap();
    assert_eq!((found.last, found.segments.len(), collect.entries.len()), (0, 1, 0));
}

#[test]
fn a_visitor_may_object() {
    struct Objects(Objection);
    impl Visitor for Objects {
        fn segment(&mut self, _: u64, _: &Preamble) -> Result<(), Objection> {
            Ok(())
        }
        fn record(&mut self, _: &Record<'_>) -> Result<(), Objection> {
            Err(self.0.clone())
        }
    }
    let disk = Memory::from(sample().0);
    assert!(matches!(scan(&disk, &mut Objects(Objection::Stop)), Err(Error::Stopped)));
    let Err(Error::Damage(damage)) = scan(&disk, &mut Objects(Objection::Damage("no such table".into()))) else {
        panic!("no damage");
    };
    assert_eq!((damage.file.as_str(), damage.reason.as_str()), ("0000000000000001.log", "no such table"));
    assert!(damage.offset >= 64);
}
