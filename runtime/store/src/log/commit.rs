//! The log's thread. It takes everything that is staged, writes it to the last segment, syncs once, and tells; there is
//! no timer and no size of a batch. Room is made ready while nobody waits for it: zeros ahead of the records, so that
//! a sync need not write the file's metadata, and the next segment once one is full.

use super::frame::{self, Id, Kind};
use super::scan::{Extent, Tail, named};
use super::segment::{self, Header, Segment};
use super::{Failure, Phase, Setup, Shared, Work};
use crate::bytes::Reader;
use crate::disk::{Disk, Fault};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Zeros that are written ahead at once, at most.
const RESERVE: u64 = 1 << 20;
/// Most bytes that the staging buffer keeps while it is empty.
const SPARE: usize = 4 << 20;

pub(super) struct Commit {
    disk: Arc<dyn Disk>,
    shared: Arc<Shared>,
    segment: Segment,
    /// Where the records end, and where the zeros behind them do.
    end: u64,
    reserved: u64,
    /// The highest durable sequence number.
    durable: u64,
    /// The first segment that is needed.
    oldest: u64,
    /// Its counters are those after the last record written.
    setup: Setup,
}

impl Commit {
    pub fn new(disk: Arc<dyn Disk>, shared: Arc<Shared>, tail: Option<Tail>, setup: Setup) -> Result<Commit, Fault> {
        let durable = shared.durable.load(Ordering::Relaxed);
        let Some(Tail { segment, oldest, end, torn, .. }) = tail else {
            let header = Header { id: random_id()?, number: 1, first: 1, oldest: 1 };
            let segment = create(&*disk, &shared, header, &setup)?;
            let (end, reserved) = (segment.records, segment.size);
            return Ok(Commit { disk, shared, segment, end, reserved, durable, oldest: 1, setup });
        };
        let reserved = if torn { end } else { segment.size.max(end) };
        let same = segment.preamble.schema == setup.preamble.schema;
        let mut commit = Commit { disk, shared, segment, end, reserved, durable, oldest, setup };
        if same {
            commit.prepare()?;
        } else {
            commit.roll()?;
        }
        Ok(commit)
    }

    pub fn run(mut self) {
        let mut spare = Vec::new();
        while let Some(mut work) = self.shared.take(spare) {
            if let Err(fault) = self.commit(&mut work) {
                return self.fail(fault);
            }
            spare = work.records;
            spare.clear();
            spare.shrink_to(SPARE);
        }
    }

    fn commit(&mut self, work: &mut Work) -> Result<(), Fault> {
        self.write(&mut work.records)?;
        if work.last { Ok(()) } else { self.prepare() }
    }

    /// Makes records durable: as one batch, unless they do not fit into the segment, which is not full.
    fn write(&mut self, mut records: &mut [u8]) -> Result<(), Fault> {
        while !records.is_empty() {
            let (count, bytes) = self.seal(records);
            debug_assert!(count > 0, "a full segment");
            let (batch, rest) = records.split_at_mut(bytes);
            self.segment.file.write_at(self.end, batch)?;
            let start = Instant::now();
            self.segment.file.sync()?;
            let took = start.elapsed();
            self.end += batch.len() as u64;
            self.reserved = self.reserved.max(self.end);
            self.durable += count;
            self.shared.advance(|staging| {
                self.shared.durable.store(self.durable, Ordering::Release);
                staging.meter.batch(count, batch.len() as u64, took);
                if let Some(extent) = staging.segments.last_mut() {
                    extent.bytes = self.end;
                }
            });
            (self.setup.on_durable)(self.durable);
            records = rest;
            if !records.is_empty() {
                self.roll()?;
            }
        }
        Ok(())
    }

    /// Completes as many records as the segment still takes; how many, and their bytes.
    fn seal(&mut self, records: &mut [u8]) -> (u64, usize) {
        let seal = self.segment.seal();
        let limit = self.limit();
        let (mut count, mut bytes) = (0, 0);
        let mut rest = records;
        while self.end + (bytes as u64) < limit
            && let Some((record, behind)) = frame::split_first(rest)
        {
            if let Some((kind, body)) = seal.close(self.end + bytes as u64, self.durable, record) {
                note(kind, body, &mut self.oldest, &mut self.setup.preamble.counters);
            }
            count += 1;
            bytes += record.len();
            rest = behind;
        }
        (count, bytes)
    }

    /// No record begins behind this place. A segment takes one record at least.
    fn limit(&self) -> u64 {
        self.segment.records + self.setup.segment_bytes.max(1)
    }

    /// Makes room for the next batch: afterwards the segment is not full.
    fn prepare(&mut self) -> Result<(), Fault> {
        let limit = self.limit();
        if self.end >= limit {
            return self.roll();
        }
        let reserve = limit.min(self.end + RESERVE);
        if self.reserved < limit.min(self.end + RESERVE / 2) {
            segment::zero(&*self.segment.file, self.reserved, reserve)?;
            self.reserved = reserve;
        }
        Ok(())
    }

    /// Begins a new segment. Everything before is durable.
    fn roll(&mut self) -> Result<(), Fault> {
        let Header { id, number, .. } = self.segment.header;
        let header = Header { id, number: number + 1, first: self.durable + 1, oldest: self.oldest };
        self.segment = create(&*self.disk, &self.shared, header, &self.setup)?;
        self.end = self.segment.records;
        self.reserved = self.segment.size;
        (self.setup.on_segment)();
        Ok(())
    }

    /// Nothing is acknowledged from here on, and nothing tried again: a failed sync may have dropped what was written.
    fn fail(self, fault: Fault) {
        let mut unacknowledged = 0;
        self.shared.advance(|staging| {
            staging.phase = Phase::Over;
            staging.records = Vec::new();
            unacknowledged = staging.next - 1 - self.durable;
        });
        (self.setup.on_failure)(Failure { fault, unacknowledged });
    }
}

/// Makes a segment and adds it to those that are known.
fn create(disk: &dyn Disk, shared: &Shared, header: Header, setup: &Setup) -> Result<Segment, Fault> {
    let segment = segment::create(disk, header, setup.preamble.clone(), RESERVE.min(setup.segment_bytes))?;
    let Header { number, first, .. } = segment.header;
    shared.advance(|staging| {
        staging.segments.push(Extent { number, first, begin: segment.records, bytes: segment.records });
        staging.meter.segment();
    });
    Ok(segment)
}

/// Keeps up with a record what the header and preamble of the next segment say.
fn note(kind: u8, body: &[u8], oldest: &mut u64, counters: &mut [u64]) {
    match Kind::from_byte(kind) {
        Some(Kind::Insert) => {
            let mut fields = Reader(body);
            if let (Some(table), Some(id)) = (fields.u16(), fields.u64())
                && let Some(counter) = counters.get_mut(usize::from(table))
            {
                *counter = (*counter).max(id.saturating_add(1));
            }
        }
        Some(Kind::Oldest) => *oldest = named(body).unwrap_or(*oldest),
        _ => {}
    }
}

fn random_id() -> Result<Id, Fault> {
    let mut id = Id::default();
    let filled = getrandom::fill(&mut id);
    filled.map_err(|error| Fault {
        operation: "random number",
        path: "log".into(),
        error: io::Error::other(error.to_string()),
    })?;
    Ok(id)
}
