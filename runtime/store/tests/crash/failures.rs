//! Operations that fail: the log ends, tells once, acknowledges nothing more, and loses nothing acknowledged.

use crate::life::{History, Life};
use crate::seeds;
use crate::verdict::verdict;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::OpenError;
use store::disk::simulated::{Action, EIO, ENOSPC, Simulated, Step};

/// Which operation fails: the `n`-th of those that have one of these names.
#[derive(Clone, Copy)]
struct Fails {
    operations: &'static [&'static str],
    n: u64,
    error: i32,
}

const ALL: &[&str] = &["write", "sync", "creation", "renaming", "resizing", "removal", "opening"];

/// Whether the operation was reached. Afterwards the power is cut, or the same disk is used again.
fn reached(seed: u64, fails: Fails, ratio: u64, power: bool) -> bool {
    let Fails { operations, n, error } = fails;
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let script = move |step: &Step| {
        let counts = operations.contains(&step.operation);
        if counts && counted.fetch_add(1, Ordering::Relaxed) + 1 == n { Action::Fail(error) } else { Action::Proceed }
    };
    let disk = Simulated::new(seed + n);
    let (mut history, failed) = match Life::live(&disk, seed, 150, ratio, History::new(), script) {
        Ok(end) => {
            assert!(end.failures.len() <= 1);
            for failure in &end.failures {
                assert!(operations.contains(&failure.fault.operation), "{failure:?}");
                assert_eq!(failure.fault.error.raw_os_error(), Some(error));
                // The end is a record, too, and compaction has some.
                let least = end.unacknowledged;
                let most = if ratio == 0 { least + u64::from(least == 0) } else { u64::MAX };
                assert!((least..=most).contains(&failure.unacknowledged), "{failure:?}, {least}");
            }
            (end.history, !end.failures.is_empty())
        }
        Err(refusal) => match *refusal {
            (OpenError::Fault(fault), history) => {
                assert!(operations.contains(&fault.operation), "{fault:?}");
                (history, true)
            }
            (error, _) => panic!("{error}"),
        },
    };
    let reached = count.load(Ordering::Relaxed) >= n;
    // A compaction may fail without anything else.
    assert!(reached == failed || ratio > 0 && !failed);
    disk.script(|_| Action::Proceed);
    let next = if power { disk.restart() } else { disk };
    let count = verdict(&next, &history);
    assert!(failed || count == history.statements.len());
    // What a start has found is durable, also what a failed sync had left in memory only.
    history.cut(count);
    let end = Life::live(&next, seed + 1, 20, ratio, history, |_| Action::Proceed);
    let end = end.map_err(|refusal| refusal.0.to_string()).unwrap();
    assert_eq!(verdict(&next.restart(), &end.history), end.history.statements.len());
    reached
}

fn each(seed: u64, operations: &'static [&'static str], error: i32, ratio: u64) {
    for power in [true, false] {
        let count = (1..).take_while(|n| reached(seed, Fails { operations, n: *n, error }, ratio, power)).count();
        assert!(count > 20, "{count} of {operations:?}");
    }
}

/// T4.
#[test]
fn cmt_7_each_sync_may_fail() {
    seeds(2, |seed| each(seed, &["sync"], EIO, 0));
}

/// T5.
#[test]
fn cmt_7_each_write_may_fail() {
    seeds(2, |seed| {
        each(seed, &["write"], ENOSPC, 0);
        each(seed, ALL, EIO, 0);
    });
}

/// While compaction is at work: what it fails at is tried again, unless the log itself cannot be written.
#[test]
fn cpt_5_each_operation_may_fail_beside_compaction() {
    seeds(2, |seed| each(seed, ALL, EIO, 1));
}
