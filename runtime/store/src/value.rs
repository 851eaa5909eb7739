//! Values of columns on their way in and out of the store, and as bytes of its files.

use crate::bytes::{Reader, put_bytes};
use abi::tables::ColumnKind;

/// A value that goes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Nil,
    /// Int, or the bits of a Float, as the column's kind says.
    Word(u64),
    Bytes(Box<[u8]>),
}

/// A value in the store, borrowed while its table is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    Nil,
    Word(u64),
    Bytes(&'a [u8]),
}

impl Value {
    #[must_use]
    pub fn cell(&self) -> Cell<'_> {
        match self {
            Value::Nil => Cell::Nil,
            Value::Word(word) => Cell::Word(*word),
            Value::Bytes(bytes) => Cell::Bytes(bytes),
        }
    }
}

impl<'a> Cell<'a> {
    /// The value of a column that `put` wrote; `None` if the bytes are none.
    pub(crate) fn take(kind: ColumnKind, nullable: bool, from: &mut Reader<'a>) -> Option<Cell<'a>> {
        if nullable && !from.flag()? {
            return Some(Cell::Nil);
        }
        match kind {
            ColumnKind::Int | ColumnKind::Float => from.u64().map(Cell::Word),
            ColumnKind::Bytes | ColumnKind::Value => from.bytes().map(Cell::Bytes),
        }
    }
}

impl Cell<'_> {
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Cell::Nil => Value::Nil,
            Cell::Word(word) => Value::Word(word),
            Cell::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }

    /// Appends the value of a column, which is not nil unless the column is nullable, as files have it.
    pub(crate) fn put(self, nullable: bool, out: &mut Vec<u8>) {
        debug_assert!(nullable || self != Cell::Nil);
        if nullable {
            out.push(u8::from(self != Cell::Nil));
        }
        match self {
            Cell::Nil => {}
            Cell::Word(word) => out.extend_from_slice(&word.to_le_bytes()),
            Cell::Bytes(bytes) => put_bytes(bytes, out),
        }
    }

    /// Bytes that `put` appends.
    pub(crate) fn size(self, nullable: bool) -> usize {
        usize::from(nullable)
            + match self {
                Cell::Nil => 0,
                Cell::Word(_) => size_of::<u64>(),
                Cell::Bytes(bytes) => size_of::<u32>() + bytes.len(),
            }
    }
}
