//! The rows of one table: pages of rows of equal width, and the places of rows by id.
//!
//! A row is contiguous: the bits that say which words are not nil, its id, columns that are words, columns of bytes and,
//! in a table with a log, the number of a record. Short bytes lie in the row, so that most rows are one or two cache
//! lines and nothing else; long ones lie beside their page. Rows that go leave places which new rows take; a page without rows is given back. Ids are
//! dense, so their map is made of runs of places, found in a tree by the ids' upper bits: it is walked in ascending order
//! of ids.

use crate::record;
use crate::value::{Cell, Value};
use abi::tables::ColumnKind;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a page: one bit each in `Page::used`.
const PAGE: usize = 64;
/// Ids of a run.
const RUN: u64 = 256;
/// Places are numbered with 32 bits; one number is spare.
const MAX_ROWS: u64 = u32::MAX as u64 - PAGE as u64;

const WORD: usize = size_of::<u64>();
/// Bytes of a column of bytes: what it holds, or the number of its long bytes, and last the tag.
const SLOT: usize = 16;
/// Most bytes that lie in the row; a tag up to here is their number.
const INLINE: usize = SLOT - 1;
const LONG: u8 = INLINE as u8 + 1;
const NIL: u8 = INLINE as u8 + 2;

/// Memory of a row beside its columns: its entry in the map of ids, its part of what pages and runs need themselves.
const ROW_COST: usize = 16;
/// Memory of long bytes beside their number: their entry in the page, and what the allocator rounds up.
const LONG_COST: usize = 32;

/// Where a column is in a row, and the bit that says that a nullable word is not nil.
#[derive(Clone, Copy, Debug)]
enum Place {
    Word(usize, Option<usize>),
    Bytes(usize, bool),
}

impl Place {
    fn is_nullable(self) -> bool {
        matches!(self, Place::Word(_, Some(_)) | Place::Bytes(_, true))
    }
}

#[derive(Debug)]
struct Page {
    rows: Box<[u8]>,
    used: u64,
    /// There is one once a row has long bytes: most pages are small, to be in a cache.
    long: Option<Box<Long>>,
}

/// Bytes of a page's rows that are too long for them, by number, and the numbers that are free.
#[derive(Debug, Default)]
struct Long {
    all: Vec<Box<[u8]>>,
    free: Vec<u32>,
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
    /// Bytes of a row; where its id and its number in the log begin.
    width: usize,
    id_at: usize,
    base_at: Option<usize>,
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
    page: &'a Page,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    pub fn id(&self) -> u64 {
        word(self.bytes, self.rows.id_at)
    }

    /// The number of the last record that holds all of the row; 0 where rows have none.
    pub fn base(&self) -> u64 {
        self.rows.base_at.map_or(0, |at| word(self.bytes, at))
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
            Some(Place::Word(at, bit)) if bit.is_none_or(|bit| self.has_bit(bit)) => Cell::Word(word(self.bytes, *at)),
            Some(Place::Bytes(at, _)) => {
                let Some(slot) = self.bytes.get(*at..*at + SLOT) else { return Cell::Nil };
                let bytes = match slot.last().copied().unwrap_or(NIL) {
                    NIL => None,
                    LONG => {
                        self.page.long.as_ref().and_then(|long| long.all.get(long_number(slot))).map(|bytes| &**bytes)
                    }
                    len => slot.get(..usize::from(len)),
                };
                bytes.map_or(Cell::Nil, Cell::Bytes)
            }
            _ => Cell::Nil,
        }
    }

    fn has_bit(&self, bit: usize) -> bool {
        self.bytes.get(bit / 8).is_some_and(|bits| bits >> (bit % 8) & 1 == 1)
    }
}

/// A word of a row.
fn word(row: &[u8], at: usize) -> u64 {
    row.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put_word(row: &mut [u8], at: usize, word: u64) {
    if let Some(place) = row.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = word.to_le_bytes();
    }
}

/// The number among a page's long bytes that a slot names, if its tag says that it names one.
fn long_number(slot: &[u8]) -> usize {
    slot.first_chunk().map_or(usize::MAX, |number| u32::from_le_bytes(*number) as usize)
}

impl Page {
    fn new(width: usize) -> Page {
        Page { rows: vec![0; PAGE * width].into(), used: 0, long: None }
    }

    /// Fills a slot; what it named before is to be dropped first.
    fn fill(&mut self, at: usize, value: Option<Box<[u8]>>) {
        let mut slot = [0; SLOT];
        let tag = match value {
            None => NIL,
            Some(bytes) => match slot.get_mut(..bytes.len()) {
                Some(place) if bytes.len() <= INLINE => {
                    place.copy_from_slice(&bytes);
                    bytes.len() as u8
                }
                _ => {
                    let number = self.long.get_or_insert_default().keep(bytes);
                    slot[..4].copy_from_slice(&number.to_le_bytes());
                    LONG
                }
            },
        };
        slot[INLINE] = tag;
        if let Some(place) = self.rows.get_mut(at..at + SLOT) {
            place.copy_from_slice(&slot);
        }
    }

    /// Fills a slot that names no long bytes with ones that fit in.
    fn fill_short(&mut self, at: usize, bytes: &[u8]) {
        let Some(slot) = self.rows.get_mut(at..at + SLOT) else { return };
        if let Some(place) = slot.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        if let Some(tag) = slot.last_mut() {
            *tag = bytes.len() as u8;
        }
    }

    /// Drops the long bytes that a slot names.
    fn drop_long(&mut self, at: usize) {
        let Some(slot) = self.rows.get(at..at + SLOT) else { return };
        if slot.last() == Some(&LONG)
            && let Some(long) = &mut self.long
            && let Some(bytes) = long.all.get_mut(long_number(slot))
        {
            *bytes = Box::default();
            long.free.push(long_number(slot) as u32);
        }
    }
}

impl Long {
    /// The number of bytes; there is one for each column of each row at most.
    fn keep(&mut self, bytes: Box<[u8]>) -> u32 {
        if let Some(number) = self.free.pop()
            && let Some(place) = self.all.get_mut(number as usize)
        {
            *place = bytes;
            return number;
        }
        self.all.push(bytes);
        self.all.len() as u32 - 1
    }
}

impl Rows {
    /// No rows, of columns of these kinds that may be nil or not. `logged`: rows have numbers in the log.
    pub fn new(columns: impl Iterator<Item = (ColumnKind, bool)> + Clone, logged: bool) -> Rows {
        let is_word = |kind: ColumnKind| matches!(kind, ColumnKind::Int | ColumnKind::Float);
        let bits = columns.clone().filter(|(kind, nullable)| is_word(*kind) && *nullable).count();
        let words = columns.clone().filter(|(kind, _)| is_word(*kind)).count();
        let id_at = bits.div_ceil(64) * WORD;
        let (mut word, mut bit) = (id_at + WORD, 0);
        let mut slot = word + words * WORD;
        let mut places = Vec::new();
        for (kind, nullable) in columns {
            places.push(if is_word(kind) {
                let own = nullable.then_some(bit);
                bit += usize::from(nullable);
                word += WORD;
                Place::Word(word - WORD, own)
            } else {
                slot += SLOT;
                Place::Bytes(slot - SLOT, nullable)
            });
        }
        Rows {
            columns: places.into(),
            width: slot + if logged { WORD } else { 0 },
            id_at,
            base_at: logged.then_some(slot),
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

    pub fn is_full(&self) -> bool {
        self.len >= MAX_ROWS
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
        ROW_COST + self.width + cells.map(long_cost).sum::<usize>()
    }

    /// Where the row of an id is.
    pub fn place(&self, id: u64) -> Option<u32> {
        let place = self.runs.get(&(id / RUN))?.places.get((id % RUN) as usize)?;
        place.checked_sub(1)
    }

    pub fn contains(&self, id: u64) -> bool {
        self.place(id).is_some()
    }

    /// The row of a place that `place` or `insert` has given.
    pub fn at(&self, place: u32) -> Option<Row<'_>> {
        let (page, at) = (place as usize / PAGE, place as usize % PAGE * self.width);
        let page = self.pages.get(page)?.as_ref()?;
        Some(Row { rows: self, page, bytes: page.rows.get(at..at + self.width)? })
    }

    pub fn get(&self, id: u64) -> Option<Row<'_>> {
        self.at(self.place(id)?)
    }

    /// All rows, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Row<'_>)> {
        self.runs.iter().flat_map(move |(run, r)| {
            (run * RUN..)
                .zip(r.places.iter())
                .filter_map(move |(id, place)| Some((id, self.at(place.checked_sub(1)?)?)))
        })
    }

    /// A place for a row, marked as used.
    fn take_place(&mut self) -> u32 {
        let number = match self.open.first() {
            Some(open) => *open,
            None => {
                let page = Page::new(self.width);
                let number = match self.vacant.pop_first() {
                    Some(number) => {
                        if let Some(slot) = self.pages.get_mut(number as usize) {
                            *slot = Some(page);
                        }
                        number
                    }
                    None => {
                        self.pages.push(Some(page));
                        self.pages.len() as u32 - 1
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
        number * PAGE as u32 + at
    }

    /// The page of a place, and where the place begins in it.
    fn page_mut(&mut self, place: u32) -> Option<(&mut Page, usize)> {
        let at = place as usize % PAGE * self.width;
        Some((self.pages.get_mut(place as usize / PAGE)?.as_mut()?, at))
    }

    /// Adds a row under an id that no row has, unless the rows are full; its place.
    pub fn insert(&mut self, id: u64, values: Vec<Value>) -> u32 {
        let size = self.record_size(values.iter().map(Value::cell));
        let place = self.add(id, size);
        for (column, value) in values.into_iter().enumerate() {
            self.write(place, column, value);
        }
        place
    }

    /// The same with values as a record has them, and with the number of that record: short bytes need no memory of
    /// their own on the way.
    pub fn restore(&mut self, id: u64, cells: &[Cell<'_>], base: u64) {
        let place = self.add(id, self.record_size(cells.iter().copied()));
        for (column, cell) in cells.iter().enumerate() {
            match (self.columns.get(column), cell) {
                (Some(Place::Bytes(at, _)), Cell::Bytes(bytes)) if bytes.len() <= INLINE => {
                    let slot = *at;
                    if let Some((page, at)) = self.page_mut(place) {
                        page.fill_short(at + slot, bytes);
                    }
                }
                _ => self.write(place, column, cell.to_value()),
            }
        }
        self.set_base_at(place, base);
    }

    /// A place for the row of an id, whose record takes `size` bytes.
    fn add(&mut self, id: u64, size: u64) -> u32 {
        debug_assert!(!self.is_full());
        self.encoded += size;
        let place = self.take_place();
        let id_at = self.id_at;
        if let Some((page, at)) = self.page_mut(place) {
            put_word(&mut page.rows, at + id_at, id);
        }
        let run = self.runs.entry(id / RUN).or_insert_with(|| Run { live: 0, places: vec![0; RUN as usize].into() });
        if let Some(slot) = run.places.get_mut((id % RUN) as usize) {
            *slot = place + 1;
            run.live += 1;
            self.len += 1;
        }
        place
    }

    /// Fills a column that names no long bytes.
    fn write(&mut self, place: u32, column: usize, value: Value) {
        let Some(column) = self.columns.get(column).copied() else { return };
        let Some((page, at)) = self.page_mut(place) else { return };
        match (column, value) {
            (Place::Word(word, bit), value) => {
                let new = if let Value::Word(new) = value { new } else { 0 };
                put_word(&mut page.rows, at + word, new);
                if let Some(bit) = bit
                    && let Some(bits) = page.rows.get_mut(at + bit / 8)
                {
                    let present = u8::from(matches!(value, Value::Word(_)));
                    *bits = *bits & !(1 << (bit % 8)) | present << (bit % 8);
                }
            }
            (Place::Bytes(slot, _), Value::Bytes(bytes)) => page.fill(at + slot, Some(bytes)),
            (Place::Bytes(slot, _), Value::Nil | Value::Word(_)) => page.fill(at + slot, None),
        }
    }

    pub fn set(&mut self, id: u64, column: usize, value: Value) {
        let Some(place) = self.place(id) else { return };
        let known = self.columns.get(column).copied();
        // A word that is never nil takes as many bytes as any other.
        let varies = !matches!(known, Some(Place::Word(_, None)));
        let size = |rows: &Rows| if varies { rows.at(place).map_or(0, Row::record_size) } else { 0 };
        let before = size(self);
        if let (Some(Place::Bytes(slot, _)), Some((page, at))) = (known, self.page_mut(place)) {
            page.drop_long(at + slot);
        }
        self.write(place, column, value);
        self.encoded = self.encoded - before + size(self);
    }

    /// Notes the number of the last record that holds all of the row.
    pub fn set_base(&mut self, id: u64, seq: u64) {
        if let Some(place) = self.place(id) {
            self.set_base_at(place, seq);
        }
    }

    fn set_base_at(&mut self, place: u32, seq: u64) {
        let Some(base_at) = self.base_at else { return };
        if let Some((page, at)) = self.page_mut(place) {
            put_word(&mut page.rows, at + base_at, seq);
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
        let (number, at) = (place / PAGE as u32, place as usize % PAGE * self.width);
        let Some(slot) = self.pages.get_mut(number as usize) else { return };
        let Some(page) = slot else { return };
        page.used &= !(1 << (place % PAGE as u32));
        if page.used == 0 {
            *slot = None;
            let _ = self.open.remove(&number);
            let _ = self.vacant.insert(number);
            return;
        }
        for column in &self.columns {
            if let Place::Bytes(slot, _) = column {
                page.drop_long(at + slot);
            }
        }
        let _ = self.open.insert(number);
    }
}

/// Memory of a value beside its place in the row.
pub(crate) fn long_cost(cell: Cell<'_>) -> usize {
    match cell {
        Cell::Bytes(bytes) if bytes.len() > INLINE => bytes.len() + LONG_COST,
        Cell::Nil | Cell::Word(_) | Cell::Bytes(_) => 0,
    }
}
