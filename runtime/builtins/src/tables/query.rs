//! `query.run` and `query.count`: operands from their object, results into lists.

use super::convert::{cell_of, field_words, words_of};
use super::{Ptr, raise, row_type, settled, store};
use abi::desc::{FieldDesc, TypeDesc, TypeIdx};
use abi::tables::{Access, QueryDesc};
use abi::trap;
use store::{Cell, Operands, Sink};
use values::ctx::{Ctx, entry};
use values::cycles::{self, with_relief};
use values::multi;
use values::object::{self, Obj};

// SAFETY, for the whole module: generated code passes the context of the running fiber, and a live object of the
// query's class of operands, or null where it has none.

pub(super) extern "C" fn query_run(ctx: *mut Ctx, query: u64, operands: *mut Obj) -> *mut Obj {
    entry(ctx, |ctx| {
        cycles::poll(ctx);
        // SAFETY: see the module.
        let Some((desc, operands)) = (unsafe { read_operands(ctx, query, operands) }) else { return Ptr::default() };
        Ptr(with_relief(ctx, |ctx| run(ctx, query as u32, desc, &operands)))
    })
    .0
}

pub(super) extern "C" fn query_count(ctx: *mut Ctx, query: u64, operands: *mut Obj) -> u64 {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return 0 };
        // SAFETY: see the module.
        let Some((_, operands)) = (unsafe { read_operands(ctx, query, operands) }) else { return 0 };
        let mut seen = 0;
        let count = store.count(query as u32, &operands, &mut seen);
        ctx.spends(seen);
        settled(ctx, count)
    })
}

/// The operands, borrowed from their object.
///
/// # Safety
/// See the module.
unsafe fn read_operands<'a>(ctx: &mut Ctx, query: u64, obj: *mut Obj) -> Option<(&'a QueryDesc, Operands<'a>)> {
    let shapes = object::shapes(ctx);
    let desc = shapes.queries.get(query as usize)?;
    let mut out = Operands::default();
    let Some(class) = desc.operands.and_then(|class| shapes.classes.get(class as usize)) else {
        return Some((desc, out));
    };
    for (number, field) in (0..).zip(&class.fields) {
        // SAFETY: the object is of this class.
        let (first, second) = unsafe { field_words(ctx, obj, field) };
        let mut value = Cell::Nil;
        if desc.source == Some(number) {
            if desc.access == Access::List {
                // SAFETY: a live list, which the object keeps; only the fiber at hand could change it.
                out.list = unsafe { multi::words(ctx, first as *mut Obj) };
            } else {
                out.row = first;
            }
        } else if desc.skip == Some(number) {
            out.skip = u64::try_from(first as i64).unwrap_or(0);
        } else if desc.take == Some(number) {
            out.take = Some(u64::try_from(first as i64).unwrap_or(0));
        } else {
            // SAFETY: a live value of its type, which the object keeps.
            let Ok(cell) = (unsafe { cell_of(ctx, field.ty, first, second) }) else {
                ctx.raise(trap::EXPLICIT, "internal error: a query compares what the store cannot");
                return None;
            };
            value = cell;
        }
        out.values.push(value);
    }
    Some((desc, out))
}

/// The lists of a result while they grow.
struct Lists<'c> {
    ctx: &'c mut Ctx,
    /// With the types of their elements; the ids first, if they are asked for.
    lists: Vec<(*mut Obj, TypeIdx)>,
    ids: bool,
    charged: usize,
}

impl Sink for Lists<'_> {
    fn room(&mut self, bytes: usize) -> bool {
        let granted = object::charge_extra(self.ctx, bytes);
        self.charged += if granted { bytes } else { 0 };
        granted
    }

    fn row(&mut self, id: u64, cells: &[Cell<'_>]) -> bool {
        let first = usize::from(self.ids);
        if self.ids
            && let Some((list, _)) = self.lists.first()
            // SAFETY: a live list of this function's own, of scalars.
            && !unsafe { multi::push(self.ctx, *list, id, 0) }
        {
            return false;
        }
        for ((list, ty), cell) in self.lists.iter().skip(first).zip(cells) {
            let words = words_of(self.ctx, *ty, *cell);
            // SAFETY: as above; the words are a fresh value of the element type, which the list takes over.
            if self.ctx.trap != 0 || !unsafe { multi::push(self.ctx, *list, words.0, words.1) } {
                return false;
            }
        }
        true
    }
}

/// The object of a query's result; null with a pending trap.
fn run(ctx: &mut Ctx, query: u32, desc: &QueryDesc, operands: &Operands<'_>) -> *mut Obj {
    let Some(store) = store(ctx) else { return std::ptr::null_mut() };
    let shapes = object::shapes(ctx);
    let fields = shapes.classes.get(desc.result as usize).map_or(&[][..], |class| &class.fields);
    let result = object::new(ctx, desc.result);
    if result.is_null() {
        return result;
    }
    let element = |field: &FieldDesc| match shapes.ty(field.ty) {
        TypeDesc::Multi(element) => element,
        _ => row_type(ctx, 0),
    };
    let elements: Vec<TypeIdx> = fields.iter().map(element).collect();
    let mut lists = Vec::with_capacity(elements.len());
    for (field, element) in fields.iter().zip(elements) {
        let list = multi::new(ctx, element, 0);
        // SAFETY: the field lies within the fresh object, which owns the list from here on.
        unsafe { result.cast::<u8>().add(field.offset as usize).cast::<u64>().write(list as u64) };
        if list.is_null() {
            // SAFETY: the only reference.
            unsafe { object::release(ctx, result) };
            return std::ptr::null_mut();
        }
        lists.push((list, element));
    }
    let mut sink = Lists { ctx, lists, ids: desc.ids, charged: 0 };
    let mut seen = 0;
    let outcome = store.query(query, operands, &mut sink, &mut seen);
    let charged = sink.charged;
    object::uncharge(ctx, charged);
    ctx.spends(seen);
    match outcome {
        Ok(Some(())) => return result,
        Ok(None) => {}
        Err(refusal) => raise(ctx, refusal),
    }
    // SAFETY: the only reference.
    unsafe { object::release(ctx, result) };
    std::ptr::null_mut()
}
