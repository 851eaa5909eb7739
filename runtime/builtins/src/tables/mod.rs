//! Tables: values of the program to values of the store and back, and the refusals of the store as traps. The store is
//! one for the process; fibers of all shards come to it. A durable write waits once it is done; nothing waits, and nothing
//! of the program runs, while a table is locked.

mod blob;
mod convert;
mod order;
mod query;
mod start;

use crate::results::{Pair, Ptr};
use abi::desc::{ClassDesc, TypeDesc, TypeIdx};
use abi::tables as numbers;
use abi::trap;
use convert::{Words, words_of};
use std::sync::OnceLock;
use store::{Cell, Refusal, Seq, Store, UpdateError, Value};
use values::ctx::{Ctx, entry};
use values::cycles::with_relief;
use values::multi;
use values::object::{self, Obj};

pub use start::{Start, close, open};

/// Name and address of each function of this module.
pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("table.insert", table_insert as *const u8),
        ("table.get", table_get as *const u8),
        ("table.set", table_set as *const u8),
        ("table.update", table_update as *const u8),
        ("table.delete", table_delete as *const u8),
        ("table.backlink", table_backlink as *const u8),
        ("table.backlink_len", table_backlink_len as *const u8),
        ("query.run", query::query_run as *const u8),
        ("query.count", query::query_count as *const u8),
        ("query.order", order::query_order as *const u8),
    ]
}

/// The store of the process, made by `open` before the program starts.
static STORE: OnceLock<Store> = OnceLock::new();

/// The store; `None` with a pending trap where none was opened.
fn store(ctx: &mut Ctx) -> Option<&'static Store> {
    let store = STORE.get();
    if store.is_none() {
        ctx.raise(trap::EXPLICIT, "internal error: the store is not open");
    }
    store
}

/// Leaves the trap of a refusal.
fn raise(ctx: &mut Ctx, refusal: Refusal) {
    let (code, text) = match refusal {
        Refusal::NoRow => (trap::DB, trap::NO_ROW),
        Refusal::NoTarget => (trap::FK, trap::NO_REFERENCED_ROW),
        Refusal::Unique => (trap::UNIQUE, trap::UNIQUE_VIOLATION),
        Refusal::Referenced => (trap::FK, trap::STILL_REFERENCED),
        Refusal::TooLarge => (trap::DB, trap::ROW_TOO_LARGE),
        Refusal::Memory => (trap::OOM, trap::OUT_OF_TABLE_MEMORY),
    };
    ctx.raise(code, text);
}

/// The value of a refused statement's result, which nobody reads, with the trap pending.
fn settled<R: Default>(ctx: &mut Ctx, result: Result<R, Refusal>) -> R {
    result.unwrap_or_else(|refusal| {
        raise(ctx, refusal);
        R::default()
    })
}

/// Waits until a write is durable, where its table is; leaves the trap of a refused one.
fn acknowledge(ctx: &mut Ctx, result: Result<Seq, Refusal>) {
    match result {
        Ok(seq) => sched::durable::wait(ctx, seq),
        Err(refusal) => raise(ctx, refusal),
    }
}

/// The class whose objects hold the values of a table's columns.
fn class_of<'a>(ctx: &Ctx, store: &Store, table: u32) -> Option<&'a ClassDesc> {
    let class = store.table(table)?.class;
    object::shapes(ctx).classes.get(class as usize)
}

/// The type of a column.
fn type_of(ctx: &Ctx, store: &Store, table: u32, column: u32) -> TypeIdx {
    let fields = class_of(ctx, store, table).map_or(&[][..], |class| &class.fields);
    fields.get(column as usize).map_or(abi::desc::TYPE_INT, |field| field.ty)
}

// SAFETY, for the whole module: generated code passes the context of the running fiber, and live values of the types
// that the program's description gives for the table's columns or the query's operands.

extern "C" fn table_insert(ctx: *mut Ctx, table: u64, values: *mut Obj) -> u64 {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return 0 };
        let table = table as u32;
        let fields = class_of(ctx, store, table).map_or(&[][..], |class| &class.fields);
        // SAFETY: see the module; `values` is an object of the table's class.
        let row = fields.iter().map(|field| unsafe { convert::field(ctx, values, field) }).collect();
        let inserted = store.insert(table, row);
        acknowledge(ctx, inserted.map(|(_, seq)| seq));
        inserted.map_or(0, |(id, _)| id)
    })
}

extern "C" fn table_get(ctx: *mut Ctx, table: u64, id: u64, column: u64) -> Pair {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return Pair::default() };
        let (table, column) = (table as u32, column as u32);
        let ty = type_of(ctx, store, table, column);
        let read = with_relief(ctx, |ctx| store.read(table, id, column, |cell| words_of(ctx, ty, cell)));
        let Words(first, second) = settled(ctx, read);
        Pair(first, second)
    })
}

extern "C" fn table_set(ctx: *mut Ctx, table: u64, id: u64, column: u64, first: u64, second: u64) {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return };
        let (table, column) = (table as u32, column as u32);
        let ty = type_of(ctx, store, table, column);
        // SAFETY: see the module.
        let value = unsafe { convert::value_of(ctx, ty, first, second) };
        acknowledge(ctx, store.set(table, id, column, value));
    });
}

extern "C" fn table_update(ctx: *mut Ctx, table: u64, id: u64, column: u64, op: i64, operand: u64) {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return };
        let result = store.update(table as u32, id, column as u32, |cell| {
            let Cell::Word(old) = cell else { return Err((trap::BOUNDS, trap::NULL_RECEIVER)) };
            compute(op, old, operand).map(Value::Word)
        });
        match result {
            Ok(seq) => acknowledge(ctx, Ok(seq)),
            Err(UpdateError::Refused(refusal)) => raise(ctx, refusal),
            Err(UpdateError::Computation((code, text))) => ctx.raise(code, text),
        }
    });
}

/// `old op operand`; the error is a trap.
fn compute(op: i64, old: u64, operand: u64) -> Result<u64, (i64, &'static str)> {
    let (a, b) = (old as i64, operand as i64);
    let float = |f: fn(f64, f64) -> f64| f(f64::from_bits(old), f64::from_bits(operand)).to_bits();
    let divide = |result: Option<i64>| match result {
        Some(result) => Ok(result as u64),
        None if b == 0 => Err((trap::DIV0, trap::DIVISION_BY_ZERO)),
        None => Err((trap::DIV0, trap::MIN_BY_MINUS_ONE)),
    };
    Ok(match op {
        numbers::UPDATE_ADD => a.wrapping_add(b) as u64,
        numbers::UPDATE_SUB => a.wrapping_sub(b) as u64,
        numbers::UPDATE_MUL => a.wrapping_mul(b) as u64,
        numbers::UPDATE_DIV => divide(a.checked_div(b))?,
        numbers::UPDATE_REM => divide(a.checked_rem(b))?,
        numbers::UPDATE_FLOAT_ADD => float(|a, b| a + b),
        numbers::UPDATE_FLOAT_SUB => float(|a, b| a - b),
        numbers::UPDATE_FLOAT_MUL => float(|a, b| a * b),
        numbers::UPDATE_FLOAT_DIV => float(|a, b| a / b),
        _ => return Err((trap::EXPLICIT, "internal error: unknown operation of a compound assignment")),
    })
}

extern "C" fn table_delete(ctx: *mut Ctx, table: u64, id: u64) -> u64 {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return 0 };
        acknowledge(ctx, store.delete(table as u32, id));
        0
    })
}

extern "C" fn table_backlink(ctx: *mut Ctx, table: u64, index: u64, id: u64) -> *mut Obj {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return Ptr::default() };
        let rows = match store.referrers(table as u32, index as u32, id) {
            Ok(rows) => rows,
            Err(refusal) => {
                raise(ctx, refusal);
                return Ptr::default();
            }
        };
        ctx.spends(rows.len() as u64);
        let element = row_type(ctx, store.table(table as u32).map_or(0, |desc| desc.class));
        Ptr(with_relief(ctx, |ctx| list_of_words(ctx, element, &rows)))
    })
    .0
}

extern "C" fn table_backlink_len(ctx: *mut Ctx, table: u64, index: u64, id: u64) -> u64 {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return 0 };
        let count = settled(ctx, store.count_referrers(table as u32, index as u32, id));
        ctx.spends(count);
        count
    })
}

/// The columns of a row as a fresh object of its class; null where there is no such row, and beside a pending trap.
fn row_object(ctx: &mut Ctx, class: u32, id: u64) -> *mut Obj {
    let shapes = object::shapes(ctx);
    let Some(store) = store(ctx) else { return std::ptr::null_mut() };
    let Some(table) = shapes.tables.iter().position(|table| table.class == class) else { return std::ptr::null_mut() };
    let obj = object::new(ctx, class);
    if obj.is_null() {
        return obj;
    }
    let fields = class_of(ctx, store, table as u32).map_or(&[][..], |class| &class.fields);
    let read = store.read_row(table as u32, id, |cells| {
        for (field, cell) in fields.iter().zip(cells) {
            let Words(first, second) = words_of(ctx, field.ty, *cell);
            // SAFETY: the class's description keeps fields within the object, which is this function's own.
            unsafe {
                let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                at.write(first);
                if object::plans(ctx).words(field.ty) == 2 {
                    at.add(1).write(second);
                }
            }
        }
    });
    if read.is_ok() && ctx.trap == 0 {
        return obj;
    }
    // SAFETY: the only reference.
    unsafe { object::release(ctx, obj) };
    std::ptr::null_mut()
}

/// The type of rows of a class: the compiler makes it wherever a program can hold one.
fn row_type(ctx: &Ctx, class: u32) -> TypeIdx {
    let types = &object::shapes(ctx).types;
    types.iter().position(|ty| *ty == TypeDesc::Row(class)).map_or(abi::desc::TYPE_INT, |at| at as u32)
}

/// A list of one-word elements; null with a pending trap when memory is short.
fn list_of_words(ctx: &mut Ctx, element: TypeIdx, words: &[u64]) -> *mut Obj {
    let list = multi::new(ctx, element, i64::try_from(words.len()).unwrap_or(0));
    if list.is_null() {
        return list;
    }
    for word in words {
        // SAFETY: a live list of this function's own, of scalars.
        if !unsafe { multi::push(ctx, list, *word, 0) } {
            // SAFETY: the only reference.
            unsafe { object::release(ctx, list) };
            return std::ptr::null_mut();
        }
    }
    list
}
