//! Compaction: keeps the log near the size of the rows, while statements go on (tables specification 9.2).
//!
//! The oldest segment is read once more. The rows whose last whole record lies in it are appended anew, as *keep*
//! records; when those are durable, nothing needs the segment any longer, and it is dropped. What the log has in later
//! segments about a row that was dropped before is of no use to anyone: see `recovery`. A crash at any moment leaves the
//! segment or what stands for it, and a compaction that ends halfway has only made the log longer.
//!
//! A step holds the lock of one table. No lock is held while the thread waits for the log.

use crate::bytes::Reader;
use crate::disk::Fault;
use crate::lock::Writing;
use crate::log::{self, Error, Kind, Log, Objection, Preamble, Record, Visitor};
use crate::record;
use crate::recovery::{damage, schema_in};
use crate::schema::ClassName;
use crate::store::{Seq, Slot, live_bytes};
use crate::table::Table;
use crate::worker::Worker;
use abi::desc::Shapes;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most rows of a step, and how long it holds its lock at most.
const ROWS: usize = 256;
const HOLD: Duration = Duration::from_millis(1);
/// Bytes of records that may wait to become durable, but for the last one.
const UNSYNCED: u64 = 256 << 10;
/// With more bytes than this that no row needs, the log is too large whatever the settings say.
const WASTE: u64 = 1 << 30;

/// When to compact.
pub struct Compaction {
    /// Bytes of records that the log may hold in any case.
    pub floor: u64,
    /// How many times the bytes of live rows the log may hold; 0 turns compaction off.
    pub ratio: u64,
    /// Told why a compaction has failed. It changed nothing and is tried again once the log has grown by `floor`.
    pub on_failure: Box<dyn Fn(&Error) + Send>,
}

impl Compaction {
    /// By the bytes of the log's records and those that it would take if it held each row once.
    fn is_due(&self, log: u64, live: u64) -> bool {
        let most = live.saturating_mul(self.ratio).max(self.floor);
        log > most || log.saturating_sub(live) > WASTE
    }
}

/// Wakes the thread.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<Rung>,
    rung: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Rung {
    #[default]
    Silent,
    Look,
    Stop,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be something to do.
    pub fn ring(&self) {
        let mut state = self.lock();
        if *state == Rung::Silent {
            *state = Rung::Look;
        }
        self.rung.notify_one();
    }

    fn stop(&self) {
        *self.lock() = Rung::Stop;
        self.rung.notify_one();
    }

    fn is_stopped(&self) -> bool {
        *self.lock() == Rung::Stop
    }

    /// Waits until there may be something to do; false at the end.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        while *state == Rung::Silent {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if *state == Rung::Look {
            *state = Rung::Silent;
        }
        *state != Rung::Stop
    }
}

/// What has been done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub segments: u64,
    /// Bytes of their records, and the time that dropping them took.
    pub read: u64,
    pub busy: Duration,
    /// Bytes of the records that this took.
    pub appended: u64,
    /// The longest time that a step has held its lock.
    pub pause: Duration,
}

/// The thread, which ends with this.
pub(crate) struct Compactor {
    bell: Arc<Bell>,
    totals: Arc<Mutex<Totals>>,
    worker: Worker,
}

impl Compactor {
    /// `bell` rings when a segment of the log is complete.
    pub fn start(
        compaction: Compaction,
        bell: Arc<Bell>,
        shapes: &Shapes,
        slots: Arc<[Slot]>,
        log: Arc<Log>,
    ) -> Result<Option<Compactor>, Fault> {
        if compaction.ratio == 0 {
            return Ok(None);
        }
        let totals = Arc::<Mutex<Totals>>::default();
        let logged = slots.iter().enumerate().filter(|(_, slot)| slot.logged.is_some());
        let tables = logged.map(|(number, slot)| (ClassName::of(shapes, slot.desc.class), number)).collect();
        let work =
            Work { compaction, bell: Arc::clone(&bell), totals: Arc::clone(&totals), tables, slots, log, resume: 0 };
        // The log may be too large already.
        bell.ring();
        let worker = Worker::start("compaction", move || work.run())?;
        Ok(Some(Compactor { bell, totals, worker }))
    }

    /// Ends the thread, halfway through a segment if need be.
    pub fn stop(&self) {
        self.bell.stop();
        self.worker.join();
    }

    pub fn totals(&self) -> Totals {
        *lock(&self.totals)
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(totals: &Mutex<Totals>) -> MutexGuard<'_, Totals> {
    totals.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Work {
    compaction: Compaction,
    bell: Arc<Bell>,
    totals: Arc<Mutex<Totals>>,
    /// The stored tables by the names of their classes: segments have numbers of their own for them.
    tables: HashMap<ClassName, usize>,
    slots: Arc<[Slot]>,
    log: Arc<Log>,
    /// Bytes that statements will have written by the time of the next attempt.
    resume: u64,
}

impl Work {
    fn run(mut self) {
        while self.bell.wait() {
            while self.is_due() && self.written() >= self.resume {
                // If it is due afterwards all the same, this has failed or all is compacted that was there now.
                self.resume = self.written().saturating_add(self.compaction.floor.max(1));
                match self.compact() {
                    Ok(()) => {}
                    Err(Error::Stopped) => return,
                    Err(error) => (self.compaction.on_failure)(&error),
                }
            }
            if !self.is_due() {
                self.resume = 0;
            }
        }
    }

    /// Bytes that statements have written.
    fn written(&self) -> u64 {
        self.log.stats().bytes.saturating_sub(lock(&self.totals).appended)
    }

    fn is_due(&self) -> bool {
        self.compaction.is_due(self.log.size(), live_bytes(&self.slots))
    }

    /// Drops segments until the log is small enough, none that was begun meanwhile.
    fn compact(&self) -> Result<(), Error> {
        for _ in 0..self.log.complete() {
            if !self.is_due() {
                break;
            }
            self.drop_oldest()?;
        }
        Ok(())
    }

    fn drop_oldest(&self) -> Result<(), Error> {
        let start = Instant::now();
        let mut sweep = Sweep::new(self);
        let Some(oldest) = self.log.read_oldest(&mut sweep)? else { return Ok(()) };
        sweep.keep_found().map_err(|_| Error::Stopped)?;
        self.log.discard_below(oldest + 1)?;
        let mut totals = lock(&self.totals);
        totals.segments += 1;
        totals.read += sweep.read;
        totals.busy += start.elapsed();
        totals.appended += log::record_size(size_of_val(&oldest));
        Ok(())
    }
}

/// A record that held all of a row when it was written: table, id, number.
type Whole = (usize, u64, Seq);

/// Reads a segment and keeps its rows.
struct Sweep<'w> {
    work: &'w Work,
    /// The tables by their numbers in the segment, if the program has them.
    tables: Vec<Option<usize>>,
    /// Bytes of the records that were read.
    read: u64,
    /// What was read and not looked at yet.
    found: Vec<Whole>,
    /// Bytes appended and not waited for, and the number of the last record.
    unsynced: u64,
    last: Seq,
}

impl Visitor for Sweep<'_> {
    fn segment(&mut self, _number: u64, preamble: &Preamble) -> Result<(), Objection> {
        let schema = schema_in(preamble)?;
        self.tables = schema.tables.iter().map(|table| self.work.tables.get(&table.name).copied()).collect();
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        if self.work.bell.is_stopped() {
            return Err(Objection::Stop);
        }
        self.read += log::record_size(record.body.len());
        if !matches!(record.kind, Kind::Insert | Kind::Keep) {
            return Ok(());
        }
        let Some((number, id)) = record::read_row_id(&mut Reader(record.body)) else {
            return damage("no row is named");
        };
        let Some(table) = self.tables.get(number) else { return damage("there is no such table") };
        self.found.extend(table.map(|table| (table, id, record.seq)));
        if self.found.len() < ROWS { Ok(()) } else { self.keep_found() }
    }
}

impl Sweep<'_> {
    fn new(work: &Work) -> Sweep<'_> {
        let found = Vec::with_capacity(ROWS);
        Sweep { work, tables: Vec::new(), read: 0, found, unsynced: 0, last: 0 }
    }

    fn keep_found(&mut self) -> Result<(), Objection> {
        let mut found = std::mem::take(&mut self.found);
        // By tables.
        found.sort_unstable();
        let mut rest = found.as_slice();
        while let Some((table, ..)) = rest.first() {
            let done = self.step(*table, rest);
            rest = rest.get(done..).unwrap_or_default();
            if self.unsynced >= UNSYNCED {
                self.sync()?;
            }
        }
        found.clear();
        self.found = found;
        Ok(())
    }

    /// Keeps rows of a table, which are the first of `found`; how many it has looked at, one at least.
    fn step(&mut self, number: usize, found: &[Whole]) -> usize {
        let work = self.work;
        let Some(slot) = work.slots.get(number) else { return found.len() };
        let Some(mut locks) = Writing::new(&work.slots, number, &[]) else { return found.len() };
        let (start, before) = (Instant::now(), self.unsynced);
        let mut done = 0;
        for (_, id, seq) in found.iter().take_while(|(table, ..)| *table == number) {
            self.keep(slot, locks.own(), *id, *seq);
            done += 1;
            if self.unsynced >= UNSYNCED || start.elapsed() >= HOLD {
                break;
            }
        }
        drop(locks);
        let took = start.elapsed();
        let mut totals = lock(&work.totals);
        totals.pause = totals.pause.max(took);
        totals.appended += self.unsynced - before;
        done
    }

    /// Appends a row if the record `seq` is the last that holds all of it.
    fn keep(&mut self, slot: &Slot, table: &mut Table, id: u64, seq: Seq) {
        let (Some(number), Some(row)) = (slot.logged, table.rows.get(id).filter(|row| row.base() == seq)) else {
            return;
        };
        let cells = row.cells().zip(slot.desc.columns.iter().map(|column| column.nullable));
        self.last = self.work.log.stage(Kind::Keep, |body| record::put_row(body, number, id, cells));
        self.unsynced += row.record_size();
        table.rows.set_base(id, self.last);
    }

    /// Waits until what was appended is durable: no statement waits for more of it than this.
    fn sync(&mut self) -> Result<(), Objection> {
        self.unsynced = 0;
        if self.work.log.wait(self.last) { Ok(()) } else { Err(Objection::Stop) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpt_4_by_the_settings_or_by_a_gibibyte_of_waste() {
        let compaction = Compaction { floor: 100, ratio: 3, on_failure: Box::new(|_| ()) };
        for (log, live, due) in [
            (100, 0, false),
            (101, 0, true),
            (101, 33, true),
            (120, 40, false),
            (121, 40, true),
            (3 << 30, 2 << 30, false),
            ((3 << 30) + 1, 2 << 30, true),
            (u64::MAX, u64::MAX / 2, true),
        ] {
            assert_eq!(compaction.is_due(log, live), due, "{log} {live}");
        }
    }
}
