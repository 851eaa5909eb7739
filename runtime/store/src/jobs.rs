//! Work that is shared out among threads. What comes of it does not depend on how many there are.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads the machine runs at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The results of jobs 0 to `count`, in this order. A panic of a job goes on here.
pub(crate) fn run<T: Send>(threads: usize, count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = threads.min(count);
    if threads < 2 {
        return (0..count).map(job).collect();
    }
    let next = AtomicUsize::new(0);
    let work = &|| {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|n| *n < count);
        numbers.map(|number| (number, job(number))).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().name("recovery".into()).spawn_scoped(scope, work);
        // Where there are no more threads, those that there are do all.
        let others: Vec<_> = (1..threads).filter_map(|n| spawn(n).ok()).collect();
        let mut results: Vec<(usize, T)> = work();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
