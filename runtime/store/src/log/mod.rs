//! The log of a store. Statements stage records, which fixes their order; one thread makes them durable, a batch at a
//! time, and tells. Of the records it knows only what docs/store-format.md says of all stores: bodies are others'.
//!
//! A store is opened by `scan`, which changes nothing, and `Log::start`, which goes on where the scan has found the
//! end.

mod commit;
mod frame;
mod scan;
mod segment;
mod stats;
#[cfg(test)]
mod tests;
mod window;

pub use frame::Kind;
pub(crate) use frame::record_size;
pub use scan::{Damage, Error, Extent, Found, Objection, Record, Visitor, scan};
pub use segment::Preamble;
pub(crate) use segment::is_file;
pub use stats::Stats;

use crate::disk::{Disk, Fault};
use crate::worker::Worker;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a log needs to know of its store, and whom it tells.
pub struct Setup {
    /// The preamble of the next segment, counters as the scan's records have left them. If the schema is not that of the
    /// last segment, a new one is begun at once.
    pub preamble: Preamble,
    /// Bytes of records after which a new segment is begun.
    pub segment_bytes: u64,
    /// Called by the log's thread when everything up to a sequence number is durable. Must not wait for the log.
    pub on_durable: Box<dyn Fn(u64) + Send>,
    /// Called by the log's thread when a segment is complete and another one begun. Must not wait for the log.
    pub on_segment: Box<dyn Fn() + Send>,
    /// Called by the log's thread, once, after which nothing becomes durable any more. Must not wait for the log.
    pub on_failure: Box<dyn FnOnce(Failure) + Send>,
}

/// The log cannot be written any more.
#[derive(Debug)]
pub struct Failure {
    pub fault: Fault,
    /// How many staged records are not known to be durable.
    pub unacknowledged: u64,
}

/// The log of an open store.
pub struct Log {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    worker: Worker,
}

/// What the log's thread and all others have in common.
struct Shared {
    staging: Mutex<Staging>,
    /// The thread has something to do.
    work: Condvar,
    /// The thread has done something.
    progress: Condvar,
    durable: AtomicU64,
}

struct Staging {
    /// Records that the thread has not taken yet, and how many bytes of it are whole ones: a body may have panicked.
    records: Vec<u8>,
    whole: usize,
    /// The sequence number of the next record.
    next: u64,
    phase: Phase,
    /// Whether the thread waits for work.
    idle: bool,
    /// How many wait for progress.
    waiting: usize,
    /// Calls of `roll`, and how many of them are done.
    rolls_asked: u64,
    rolls_done: u64,
    segments: Vec<Extent>,
    meter: stats::Meter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// `end` is to be written once nothing is staged.
    Closing,
    /// Nothing is written any more: after `end`, after a failure, or because the log is being dropped.
    Over,
}

/// What the thread takes at once.
struct Work {
    records: Vec<u8>,
    /// Calls of `roll` up to this one are to be done behind the records.
    rolls: u64,
    /// Whether `end` is the record.
    last: bool,
}

impl Log {
    /// Goes on with a log as a scan has found it. What the scan found is durable when this returns.
    pub fn start(disk: Arc<dyn Disk>, mut found: Found, setup: Setup) -> Result<Log, Fault> {
        scan::settle(&*disk, &mut found)?;
        let shared = Arc::new(Shared {
            staging: Mutex::new(Staging {
                records: Vec::new(),
                whole: 0,
                next: found.last + 1,
                phase: Phase::Open,
                idle: false,
                waiting: 0,
                rolls_asked: 0,
                rolls_done: 0,
                segments: found.segments,
                meter: stats::Meter::default(),
            }),
            work: Condvar::new(),
            progress: Condvar::new(),
            durable: AtomicU64::new(found.last),
        });
        let commit = commit::Commit::new(Arc::clone(&disk), Arc::clone(&shared), found.tail, setup)?;
        let worker = Worker::start("log", move || commit.run())?;
        Ok(Log { disk, shared, worker })
    }

    /// Adds a record with the body that `body` appends; its sequence number. It becomes durable in time, or never if the
    /// log has failed or was closed.
    pub fn stage(&self, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let mut staging = self.shared.lock();
        let seq = staging.put(kind, body);
        self.shared.wake(staging);
        seq
    }

    /// Everything up to this sequence number is durable.
    pub fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// Blocks until a record is durable; false if it will never be.
    pub fn wait(&self, seq: u64) -> bool {
        let _staging = self.shared.wait(|_| self.durable() >= seq);
        self.durable() >= seq
    }

    /// Begins a new segment, blocks until it is there, and gives its number: records staged before lie in segments
    /// below. None if the log has failed or was closed.
    pub fn roll(&self) -> Option<u64> {
        let mut staging = self.shared.lock();
        staging.rolls_asked += 1;
        let call = staging.rolls_asked;
        self.shared.wake(staging);
        let staging = self.shared.wait(|staging| staging.rolls_done >= call);
        if staging.rolls_done < call {
            return None;
        }
        staging.segments.last().map(|extent| extent.number)
    }

    /// The segments that are needed, ascending.
    pub fn segments(&self) -> Vec<Extent> {
        self.shared.lock().segments.clone()
    }

    /// Bytes of the records in the segments that are needed.
    pub fn size(&self) -> u64 {
        self.shared.lock().segments.iter().map(|extent| extent.bytes - extent.begin).sum()
    }

    /// How many of the segments that are needed are complete.
    pub fn complete(&self) -> usize {
        self.shared.lock().segments.len().saturating_sub(1)
    }

    /// Reads the oldest segment that is needed, if it is complete: it does not change any more. Gives its number.
    pub fn read_oldest(&self, visitor: &mut dyn Visitor) -> Result<Option<u64>, Error> {
        let (oldest, until) = match self.shared.lock().segments.as_slice() {
            [oldest, next, ..] => (oldest.number, next.first),
            _ => return Ok(None),
        };
        scan::read_segment(&*self.disk, oldest, until, visitor)?;
        Ok(Some(oldest))
    }

    /// Says durably that no record of a segment below `oldest` is needed, and removes those segments. What a fault or a
    /// crash leaves of them is removed at the next start. Without effect if the log has failed or was closed.
    pub fn discard_below(&self, oldest: u64) -> Result<(), Fault> {
        let seq = self.stage(Kind::Oldest, |body| body.extend_from_slice(&oldest.to_le_bytes()));
        if !self.wait(seq) {
            return Ok(());
        }
        let unneeded: Vec<Extent> =
            self.shared.lock().segments.extract_if(.., |extent| extent.number < oldest).collect();
        for extent in unneeded {
            self.disk.remove(&segment::name(extent.number))?;
        }
        Ok(())
    }

    pub fn stats(&self) -> Stats {
        self.shared.lock().meter.stats()
    }

    /// Makes durable what is staged, writes that this was a normal end, and ends the log's thread.
    pub fn close(&self) {
        let mut staging = self.shared.lock();
        if staging.phase == Phase::Open {
            staging.phase = Phase::Closing;
        }
        self.shared.wake(staging);
        self.worker.join();
    }
}

/// A log that was not closed ends as a crash would end it: what is staged is lost.
impl Drop for Log {
    fn drop(&mut self) {
        let mut staging = self.shared.lock();
        staging.phase = Phase::Over;
        self.shared.wake(staging);
        self.worker.join();
    }
}

impl Staging {
    /// Adds a record, unless nothing is written any more.
    fn put(&mut self, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let seq = self.next;
        if self.phase != Phase::Over {
            self.records.truncate(self.whole);
            frame::put(&mut self.records, seq, kind, body);
            self.whole = self.records.len();
        }
        self.next += 1;
        seq
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that the thread looks at what has changed.
    fn wake(&self, mut staging: MutexGuard<'_, Staging>) {
        let idle = mem::take(&mut staging.idle);
        drop(staging);
        if idle {
            self.work.notify_one();
        }
    }

    /// Waits until something is the case or nothing is written any more.
    fn wait(&self, done: impl Fn(&Staging) -> bool) -> MutexGuard<'_, Staging> {
        let mut staging = self.lock();
        staging.waiting += 1;
        while !done(&staging) && staging.phase != Phase::Over {
            staging = self.progress.wait(staging).unwrap_or_else(PoisonError::into_inner);
        }
        staging.waiting -= 1;
        staging
    }

    /// Changes what others may be waiting for.
    fn advance(&self, change: impl FnOnce(&mut Staging)) {
        let mut staging = self.lock();
        change(&mut staging);
        if staging.waiting > 0 {
            self.progress.notify_all();
        }
    }

    /// Waits for work and takes all there is, leaving `spare` to be filled. None if nothing is to be written any more.
    fn take(&self, spare: Vec<u8>) -> Option<Work> {
        let mut staging = self.lock();
        let nothing = |staging: &Staging| staging.whole == 0 && staging.rolls_asked == staging.rolls_done;
        while staging.phase == Phase::Open && nothing(&staging) {
            staging.idle = true;
            staging = self.work.wait(staging).unwrap_or_else(PoisonError::into_inner);
        }
        if staging.phase == Phase::Over {
            return None;
        }
        let last = nothing(&staging);
        if last {
            let _ = staging.put(Kind::End, |_| ());
            staging.phase = Phase::Over;
        }
        let mut records = mem::replace(&mut staging.records, spare);
        records.truncate(mem::take(&mut staging.whole));
        Some(Work { records, rolls: staging.rolls_asked, last })
    }
}
