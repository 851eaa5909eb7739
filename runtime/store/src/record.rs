//! What the log says of rows: the bodies of its records (docs/store-format.md). Reading trusts no length and takes a body
//! only if nothing is left of it.

use crate::value::{Cell, Value};
use abi::tables::{ColumnDesc, ColumnKind};

/// A row as a record of kind *insert* or *keep* has it.
#[derive(Debug, PartialEq)]
pub(crate) struct RowBody {
    pub table: u16,
    pub id: u64,
    pub values: Vec<Value>,
}

/// A new value of a column.
#[derive(Debug, PartialEq)]
pub(crate) struct ChangeBody {
    pub table: u16,
    pub id: u64,
    pub column: u16,
    pub value: Value,
}

fn is_word(column: &ColumnDesc) -> bool {
    matches!(column.kind, ColumnKind::Int | ColumnKind::Float)
}

fn put_value(out: &mut Vec<u8>, column: &ColumnDesc, cell: Cell<'_>) {
    if column.nullable {
        out.push(u8::from(cell != Cell::Nil));
        if cell == Cell::Nil {
            return;
        }
    }
    match cell {
        Cell::Word(word) => out.extend_from_slice(&word.to_le_bytes()),
        Cell::Bytes(bytes) => {
            // A value is at most `MAX_ROW` long.
            out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        Cell::Nil => debug_assert!(false, "nil in a column that has none"),
    }
}

pub(crate) fn put_row<'a>(
    out: &mut Vec<u8>,
    table: u16,
    id: u64,
    columns: &[ColumnDesc],
    cells: impl Iterator<Item = Cell<'a>>,
) {
    put_delete(out, table, id);
    for (column, cell) in columns.iter().zip(cells) {
        put_value(out, column, cell);
    }
}

pub(crate) fn put_change(out: &mut Vec<u8>, table: u16, id: u64, column: u16, desc: &ColumnDesc, cell: Cell<'_>) {
    put_delete(out, table, id);
    out.extend_from_slice(&column.to_le_bytes());
    put_value(out, desc, cell);
}

/// The whole body of a *delete*, and how the others begin.
pub(crate) fn put_delete(out: &mut Vec<u8>, table: u16, id: u64) {
    out.extend_from_slice(&table.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
}

/// Takes `N` bytes off the front.
fn take<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = body.split_first_chunk::<N>()?;
    *body = rest;
    Some(*front)
}

fn take_value(body: &mut &[u8], column: &ColumnDesc) -> Option<Value> {
    if column.nullable {
        match take::<1>(body)? {
            [0] => return Some(Value::Nil),
            [1] => {}
            _ => return None,
        }
    }
    if is_word(column) {
        return Some(Value::Word(u64::from_le_bytes(take(body)?)));
    }
    let len = usize::try_from(u32::from_le_bytes(take(body)?)).ok()?;
    let (bytes, rest) = body.split_at_checked(len)?;
    *body = rest;
    Some(Value::Bytes(bytes.into()))
}

fn take_head(body: &mut &[u8]) -> Option<(u16, u64)> {
    let table = u16::from_le_bytes(take(body)?);
    let id = u64::from_le_bytes(take(body)?);
    (id != 0).then_some((table, id))
}

/// `columns` gives those of a table.
pub(crate) fn read_row<'d>(
    mut body: &[u8],
    columns: impl Fn(u16) -> Option<&'d [ColumnDesc]>,
) -> Option<RowBody> {
    let (table, id) = take_head(&mut body)?;
    let columns = columns(table)?;
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        values.push(take_value(&mut body, column)?);
    }
    body.is_empty().then_some(RowBody { table, id, values })
}

pub(crate) fn read_change<'d>(
    mut body: &[u8],
    columns: impl Fn(u16) -> Option<&'d [ColumnDesc]>,
) -> Option<ChangeBody> {
    let (table, id) = take_head(&mut body)?;
    let column = u16::from_le_bytes(take(&mut body)?);
    let value = take_value(&mut body, columns(table)?.get(usize::from(column))?)?;
    body.is_empty().then_some(ChangeBody { table, id, column, value })
}

/// Table and id.
pub(crate) fn read_delete(mut body: &[u8]) -> Option<(u16, u64)> {
    let head = take_head(&mut body)?;
    body.is_empty().then_some(head)
}
