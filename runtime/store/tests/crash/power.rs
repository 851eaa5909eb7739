//! Crashes at any operation on the disk, of the machine and of the process, again and again on the same store, also
//! while it is being opened.

use crate::life::{self, History, Life};
use crate::random::Random;
use crate::verdict::{State, verdict};
use crate::{seeds, setting};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use store::OpenError;
use store::disk::simulated::{Action, EIO, Simulated, Step};

/// Statements between two crashes.
const STATEMENTS: usize = 200;

/// Segments that compaction has dropped, and crashes that came while it was at one.
static COMPACTED: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// How a life ends.
#[derive(Clone, Copy)]
enum Crash {
    /// The power is cut around an operation.
    Power(Action),
    /// The process ends, or what it does fails from then on: what it has written can be read, but it is not durable.
    Process,
}

impl Crash {
    fn any(number: u64) -> Crash {
        match number % 4 {
            0 => Crash::Process,
            how => Crash::Power([Action::CutBefore, Action::CutWithin, Action::CutAfter][how as usize - 1]),
        }
    }

    fn at(self, operation: u64) -> impl Fn(&Step) -> Action + Send + Sync + 'static {
        let compacting = AtomicBool::new(false);
        move |step| {
            if thread::current().name() == Some("compaction") {
                compacting.store(step.operation != "removal", Relaxed);
            }
            if step.number == operation && compacting.load(Relaxed) {
                let _ = INTERRUPTED.fetch_add(1, Relaxed);
            }
            match self {
                Crash::Power(action) if step.number == operation => action,
                Crash::Process if step.number >= operation => Action::Fail(EIO),
                _ => Action::Proceed,
            }
        }
    }
}

/// Compaction was met, and was interrupted in the middle.
fn assert_compacted() {
    let (compacted, interrupted) = (COMPACTED.load(Relaxed), INTERRUPTED.load(Relaxed));
    println!("{compacted} segments were compacted, {interrupted} crashes came during that");
    assert!(setting("CRASH_SEED").is_some() || compacted > 100 && interrupted > 10, "{compacted} {interrupted}");
}

/// Goes on with a store until it crashes; the disk as the next start finds it, and what was done.
fn live(disk: &Simulated, seed: u64, ratio: u64, history: History, crash: Crash, at: u64) -> (Simulated, History) {
    // What can be read is what this life begins with; it is durable if the store opens.
    let mut read = history.clone();
    read.cut(verdict(disk, &history));
    let history = match Life::live(disk, seed, STATEMENTS, ratio, read, crash.at(disk.steps() + at)) {
        Ok(end) => {
            let _ = COMPACTED.fetch_add(end.compactions, Relaxed);
            end.history
        }
        Err(refusal) if matches!(refusal.0, OpenError::Fault(_)) => history,
        Err(refusal) => panic!("does not open: {}", refusal.0),
    };
    disk.script(|_| Action::Proceed);
    (if let Crash::Process = crash { disk.clone() } else { disk.restart() }, history)
}

/// The operations of a start that change something: a cut at any other leaves what one at the next of them leaves.
fn changes(disk: &Simulated) -> Vec<u64> {
    let copy = Simulated::with_files(1, &disk.files());
    let changes = Arc::<Mutex<Vec<u64>>>::default();
    let noted = Arc::clone(&changes);
    copy.script(move |step| {
        if !matches!(step.operation, "listing" | "opening" | "size" | "read") {
            noted.lock().unwrap().push(step.number);
        }
        Action::Proceed
    });
    let store = life::open(&copy).unwrap();
    let found = changes.lock().unwrap().clone();
    drop(store);
    found
}

#[test]
fn rec_6_crashes_at_random_operations() {
    seeds(200, |seed| {
        let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
        let mut disk = Simulated::new(seed);
        let mut history = History::new();
        for life in 0..8 {
            // A start has a few dozen operations.
            let most = if random.one_in(3) { 30 } else { 160 };
            let (at, crash) = (1 + random.below(most), Crash::any(random.below(4)));
            (disk, history) = live(&disk, seed + 1000 * life, seed % 2, history, crash, at);
        }
        let _ = verdict(&disk.restart(), &history);
    });
    assert_compacted();
}

#[test]
fn rec_6_crashes_at_every_operation() {
    seeds(2, |seed| {
        let ratio = seed % 2;
        for crash in (0..4).map(Crash::any) {
            let mut at = 1;
            loop {
                let disk = Simulated::new(seed + at);
                let (next, history) = live(&disk, seed, ratio, History::new(), crash, at);
                // More statements, on what the crash has left.
                let (last, history) =
                    live(&next, seed + 1, ratio, history, Crash::Power(Action::CutAfter), u64::MAX >> 1);
                assert_eq!(history.acknowledged, history.statements.len());
                assert_eq!(verdict(&last, &history), history.statements.len());
                if disk.steps() < at {
                    break;
                }
                at += 1;
            }
            assert!(at > 100, "{at} operations");
        }
    });
    assert_compacted();
}

/// T7: starts of a torn store that are cut short in their turn, three deep, come to what an undisturbed one comes to.
#[test]
fn rec_6_starts_are_cut_short_three_deep() {
    seeds(2, |seed| {
        let torn = (1..).find_map(|n| {
            let disk = Simulated::new(seed * 1000 + n);
            let script = move |step: &Step| {
                if step.number > 60 && step.operation == "sync" && n % 3 == step.number % 3 {
                    Action::CutWithin
                } else {
                    Action::Proceed
                }
            };
            let end = Life::live(&disk, seed * 1000 + n, 60, 0, History::new(), script).ok()?;
            let next = disk.restart();
            let left = verdict(&next, &end.history);
            // Some, but not all of what was written is there.
            (left > end.history.acknowledged && left < end.history.statements.len()).then_some(next)
        });
        let disk = torn.unwrap();
        let expected = State::on(&disk).unwrap();
        let (mut starts, mut pending) = (0, vec![(disk, 1)]);
        while let Some((disk, depth)) = pending.pop() {
            for at in changes(&disk) {
                let copy = Simulated::with_files(seed + at, &disk.files());
                copy.script(Crash::any(1 + (seed + at + depth) % 3).at(at));
                assert!(life::open(&copy).is_err());
                let left = copy.restart();
                assert_eq!(State::on(&left).unwrap(), expected, "operation {at}, depth {depth}");
                starts += 1;
                if depth < 3 {
                    pending.push((left, depth + 1));
                }
            }
        }
        assert!(starts > 20, "{starts} starts");
    });
}
