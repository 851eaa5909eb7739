//! Files that are cut, torn or changed: the store is there as far as its records are, or its damage is reported.

use crate::life::{History, Life, open};
use crate::random::Random;
use crate::verdict::{State, verdict};
use crate::workload::Statement;
use crate::{seeds, setting};
use std::collections::BTreeMap;
use store::disk::simulated::{Action, Simulated};
use store::{OpenError, Value};

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a store after statements and a normal end.
fn files(seed: u64, statements: usize, history: History) -> (Files, History) {
    let disk = Simulated::new(seed);
    let script = |_: &_| Action::Proceed;
    let end = Life::live(&disk, seed, statements, 0, history, script).map_err(|refusal| refusal.0.to_string()).unwrap();
    assert_eq!(end.history.acknowledged, end.history.statements.len());
    (disk.files(), end.history)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(word)
}

/// A record in a segment: where it begins and ends, its number, what was durable when it was written, its kind.
struct Record {
    begin: usize,
    end: usize,
    seq: u64,
    barrier: u64,
    kind: u8,
}

impl Record {
    /// Whether it is an insert, a change or a deletion.
    fn is_a_statement(&self) -> bool {
        matches!(self.kind, 1..=3)
    }
}

/// The records of a segment, by the format's document.
fn records(segment: &[u8]) -> Vec<Record> {
    let mut begin = (64 + number::<4>(segment, 48) as usize).next_multiple_of(8);
    let mut records = Vec::new();
    while begin + 8 <= segment.len() && number::<4>(segment, begin + 4) > 0 {
        let end = begin + number::<4>(segment, begin + 4) as usize;
        let (seq, barrier) = (number::<8>(segment, begin + 8), number::<8>(segment, begin + 16));
        records.push(Record { begin, end, seq, barrier, kind: segment[begin + 28] });
        begin = end.next_multiple_of(8);
    }
    records
}

/// The states after 0, 1, 2, … statements that are recorded, with the history up to there.
fn states(history: &History) -> Vec<(State, History)> {
    let mut past = History::new();
    let mut states = vec![(State::of(&past.model), past.clone())];
    for statement in &history.statements {
        if past.push(statement.clone()).is_ok() {
            past.acknowledge(past.statements.len());
            states.push((State::of(&past.model), past.clone()));
        }
    }
    states
}

/// Cuts the last file at every byte, and has zeros in place of what was cut off. All the records that are whole are
/// there, no other, and the store goes on.
fn torn_at_every_byte(files: &Files, history: &History, seed: u64) {
    let (name, bytes) = files.last_key_value().unwrap();
    let records = records(bytes);
    let states = states(history);
    let header = 64 + number::<4>(bytes, 48) as usize;
    let until = records.last().map_or(header, |last| last.end + 16).min(bytes.len());
    for at in (0..=bytes.len()).filter(|at| *at <= until || at.is_multiple_of(61) || *at == bytes.len()) {
        let cut = bytes[..at].to_vec();
        let zeroed = [&cut[..], &vec![0; bytes.len() - at]].concat();
        // A whole header that is not what was written is damage.
        let torn = [("cut", Some(cut)), ("zeros", (at >= header).then_some(zeroed))];
        for (how, torn) in torn.into_iter().filter_map(|(how, torn)| Some((how, torn?))) {
            // A record may end with zeros.
            let whole = |record: &Record| torn.get(record.begin..record.end) == bytes.get(record.begin..record.end);
            let first = records.iter().position(|record| !whole(record)).unwrap_or(records.len());
            let missing = records[first..].iter().filter(|record| record.is_a_statement()).count();
            let (expected, past) = &states[states.len() - 1 - missing];
            let mut files = files.clone();
            let _ = files.insert(name.clone(), torn);
            let disk = Simulated::with_files(seed, &files);
            let state = State::on(&disk).unwrap_or_else(|error| panic!("{how} at {at}: {error}"));
            assert_eq!(&state, expected, "{how} at {at}: {missing} records are missing");
            if at % 16 == 0 || setting("CRASH_RUNS").is_some() {
                let end = Life::live(&disk, at as u64, 8, 0, past.clone(), |_| Action::Proceed);
                let end = end.map_err(|refusal| refusal.0.to_string()).unwrap();
                assert_eq!(verdict(&disk.restart(), &end.history), end.history.statements.len());
            }
        }
    }
}

/// T2.
#[test]
fn rec_3_a_log_cut_at_every_byte_opens_with_its_whole_records() {
    seeds(1, |seed| {
        let (files, history) = files(seed, 50, History::new());
        torn_at_every_byte(&files, &history, seed);
    });
}

/// T10: a text may hold the store's own bytes, even of records that the same store had later in another life.
#[test]
fn fmt_3_copies_of_the_store_in_its_texts_are_no_records() {
    seeds(3, |seed| {
        let (mut files, mut history) = files(seed, 30, History::new());
        for copy in 0..3 {
            let disk = Simulated::with_files(seed, &files);
            let store = open(&disk).unwrap();
            let ahead = Simulated::with_files(seed, &files);
            let _ = Life::live(&ahead, seed + copy, 30, 0, history.clone(), |_| Action::Proceed);
            let (ahead, name) = (ahead.files(), files.keys().next_back().unwrap());
            let records = records(&ahead[name]);
            let piece = records.last().map_or(&[][..], |last| &ahead[name][last.end.saturating_sub(600)..last.end]);
            // The copied records come to lie at their own offsets modulo 8, or beside.
            let text = [&vec![0; copy as usize][..], piece, &[0; 8]].concat();
            let shelf = vec![Value::Bytes(text.into()), Value::Word(1), Value::Word(0)];
            let insert = Statement::Insert(0, shelf);
            let (outcome, seq) = insert.on_store(&store);
            assert_eq!(outcome, history.push(insert));
            assert!(store.wait(seq));
            drop(store);
            files = disk.restart().files();
        }
        history.acknowledge(history.statements.len());
        torn_at_every_byte(&files, &history, seed);
    });
}

/// T3: no flipped bit makes a wrong value. The last batch alone may be taken for one that was never synced; after a
/// normal end that is the end alone.
#[test]
fn rec_4_a_flipped_bit_is_damage_or_changes_nothing() {
    seeds(2, |seed| {
        let (files, history) = files(seed, 50, History::new());
        let states: Vec<State> = states(&history).into_iter().map(|(state, _)| state).collect();
        flip(&files, &states[states.len() - 1..], seed);
        // The same without a normal end.
        let mut files = files;
        let bytes = files.values_mut().next_back().unwrap();
        let records = records(bytes);
        let [.., last, end] = &records[..] else { return };
        assert_eq!(end.kind, 6);
        bytes[end.begin..end.end].fill(0);
        let batch = (last.seq - last.barrier) as usize;
        flip(&files, &states[states.len() - 1 - batch..], seed + 1);
    });
}

/// T3, where compaction has dropped segments.
#[test]
fn rec_4_a_flipped_bit_in_a_compacted_store_is_damage_or_changes_nothing() {
    seeds(1, |seed| {
        let (mut disk, mut history) = (Simulated::new(seed), History::new());
        // The thread that compacts may not have its turn soon.
        while disk.files().is_empty() || disk.files().contains_key("0000000000000001.log") {
            assert!(history.statements.len() < 20_000, "nothing is compacted");
            let end = Life::live(&disk, seed, 200, 1, history, |_| Action::Proceed);
            history = end.map_err(|refusal| refusal.0.to_string()).unwrap().history;
            disk = disk.restart();
        }
        let files = disk.files();
        flip(&files, &[State::of(&history.model)], seed);
    });
}

fn flip(files: &Files, possible: &[State], seed: u64) {
    let mut random = Random(seed.wrapping_mul(0xA076_1D64_78BD_642F) | 1);
    let (mut damaged, mut opened) = (0, 0);
    for (name, bytes) in files {
        let end = records(bytes).last().map_or(0, |record| record.end);
        for bit in 0..bytes.len() * 8 {
            // Of the zeros at the end, less; each if `CRASH_BITS` is set.
            let every = setting("CRASH_BITS").is_some();
            if !every && !random.one_in(if bit / 8 > end { 200 } else { 19 }) {
                continue;
            }
            let mut files = files.clone();
            files.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let disk = Simulated::with_files(seed, &files);
            match State::on(&disk) {
                Ok(state) => {
                    assert!(possible.contains(&state), "bit {bit} of {name}");
                    opened += 1;
                }
                Err(OpenError::Damage(damage)) => {
                    // A file is missing where it is not known any more that it is not needed.
                    let known = damage.offset == 0 || files.contains_key(&damage.file);
                    assert!(damage.offset <= bytes.len() as u64 && known, "{damage}");
                    assert!(open(&disk).is_err());
                    assert_eq!(disk.files(), files, "a refusal changes nothing");
                    damaged += 1;
                }
                Err(error) => panic!("bit {bit} of {name}: {error}"),
            }
        }
    }
    assert!(damaged > 100 && opened > 10, "{damaged} {opened}");
}

#[test]
fn dir_2_foreign_files_are_left_alone() {
    let (mut files, history) = files(1, 20, History::new());
    let foreign = ["notes.txt", "0000000000000009.LOG", "1.log", "lock"];
    for name in foreign {
        let _ = files.insert(name.to_owned(), vec![1, 2, 3]);
    }
    let disk = Simulated::with_files(1, &files);
    let end =
        Life::live(&disk, 5, 20, 0, history, |_| Action::Proceed).map_err(|refusal| refusal.0.to_string()).unwrap();
    assert_eq!(verdict(&disk, &end.history), end.history.statements.len());
    for name in foreign {
        assert_eq!(disk.files()[name], [1, 2, 3]);
    }
    assert!(open(&disk).is_ok());
}
