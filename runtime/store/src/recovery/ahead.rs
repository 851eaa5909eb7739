//! A scan whose reading and checking is done by one thread while another one applies what was read.
//!
//! The visitors get everything in the same order as from a scan on one thread, and so the result is the same: what is
//! read too much, where a visitor objects, is thrown away.

use crate::disk::Disk;
use crate::log::{Error, Found, Kind, Objection, Preamble, Record, Visitor, scan};
use std::mem;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

/// Bytes of bodies that are handed over at once.
const BATCH: usize = 64 << 10;
/// Batches that may wait to be applied.
const WAITING: usize = 8;

/// Gives everything to `check` and then, unless that objects, to `apply`, which this thread alone calls.
pub(super) fn scan_ahead(
    disk: &dyn Disk,
    threads: usize,
    check: &mut (dyn Visitor + Send),
    apply: &mut dyn Visitor,
) -> Result<Found, Error> {
    if threads > 1
        && let Some(found) = on_two_threads(disk, check, apply)
    {
        return found;
    }
    scan(disk, &mut Both(check, apply))
}

/// `None`: the system gives no thread, and nothing was done.
fn on_two_threads(
    disk: &dyn Disk,
    check: &mut (dyn Visitor + Send),
    apply: &mut dyn Visitor,
) -> Option<Result<Found, Error>> {
    let (pieces, read) = mpsc::sync_channel(WAITING);
    let (emptied, spare) = mpsc::channel();
    let mut reader = Reader { check, pieces, spare, batch: Batch::default() };
    let read_all = move || {
        let found = scan(disk, &mut reader);
        // What precedes the end, or damage, is applied all the same.
        let _ = reader.hand_over();
        found
    };
    thread::scope(|scope| {
        let reading = thread::Builder::new().name("reading".into()).spawn_scoped(scope, read_all).ok()?;
        let applied = apply_all(&read, &emptied, apply);
        // The reader stops if it has more.
        drop(read);
        let found = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(applied.and(found))
    })
}

struct Both<'v>(&'v mut dyn Visitor, &'v mut dyn Visitor);

impl Visitor for Both<'_> {
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection> {
        self.0.segment(number, preamble)?;
        self.1.segment(number, preamble)
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        self.0.record(record)?;
        self.1.record(record)
    }
}

enum Piece {
    Segment(u64, Preamble),
    Records(Batch),
}

/// Records of one segment, one after the other.
#[derive(Default)]
struct Batch {
    segment: u64,
    records: Vec<Head>,
    bodies: Vec<u8>,
}

struct Head {
    offset: u64,
    seq: u64,
    kind: Kind,
    len: usize,
}

impl Batch {
    fn push(&mut self, record: &Record<'_>) {
        let Record { segment, offset, seq, kind, body } = *record;
        self.segment = segment;
        self.records.push(Head { offset, seq, kind, len: body.len() });
        self.bodies.extend_from_slice(body);
    }

    fn clear(&mut self) {
        self.records.clear();
        self.bodies.clear();
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let mut rest = self.bodies.as_slice();
        self.records.iter().map(move |head| {
            let (body, behind) = rest.split_at_checked(head.len).unwrap_or_default();
            rest = behind;
            Record { segment: self.segment, offset: head.offset, seq: head.seq, kind: head.kind, body }
        })
    }
}

/// Checks what was read and hands it over.
struct Reader<'v> {
    check: &'v mut (dyn Visitor + Send),
    pieces: SyncSender<Piece>,
    /// Batches that have been applied, to be filled again: fresh memory costs more than what goes into it.
    spare: Receiver<Batch>,
    batch: Batch,
}

impl Reader<'_> {
    fn hand_over(&mut self) -> Result<(), Objection> {
        let next = self.spare.try_recv().unwrap_or_default();
        let batch = mem::replace(&mut self.batch, next);
        self.send(Piece::Records(batch))
    }

    fn send(&self, piece: Piece) -> Result<(), Objection> {
        self.pieces.send(piece).map_err(|_| Objection::Stop)
    }

    /// Waits until everything has been applied: nobody takes the first of these before, and they do not all fit in.
    fn drain(&mut self) -> Result<(), Objection> {
        self.hand_over()?;
        (0..=WAITING).try_for_each(|_| self.send(Piece::Records(Batch::default())))
    }
}

impl Visitor for Reader<'_> {
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection> {
        self.hand_over()?;
        self.check.segment(number, preamble)?;
        self.send(Piece::Segment(number, preamble.clone()))
    }

    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection> {
        self.check.record(record)?;
        if record.body.len() > BATCH {
            // One at a time, so that memory is bounded by the largest record.
            self.drain()?;
        } else if self.batch.bodies.len() + record.body.len() > BATCH {
            self.hand_over()?;
        }
        self.batch.push(record);
        Ok(())
    }
}

/// The error is an objection of `apply`.
fn apply_all(read: &Receiver<Piece>, emptied: &Sender<Batch>, apply: &mut dyn Visitor) -> Result<(), Error> {
    for piece in read {
        match piece {
            Piece::Segment(number, preamble) => {
                apply.segment(number, &preamble).map_err(|objection| objection.at_segment(number))?;
            }
            Piece::Records(mut batch) => {
                for record in batch.records() {
                    apply.record(&record).map_err(|objection| objection.at_record(&record))?;
                }
                if (1..=BATCH).contains(&batch.bodies.len()) {
                    batch.clear();
                    // The reader may be done.
                    let _ = emptied.send(batch);
                }
            }
        }
    }
    Ok(())
}
