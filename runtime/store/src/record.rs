//! The bodies of the log's records about rows (docs/store-format.md, Record). Reading takes a body only if nothing is
//! left of it.

use crate::bytes::Reader;
use crate::log;
use crate::schema::Column;
use crate::value::Cell;

/// Place of the id in a body, which is known only when the table is locked.
const ID: std::ops::Range<usize> = 2..10;

/// Bytes that a record takes which holds all of a row, by those of the row's values.
pub(crate) fn row_size(values: usize) -> u64 {
    log::record_size(ID.end + values)
}

/// How every body begins, and all that of a *delete* is.
pub(crate) fn put_row_id(out: &mut Vec<u8>, table: u16, id: u64) {
    out.extend_from_slice(&table.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
}

/// The body of an *insert* or *keep*: cells with whether their columns may be nil.
pub(crate) fn put_row<'a>(out: &mut Vec<u8>, table: u16, id: u64, cells: impl Iterator<Item = (Cell<'a>, bool)>) {
    put_row_id(out, table, id);
    for (cell, nullable) in cells {
        cell.put(nullable, out);
    }
}

/// Gives a body the id that the row has got.
pub(crate) fn set_id(body: &mut [u8], id: u64) {
    if let Some(place) = body.get_mut(ID) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// The body of a *change*.
pub(crate) fn change(table: u16, id: u64, column: u16, cell: Cell<'_>, nullable: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    put_row_id(&mut out, table, id);
    out.extend_from_slice(&column.to_le_bytes());
    cell.put(nullable, &mut out);
    out
}

/// Table and id.
pub(crate) fn read_row_id(body: &mut Reader<'_>) -> Option<(usize, u64)> {
    let table = body.u16()?;
    let id = body.u64()?;
    (id != 0).then_some((usize::from(table), id))
}

/// The value of a column.
pub(crate) fn read_value<'b>(body: &mut Reader<'b>, column: &Column) -> Option<Cell<'b>> {
    Cell::take(column.kind, column.nullable, body)
}

/// The values of a row, which are the rest of the body.
pub(crate) fn read_values<'b>(mut body: Reader<'b>, columns: &[Column]) -> Option<Vec<Cell<'b>>> {
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        cells.push(read_value(&mut body, column)?);
    }
    body.0.is_empty().then_some(cells)
}

/// Number and value of a column, which are the rest of the body.
pub(crate) fn read_change<'b>(mut body: Reader<'b>, columns: &[Column]) -> Option<(usize, Cell<'b>)> {
    let number = usize::from(body.u16()?);
    let cell = read_value(&mut body, columns.get(number)?)?;
    body.0.is_empty().then_some((number, cell))
}
