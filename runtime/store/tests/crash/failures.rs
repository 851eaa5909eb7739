//! Operations that fail: the log ends, tells once, acknowledges nothing more, and loses nothing acknowledged.

use crate::life::{History, Life};
use crate::seeds;
use crate::verdict::verdict;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::OpenError;
use store::disk::simulated::{Action, EIO, ENOSPC, Simulated, Step};

/// Fails the `n`-th of the operations that have one of these names.
fn fail(operations: &'static [&str], n: u64, error: i32) -> impl Fn(&Step) -> Action + Send + Sync + 'static {
    let count = Arc::new(AtomicU64::new(0));
    move |step| {
        let counts = operations.contains(&step.operation);
        if counts && count.fetch_add(1, Ordering::Relaxed) + 1 == n { Action::Fail(error) } else { Action::Proceed }
    }
}

/// Whether the operation was reached. Afterwards the power is cut, or the same disk is used again.
fn fails(seed: u64, operations: &'static [&str], n: u64, error: i32, power: bool) -> bool {
    let disk = Simulated::new(seed + n);
    let (mut history, failed) = match Life::live(&disk, seed, 150, 0, History::new(), fail(operations, n, error)) {
        Ok(end) => {
            assert!(end.failures.len() <= 1);
            for failure in &end.failures {
                assert!(operations.contains(&failure.fault.operation), "{failure:?}");
                assert_eq!(failure.fault.error.raw_os_error(), Some(error));
                // The end is a record, too.
                let unacknowledged = end.unacknowledged..=end.unacknowledged + u64::from(end.unacknowledged == 0);
                assert!(unacknowledged.contains(&failure.unacknowledged), "{failure:?}, {unacknowledged:?}");
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
    disk.script(|_| Action::Proceed);
    let next = if power { disk.restart() } else { disk };
    let count = verdict(&next, &history);
    assert!(failed || count == history.statements.len());
    // What a start has found is durable, also what a failed sync had left in memory only.
    history.cut(count);
    let end = Life::live(&next, seed + 1, 20, 0, history, |_| Action::Proceed);
    let end = end.map_err(|refusal| refusal.0.to_string()).unwrap();
    assert_eq!(verdict(&next.restart(), &end.history), end.history.statements.len());
    failed
}

fn each(seed: u64, operations: &'static [&'static str], error: i32) {
    for power in [true, false] {
        let count = (1..).take_while(|n| fails(seed, operations, *n, error, power)).count();
        assert!(count > 20, "{count} of {operations:?}");
    }
}

/// T4.
#[test]
fn cmt_7_each_sync_may_fail() {
    seeds(2, |seed| each(seed, &["sync"], EIO));
}

/// T5.
#[test]
fn cmt_7_each_write_may_fail() {
    seeds(2, |seed| {
        each(seed, &["write"], ENOSPC);
        each(seed, &["write", "sync", "creation", "renaming", "resizing", "removal", "opening"], EIO);
    });
}
