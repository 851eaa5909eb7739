//! Keys as byte strings whose order is the order of the values: nil first, integers signed, floats with one zero and one
//! NaN, which is last, bytes as they are. No encoded value is a prefix of another, so the values of several columns and
//! a row's id can follow each other.

use crate::value::Cell;
use abi::tables::ColumnKind;
use std::borrow::Borrow;
use std::cmp::Ordering;

const NIL: u8 = 0;
const SOME: u8 = 1;

/// Bytes of the id at the end of an index entry.
pub(crate) const ID: usize = 8;

/// Bytes that fit into an entry itself.
const INLINE: usize = 30;

/// An entry of an index: the columns' values, then the row's id. Most are short and need no memory of their own.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Short(u8, [u8; INLINE]),
    Long(Box<[u8]>),
}

impl Key {
    pub fn new(bytes: &[u8]) -> Key {
        let mut short = [0; INLINE];
        match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                Key::Short(len, short)
            }
            _ => Key::Long(bytes.into()),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Key::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Key::Long(bytes) => bytes,
        }
    }

    /// The columns' values alone.
    pub fn values(&self) -> &[u8] {
        let bytes = self.bytes();
        bytes.get(..bytes.len().saturating_sub(ID)).unwrap_or_default()
    }

    pub fn id(&self) -> u64 {
        self.bytes().last_chunk::<ID>().map_or(0, |id| u64::from_be_bytes(*id))
    }

    /// Bytes of memory beside the entry itself.
    pub fn heap(&self) -> usize {
        match self {
            Key::Short(..) => 0,
            Key::Long(bytes) => bytes.len() + 16,
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        match (self, other) {
            // As no entry is a prefix of another, they differ before the padding: as many bytes always are a few words.
            (Key::Short(_, a), Key::Short(_, b)) => a.cmp(b),
            _ => self.bytes().cmp(other.bytes()),
        }
    }
}

/// Appends the key of a value.
pub(crate) fn put(out: &mut Vec<u8>, kind: ColumnKind, cell: Cell<'_>) {
    match cell {
        Cell::Nil => out.push(NIL),
        Cell::Word(word) => {
            out.push(SOME);
            out.extend_from_slice(&ordered(kind, word).to_be_bytes());
        }
        Cell::Bytes(bytes) => {
            out.push(SOME);
            // A zero byte becomes 0, 255; the end is 0, 0.
            let mut rest = bytes;
            while let Some(at) = rest.iter().position(|b| *b == 0) {
                let (head, tail) = rest.split_at(at + 1);
                out.extend_from_slice(head);
                out.push(0xff);
                rest = tail;
            }
            out.extend_from_slice(rest);
            out.extend_from_slice(&[0, 0]);
        }
    }
}

pub(crate) fn put_id(out: &mut Vec<u8>, id: u64) {
    out.extend_from_slice(&id.to_be_bytes());
}

/// Where the values of a column that is not nil begin.
pub(crate) fn put_first(out: &mut Vec<u8>) {
    out.push(SOME);
}

/// Where the NaNs of a Float column begin.
pub(crate) fn put_nan(out: &mut Vec<u8>) {
    out.push(SOME);
    out.extend_from_slice(&u64::MAX.to_be_bytes());
}

/// Makes of a key the first one behind all that begin with it.
pub(crate) fn step_over(out: &mut Vec<u8>) {
    while let Some(last) = out.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return;
        }
        let _ = out.pop();
    }
}

/// A number without a sign that comes where the word comes among the words of its kind.
pub(crate) fn ordered(kind: ColumnKind, word: u64) -> u64 {
    if kind == ColumnKind::Float { float_order(word) } else { word ^ (1 << 63) }
}

/// Whether two values are one key.
pub(crate) fn same(kind: ColumnKind, a: Cell<'_>, b: Cell<'_>) -> bool {
    match (a, b) {
        (Cell::Word(a), Cell::Word(b)) => ordered(kind, a) == ordered(kind, b),
        _ => a == b,
    }
}

/// Negative to positive, -0.0 as 0.0, every NaN as the largest number.
fn float_order(bits: u64) -> u64 {
    let float = f64::from_bits(bits);
    if float.is_nan() {
        return u64::MAX;
    }
    let bits = if float == 0.0 { 0 } else { bits };
    if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
}
