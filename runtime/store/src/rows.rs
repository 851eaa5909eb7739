//! The rows of one table: pages of fixed-width rows with bytes behind pointers, and the places of rows by id.
//!
//! Rows that go leave places which new rows take; a page without rows is given back. Ids are dense, so their map is made
//! of runs of places, found in a tree by the ids' upper bits: it is walked in ascending order of ids.

use crate::record;
use crate::value::{Cell, Value};
use abi::tables::ColumnKind;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a page: one bit each in `Page::used`.
const PAGE: usize = 64;
/// Ids of a run.
const RUN: u64 = 256;

/// Memory of a row beside its columns: its entry in the map of ids, its part of what pages and runs need themselves.
const ROW_COST: usize = 16;
/// Memory of bytes beside their number.
const BYTES_COST: usize = 16;

/// Where a column is in a row.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Number of its word; the bit that says that it is not nil, for nullable ones.
    Word(usize, Option<usize>),
    /// Its number among those of this kind; whether it is nullable.
    Bytes(usize, bool),
}

impl Place {
    fn is_nullable(self) -> bool {
        matches!(self, Place::Word(_, Some(_)) | Place::Bytes(_, true))
    }
}

#[derive(Debug)]
struct Page {
    used: u64,
    words: Box<[u64]>,
    bytes: Box<[Option<Box<[u8]>>]>,
}

#[derive(Debug)]
struct Run {
    live: usize,
    /// Place of each row, plus one; 0 for none.
    places: Box<[u32]>,
}

#[derive(Debug)]
pub(crate) struct Rows {
    columns: Box<[Place]>,
    /// Words of a row, those of its bits first, that of its number in the log last.
    words: usize,
    bytes: usize,
    logged: bool,
    pages: Vec<Option<Page>>,
    /// Pages with room; pages that were given back.
    open: BTreeSet<u32>,
    vacant: BTreeSet<u32>,
    runs: BTreeMap<u64, Run>,
    len: u64,
    /// Bytes that a record of each row takes which holds all of it, together.
    encoded: u64,
}

/// A row while its table is locked.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    rows: &'a Rows,
    words: &'a [u64],
    bytes: &'a [Option<Box<[u8]>>],
}

impl<'a> Row<'a> {
    /// The number of the last record that holds all of the row; 0 where rows have none.
    pub fn base(&self) -> u64 {
        self.words.last().copied().filter(|_| self.rows.logged).unwrap_or(0)
    }

    /// The values of all columns.
    pub fn cells(self) -> impl Iterator<Item = Cell<'a>> {
        (0..self.rows.columns.len()).map(move |column| self.cell(column))
    }

    /// Bytes that a record takes which holds all of it.
    pub fn record_size(self) -> u64 {
        self.rows.record_size(self.cells())
    }

    pub fn cell(&self, column: usize) -> Cell<'a> {
        match self.rows.columns.get(column) {
            Some(Place::Word(at, bit)) => {
                let present =
                    bit.is_none_or(|bit| self.words.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1));
                match self.words.get(*at) {
                    Some(word) if present => Cell::Word(*word),
                    _ => Cell::Nil,
                }
            }
            Some(Place::Bytes(at, _)) => match self.bytes.get(*at) {
                Some(Some(bytes)) => Cell::Bytes(bytes),
                _ => Cell::Nil,
            },
            None => Cell::Nil,
        }
    }
}

impl Rows {
    /// No rows, of columns of these kinds that may be nil or not. `logged`: rows have numbers in the log.
    pub fn new(columns: impl Iterator<Item = (ColumnKind, bool)> + Clone, logged: bool) -> Rows {
        let is_word = |kind: ColumnKind| matches!(kind, ColumnKind::Int | ColumnKind::Float);
        let bits = columns.clone().filter(|(kind, nullable)| is_word(*kind) && *nullable).count();
        let (mut words, mut bytes, mut bit) = (bits.div_ceil(64), 0, 0);
        let mut places = Vec::new();
        for (kind, nullable) in columns {
            places.push(if is_word(kind) {
                let own = nullable.then_some(bit);
                bit += usize::from(nullable);
                words += 1;
                Place::Word(words - 1, own)
            } else {
                bytes += 1;
                Place::Bytes(bytes - 1, nullable)
            });
        }
        Rows {
            columns: places.into(),
            logged,
            words: words + usize::from(logged),
            bytes,
            pages: Vec::new(),
            open: BTreeSet::new(),
            vacant: BTreeSet::new(),
            runs: BTreeMap::new(),
            len: 0,
            encoded: 0,
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that the log would take if it held each row once.
    pub fn encoded(&self) -> u64 {
        self.encoded
    }

    /// Bytes that a record takes which holds all of a row with these values.
    fn record_size<'a>(&self, cells: impl Iterator<Item = Cell<'a>>) -> u64 {
        record::row_size(self.columns.iter().zip(cells).map(|(column, cell)| cell.size(column.is_nullable())).sum())
    }

    /// Memory that a row with these values takes.
    pub fn cost<'a>(&self, cells: impl Iterator<Item = Cell<'a>>) -> usize {
        let bytes: usize = cells.map(bytes_cost).sum();
        ROW_COST + 8 * self.words + size_of::<Option<Box<[u8]>>>() * self.bytes + bytes
    }

    fn place(&self, id: u64) -> Option<usize> {
        let place = self.runs.get(&(id / RUN))?.places.get((id % RUN) as usize)?;
        (*place as usize).checked_sub(1)
    }

    pub fn contains(&self, id: u64) -> bool {
        self.place(id).is_some()
    }

    fn at(&self, place: usize) -> Option<Row<'_>> {
        let page = self.pages.get(place / PAGE)?.as_ref()?;
        let at = place % PAGE;
        let words = page.words.get(at * self.words..(at + 1) * self.words)?;
        let bytes = page.bytes.get(at * self.bytes..(at + 1) * self.bytes)?;
        Some(Row { rows: self, words, bytes })
    }

    pub fn get(&self, id: u64) -> Option<Row<'_>> {
        self.at(self.place(id)?)
    }

    /// All rows with their ids, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Row<'_>)> {
        self.runs.iter().flat_map(move |(run, r)| {
            (run * RUN..)
                .zip(r.places.iter())
                .filter_map(move |(id, place)| Some((id, self.at((*place as usize).checked_sub(1)?)?)))
        })
    }

    /// A place for a row, marked as used.
    fn take_place(&mut self) -> usize {
        let number = match self.open.first() {
            Some(open) => *open,
            None => {
                let page = Page {
                    used: 0,
                    words: vec![0; PAGE * self.words].into(),
                    bytes: std::iter::repeat_with(|| None).take(PAGE * self.bytes).collect(),
                };
                let number = match self.vacant.pop_first() {
                    Some(number) => {
                        if let Some(slot) = self.pages.get_mut(number as usize) {
                            *slot = Some(page);
                        }
                        number
                    }
                    None => {
                        self.pages.push(Some(page));
                        u32::try_from(self.pages.len() - 1).unwrap_or(u32::MAX)
                    }
                };
                let _ = self.open.insert(number);
                number
            }
        };
        let Some(Some(page)) = self.pages.get_mut(number as usize) else { return 0 };
        let at = page.used.trailing_ones();
        page.used |= 1 << at;
        if page.used == u64::MAX {
            let _ = self.open.remove(&number);
        }
        number as usize * PAGE + at as usize
    }

    /// Adds a row under an id that no row has.
    pub fn insert(&mut self, id: u64, values: Vec<Value>) {
        self.encoded += self.record_size(values.iter().map(Value::cell));
        let place = self.take_place();
        for (column, value) in values.into_iter().enumerate() {
            self.write(place, column, value);
        }
        let run = self.runs.entry(id / RUN).or_insert_with(|| Run { live: 0, places: vec![0; RUN as usize].into() });
        if let Some(slot) = run.places.get_mut((id % RUN) as usize) {
            *slot = u32::try_from(place + 1).unwrap_or(u32::MAX);
            run.live += 1;
            self.len += 1;
        }
    }

    fn write(&mut self, place: usize, column: usize, value: Value) {
        let Some(Some(page)) = self.pages.get_mut(place / PAGE) else { return };
        let at = place % PAGE;
        match self.columns.get(column) {
            Some(Place::Word(word, bit)) => {
                let Some(words) = page.words.get_mut(at * self.words..(at + 1) * self.words) else { return };
                let (present, new) = match value {
                    Value::Word(new) => (1, new),
                    Value::Nil | Value::Bytes(_) => (0, 0),
                };
                if let Some(slot) = words.get_mut(*word) {
                    *slot = new;
                }
                if let Some(bit) = bit
                    && let Some(bits) = words.get_mut(bit / 64)
                {
                    *bits = *bits & !(1 << (bit % 64)) | present << (bit % 64);
                }
            }
            Some(Place::Bytes(i, _)) => {
                if let Some(slot) = page.bytes.get_mut(at * self.bytes + i) {
                    *slot = match value {
                        Value::Bytes(bytes) => Some(bytes),
                        Value::Nil | Value::Word(_) => None,
                    };
                }
            }
            None => {}
        }
    }

    pub fn set(&mut self, id: u64, column: usize, value: Value) {
        let Some(place) = self.place(id) else { return };
        // A word that is never nil takes as many bytes as any other.
        let varies = !matches!(self.columns.get(column), Some(Place::Word(_, None)));
        let size = |rows: &Rows| if varies { rows.at(place).map_or(0, Row::record_size) } else { 0 };
        let before = size(self);
        self.write(place, column, value);
        self.encoded = self.encoded - before + size(self);
    }

    /// Notes the number of the last record that holds all of the row.
    pub fn set_base(&mut self, id: u64, seq: u64) {
        debug_assert!(self.logged);
        let Some(place) = self.place(id) else { return };
        let (words, at) = (self.words, place % PAGE);
        let page = self.pages.get_mut(place / PAGE).and_then(Option::as_mut);
        if let Some(word) = page.and_then(|page| page.words.get_mut((at + 1) * words - 1)) {
            *word = seq;
        }
    }

    pub fn remove(&mut self, id: u64) {
        let Some(place) = self.place(id) else { return };
        self.encoded -= self.at(place).map_or(0, Row::record_size);
        if let Some(run) = self.runs.get_mut(&(id / RUN)) {
            run.live -= 1;
            if let Some(slot) = run.places.get_mut((id % RUN) as usize) {
                *slot = 0;
            }
            if run.live == 0 {
                let _ = self.runs.remove(&(id / RUN));
            }
        }
        self.len -= 1;
        let number = u32::try_from(place / PAGE).unwrap_or(u32::MAX);
        let Some(slot) = self.pages.get_mut(place / PAGE) else { return };
        let Some(page) = slot else { return };
        page.used &= !(1 << (place % PAGE));
        if page.used == 0 {
            *slot = None;
            let _ = self.open.remove(&number);
            let _ = self.vacant.insert(number);
            return;
        }
        if let Some(bytes) = page.bytes.get_mut(place % PAGE * self.bytes..(place % PAGE + 1) * self.bytes) {
            bytes.fill_with(|| None);
        }
        let _ = self.open.insert(number);
    }
}

/// Memory of a value beside its place in the row.
pub(crate) fn bytes_cost(cell: Cell<'_>) -> usize {
    match cell {
        Cell::Bytes(bytes) => bytes.len() + BYTES_COST,
        Cell::Nil | Cell::Word(_) => 0,
    }
}
