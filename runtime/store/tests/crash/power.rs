//! Loss of power at any operation on the disk, again and again on the same store, also while it is being opened.

use crate::life::{self, History, Life};
use crate::random::Random;
use crate::seeds;
use crate::verdict::{State, verdict};
use std::sync::{Arc, Mutex};
use store::OpenError;
use store::disk::simulated::{Action, Simulated, Step};

/// Statements between two crashes.
const STATEMENTS: usize = 200;

fn cut(at: u64, how: u64) -> impl Fn(&Step) -> Action + Send + Sync + 'static {
    let action = [Action::CutBefore, Action::CutWithin, Action::CutAfter][how as usize % 3];
    move |step| if step.number == at { action } else { Action::Proceed }
}

/// Goes on with a store until the power is cut; the disk as the next start finds it, and the statements on it.
fn live(disk: &Simulated, seed: u64, history: History, at: u64, how: u64) -> (Simulated, History) {
    let mut history = match Life::live(disk, seed, STATEMENTS, history, cut(at, how)) {
        Ok(end) => end.history,
        Err(refusal) => match *refusal {
            (OpenError::Fault(_), history) => history,
            (error, _) => panic!("does not open: {error}"),
        },
    };
    let next = disk.restart();
    let count = verdict(&next, &history);
    history.cut(count);
    (next, history)
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
fn rec_6_power_cuts_at_random_operations() {
    seeds(200, |seed| {
        let mut random = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
        let mut disk = Simulated::new(seed);
        let mut history = History::new();
        for life in 0..6 {
            let at = 1 + random.below(160);
            (disk, history) = live(&disk, seed + 1000 * life, history, at, random.next() >> 8);
        }
    });
}

#[test]
fn rec_6_power_cuts_at_every_operation() {
    seeds(1, |seed| {
        let mut at = 1;
        loop {
            let disk = Simulated::new(seed + at);
            let (next, history) = live(&disk, seed, History::new(), at, at);
            // The same statements once more, on what the crash has left.
            let (_, history) = live(&next, seed + 1, history, u64::MAX, 0);
            assert_eq!(history.acknowledged, history.statements.len());
            if disk.steps() < at {
                break;
            }
            at += 1;
        }
        assert!(at > 100, "{at} operations");
    });
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
            let end = Life::live(&disk, seed * 1000 + n, 60, History::new(), script).ok()?;
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
                copy.script(cut(at, seed + at + depth));
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
