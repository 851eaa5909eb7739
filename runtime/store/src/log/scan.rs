//! Reads the log: which segments there are, every record of those that are needed, in order, and where the log ends.
//! Nothing is changed on the way; `settle` does that once everything has been checked.
//!
//! Any bytes may be in the files. No length is used before it was checked against the file, and memory is bounded by
//! the largest record.

use super::frame::Kind;
use super::segment::{self, Preamble, Segment};
use super::window::{Walked, Window, behind, walk};
use crate::disk::{Disk, Fault};
use std::fmt;

/// Bytes that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file in the store's directory.
    pub file: String,
    pub offset: u64,
    pub reason: String,
}

impl Damage {
    pub(crate) fn new(segment: u64, offset: u64, reason: impl Into<String>) -> Damage {
        Damage { file: segment::name(segment), offset, reason: reason.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at offset {}: {}", self.file, self.offset, self.reason)
    }
}

/// Why a scan ended early.
#[derive(Debug)]
pub enum Error {
    Fault(Fault),
    Damage(Damage),
    /// The visitor wanted no more.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fault(fault) => fault.fmt(f),
            Error::Damage(damage) => damage.fmt(f),
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Fault(fault)
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Error {
        Error::Damage(damage)
    }
}

/// A record and its place.
#[derive(Clone, Copy, Debug)]
pub struct Record<'r> {
    pub segment: u64,
    pub offset: u64,
    pub seq: u64,
    pub kind: Kind,
    pub body: &'r [u8],
}

/// What a visitor has against a record or a preamble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It cannot be decoded or applied, for this reason.
    Damage(String),
    /// The scan is to end; the visitor knows why.
    Stop,
}

impl Objection {
    pub(crate) fn at_segment(self, number: u64) -> Error {
        self.at(number, segment::HEADER as u64)
    }

    pub(crate) fn at_record(self, record: &Record<'_>) -> Error {
        self.at(record.segment, record.offset)
    }

    fn at(self, segment: u64, offset: u64) -> Error {
        match self {
            Objection::Damage(reason) => Damage::new(segment, offset, reason).into(),
            Objection::Stop => Error::Stopped,
        }
    }
}

/// Gets what a scan finds, in order.
pub trait Visitor {
    /// A segment begins; its preamble holds for the records that follow.
    fn segment(&mut self, number: u64, preamble: &Preamble) -> Result<(), Objection>;
    fn record(&mut self, record: &Record<'_>) -> Result<(), Objection>;
}

/// A segment that holds records which are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub number: u64,
    /// Sequence number of its first record.
    pub first: u64,
    /// Bytes before its records, and up to their end.
    pub begin: u64,
    pub bytes: u64,
}

/// The log as a scan has found it.
#[derive(Default)]
pub struct Found {
    /// Ascending; none if the store is new.
    pub segments: Vec<Extent>,
    /// The highest sequence number; 0 if the store is new.
    pub last: u64,
    /// Whether the last record says that the end was a normal one.
    pub ended: bool,
    /// Bytes of the torn tail.
    pub torn: u64,
    /// Files that are not needed any more or never were.
    pub leftovers: Vec<String>,
    pub(super) tail: Option<Tail>,
}

/// The last segment and its end.
pub(super) struct Tail {
    pub segment: Segment,
    /// The first segment that is needed.
    pub oldest: u64,
    /// Where the last batch begins and where the records end.
    pub batch: u64,
    pub end: u64,
    /// Whether anything but zeros is behind the end.
    pub torn: bool,
}

/// Reads the log and gives its records to `visitor`.
pub fn scan(disk: &dyn Disk, visitor: &mut dyn Visitor) -> Result<Found, Error> {
    let names = disk.list()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    let mut leftovers: Vec<String> = names.into_iter().filter(|name| segment::is_tmp(name)).collect();
    let mut torn = 0;
    if let Some(last) = numbers.last().copied()
        && let Some(size) = short(disk, last)?
    {
        // It holds no record. The first one of a store can be missing, any other follows one that is complete.
        let _ = numbers.pop();
        if numbers.last().copied().unwrap_or(0) != last - 1 {
            return Err(missing(last - 1));
        }
        leftovers.push(segment::name(last));
        torn += size;
    }
    let Some(&last) = numbers.last() else { return Ok(Found { torn, leftovers, ..Found::default() }) };
    let Newest { oldest, window: mut newest } = Newest::read(disk, &numbers, last)?;
    leftovers.extend(numbers.iter().filter(|number| **number < oldest).map(|number| segment::name(*number)));

    let mut segments = Vec::new();
    let mut current = open(disk, &numbers, oldest)?;
    let mut other: Option<Window> = None;
    loop {
        let number = current.header.number;
        begin(&current, visitor)?;
        let next = (number < last).then(|| open(disk, &numbers, number + 1).and_then(|next| follows(&current, next)));
        let until = next.as_ref().and_then(|next| next.as_ref().ok()).map(|next| next.header.first);
        let mut window = match (newest.take_if(|_| number == last), other.take()) {
            (Some(newest), _) => newest,
            (None, Some(other)) => other.of(&current),
            (None, None) => Window::new(&current),
        };
        let mut ended = false;
        let walked = walk(&mut window, &current, until, &mut |record| {
            ended = record.kind == Kind::End;
            give(record, visitor)
        })?;
        segments.push(Extent { number, first: current.header.first, begin: current.records, bytes: walked.end });
        let Some(next) = next else {
            let bytes = behind(&mut window, &current, &walked)?;
            let Walked { batch, end, next } = walked;
            let tail = Tail { segment: current, oldest, batch, end, torn: bytes > 0 };
            torn += bytes;
            return Ok(Found { segments, last: next - 1, ended, torn, leftovers, tail: Some(tail) });
        };
        other = Some(window);
        current = next?;
    }
}

/// Gives the records below `until` of a segment that is complete to `visitor`.
pub(super) fn read_segment(disk: &dyn Disk, number: u64, until: u64, visitor: &mut dyn Visitor) -> Result<(), Error> {
    let segment = open(disk, &[number], number)?;
    begin(&segment, visitor)?;
    walk(&mut Window::new(&segment), &segment, Some(until), &mut |record| give(record, visitor)).map(drop)
}

fn begin(segment: &Segment, visitor: &mut dyn Visitor) -> Result<(), Error> {
    let number = segment.header.number;
    visitor.segment(number, &segment.preamble).map_err(|objection| objection.at_segment(number))
}

fn give(record: &Record<'_>, visitor: &mut dyn Visitor) -> Result<(), Error> {
    visitor.record(record).map_err(|objection| objection.at_record(record))
}

/// The size of a segment that is shorter than its header and preamble.
fn short(disk: &dyn Disk, number: u64) -> Result<Option<u64>, Fault> {
    match Segment::open(disk, number) {
        Ok(None) => disk.open(&segment::name(number))?.size().map(Some),
        Err(Error::Fault(fault)) => Err(fault),
        // Damage is reported when the segment's turn comes.
        _ => Ok(None),
    }
}

fn missing(number: u64) -> Error {
    Damage::new(number, 0, "the file is missing").into()
}

fn open(disk: &dyn Disk, numbers: &[u64], number: u64) -> Result<Segment, Error> {
    if numbers.binary_search(&number).is_err() {
        return Err(missing(number));
    }
    let incomplete = || Damage::new(number, 0, "the file is shorter than its header and preamble").into();
    Segment::open(disk, number)?.ok_or_else(incomplete)
}

/// `next` if it can be the segment after `segment`.
fn follows(segment: &Segment, next: Segment) -> Result<Segment, Error> {
    let (before, after) = (&segment.header, &next.header);
    if before.id != after.id {
        return Err(Damage::new(after.number, 0, "the file belongs to another store").into());
    }
    if after.first < before.first || after.oldest < before.oldest {
        return Err(Damage::new(after.number, 0, "the header contradicts that of the file before").into());
    }
    Ok(next)
}

/// What the last segment says of the others.
struct Newest {
    /// The first segment that is needed.
    oldest: u64,
    /// The last segment, as much of it as is in memory, if it had to be read for that.
    window: Option<Window>,
}

impl Newest {
    /// The header and the records of the last segment say which segments are needed. Those below may be there still, but
    /// not all of them. If the header is damaged, the scan starts with the first segment that it could, to get to the
    /// damage with everything that precedes it.
    fn read(disk: &dyn Disk, numbers: &[u64], last: u64) -> Result<Newest, Error> {
        let segment = match open(disk, numbers, last) {
            Ok(segment) => segment,
            Err(Error::Damage(_)) => {
                let run = numbers.iter().rev().zip((0..=last).rev()).take_while(|(number, due)| **number == *due);
                return Ok(Newest { oldest: run.last().map_or(last, |(number, _)| *number), window: None });
            }
            Err(error) => return Err(error),
        };
        let mut oldest = segment.header.oldest;
        if oldest == last {
            return Ok(Newest { oldest, window: None });
        }
        let mut window = Window::new(&segment);
        let walked = walk(&mut window, &segment, None, &mut |record| {
            if record.kind == Kind::Oldest {
                oldest = named(record.body).unwrap_or(oldest);
            }
            Ok(())
        });
        let Some(absent) = first_absent(numbers, oldest, last) else {
            return match walked {
                // The scan proper will meet it again.
                Ok(_) | Err(Error::Damage(_)) => Ok(Newest { oldest, window: Some(window) }),
                Err(error) => Err(error),
            };
        };
        // Where records are lost, one of them may have said that the segment is not needed.
        let walked = walked?;
        if behind(&mut window, &segment, &walked)? > 0 {
            let reason = format!("record {} is not there, and neither is {}", walked.next, segment::name(absent));
            return Err(Damage::new(last, walked.end, reason).into());
        }
        Err(missing(absent))
    }
}

/// The first segment from `oldest` to `last` that is not among `numbers`.
fn first_absent(numbers: &[u64], oldest: u64, last: u64) -> Option<u64> {
    let present = numbers.iter().skip_while(|number| **number < oldest);
    let run = present.zip(oldest..=last).take_while(|(number, due)| **number == *due).count() as u64;
    Some(oldest.saturating_add(run)).filter(|absent| *absent <= last)
}

/// The segment that the body of an `oldest` record names.
pub(super) fn named(body: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*body.as_array()?))
}

/// Makes durable what a scan has found: cuts a torn tail, so that its bytes can never be taken for records, and
/// removes the files that are not needed. May be interrupted anywhere and repeated.
pub(super) fn settle(disk: &dyn Disk, found: &mut Found) -> Result<(), Fault> {
    if let Some(Tail { segment, batch, end, torn, .. }) = &found.tail {
        if *torn || segment.size < *end {
            segment.file.set_len(*end)?;
        }
        // The last batch may have been read from memory: a crash of the process or a failed sync leaves it there only.
        rewrite(segment, *batch, *end)?;
        segment.file.sync()?;
    }
    for name in &found.leftovers {
        disk.remove(name)?;
    }
    disk.sync_dir()?;
    if let Some(Tail { segment, end, torn, .. }) = &mut found.tail
        && *end == segment.records
    {
        // Whoever made it may have failed to make its name durable, and so did not write to it. A new file makes it so.
        *segment = segment::create(disk, segment.header.clone(), segment.preamble.clone(), 0)?;
        *torn = false;
    }
    Ok(())
}

/// Writes bytes once more where they are.
fn rewrite(segment: &Segment, from: u64, to: u64) -> Result<(), Fault> {
    let mut window = Window::new(segment);
    window.size = to;
    let mut at = from;
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(Window::SIZE);
        let bytes = window.bytes(at, len)?;
        if bytes.is_empty() {
            let error = std::io::ErrorKind::UnexpectedEof.into();
            return Err(Fault { operation: "read", path: segment::name(segment.header.number), error });
        }
        segment.file.write_at(at, bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}
