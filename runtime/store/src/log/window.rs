//! A segment read from front to back: its records, and what is behind them.

use super::frame::{self, HEAD, Head, Kind, Seal, align};
use super::scan::{Damage, Error, Record, named};
use super::segment::Segment;
use crate::disk::{Fault, File};
use std::sync::Arc;

/// Reads a file through a buffer, which what was read last stays in.
pub(super) struct Window {
    file: Arc<dyn File>,
    /// Nothing is read behind this.
    pub size: u64,
    seal: Seal,
    start: u64,
    held: Vec<u8>,
}

impl Window {
    /// Bytes that are read at once. A segment of the usual size fits in.
    pub const SIZE: usize = 2 << 20;

    pub fn new(segment: &Segment) -> Window {
        Window { file: Arc::clone(&segment.file), size: segment.size, seal: segment.seal(), start: 0, held: Vec::new() }
    }

    /// The same buffer for another segment.
    pub fn of(self, segment: &Segment) -> Window {
        // No offset is as high as this: nothing is held.
        Window { held: self.held, start: u64::MAX, ..Window::new(segment) }
    }

    /// The bytes at `at`, fewer at the end of the file.
    pub fn bytes(&mut self, at: u64, len: usize) -> Result<&[u8], Fault> {
        let left = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let within = |start: u64| usize::try_from(at.checked_sub(start)?).ok();
        if within(self.start).is_none_or(|from| from.saturating_add(len) > self.held.len()) {
            self.held.resize(len.max(Self::SIZE).min(left), 0);
            let read = self.file.read_at(at, &mut self.held)?;
            self.held.truncate(read);
            self.start = at;
        }
        let bytes = within(self.start).and_then(|from| self.held.get(from..)).unwrap_or_default();
        Ok(bytes.get(..len).unwrap_or(bytes))
    }

    /// The record `seq` at `offset`, if it is there.
    fn record(&mut self, offset: u64, seq: u64) -> Result<Option<(Head, &[u8])>, Fault> {
        let seal = self.seal;
        let bytes = self.bytes(offset, HEAD)?;
        let Some(head) = seal.head(offset, bytes).filter(|head| head.seq == seq) else { return Ok(None) };
        let record = self.bytes(offset, head.length)?;
        Ok(frame::body(&head, record).map(|body| (head, body)))
    }
}

pub(super) struct Walked {
    /// Where the last batch begins and where the records end.
    pub batch: u64,
    pub end: u64,
    /// The sequence number that is due there.
    pub next: u64,
}

/// Visits the records of a segment: those below `until`, or else as many as are valid.
pub(super) fn walk(
    window: &mut Window,
    segment: &Segment,
    until: Option<u64>,
    visit: &mut dyn FnMut(&Record<'_>) -> Result<(), Error>,
) -> Result<Walked, Error> {
    let number = segment.header.number;
    let mut barrier = None;
    let mut walked = Walked { batch: segment.records, end: segment.records, next: segment.header.first };
    while until.is_none_or(|until| walked.next < until) {
        let (offset, seq) = (walked.end, walked.next);
        let Some((head, body)) = window.record(offset, seq)? else {
            return match until {
                None => Ok(walked),
                Some(_) => Err(Damage::new(number, offset, format!("record {seq} is not there")).into()),
            };
        };
        let undecodable = || Damage::new(number, offset, format!("record {seq} cannot be decoded"));
        let kind = Kind::from_byte(head.kind).ok_or_else(undecodable)?;
        if kind == Kind::Oldest && named(body).is_none_or(|oldest| !(1..=number).contains(&oldest)) {
            return Err(undecodable().into());
        }
        visit(&Record { segment: number, offset, seq, kind, body })?;
        if barrier != Some(head.barrier) {
            barrier = Some(head.barrier);
            walked.batch = offset;
        }
        walked.end = align(offset + head.length as u64);
        walked.next = seq + 1;
    }
    Ok(walked)
}

/// How many bytes behind the end of the last segment are a torn tail. A head there that was written when the record
/// which is due at the end had been durable makes it damage.
pub(super) fn behind(window: &mut Window, segment: &Segment, walked: &Walked) -> Result<u64, Error> {
    let seal = segment.seal();
    let mut torn = 0;
    let mut at = walked.end;
    while at < segment.size {
        let bytes = window.bytes(at, HEAD)?;
        let next = at + 8;
        // No head begins with eight zeros: its length is among them.
        if bytes.iter().take(8).any(|byte| *byte != 0) {
            torn = next.min(segment.size) - walked.end;
            if seal.head(at, bytes).is_some_and(|head| head.barrier >= walked.next) {
                let reason = format!("record {} is not there, but one that was written later is", walked.next);
                return Err(Damage::new(segment.header.number, walked.end, reason).into());
            }
        }
        at = next;
    }
    Ok(torn)
}
