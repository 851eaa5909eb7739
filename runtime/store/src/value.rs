//! Values of columns on their way in and out of the store.

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

impl Cell<'_> {
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Cell::Nil => Value::Nil,
            Cell::Word(word) => Value::Word(word),
            Cell::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }

    /// Bytes that the value takes encoded.
    pub(crate) fn size(self) -> usize {
        match self {
            Cell::Nil => 1,
            Cell::Word(_) => 9,
            Cell::Bytes(bytes) => 5 + bytes.len(),
        }
    }
}
