//! `query.run` and `query.count`: operands from their object, results into lists.

use super::convert::{cell_of, field_words, words_of};
use super::{Ptr, raise, settled, store};
use abi::desc::{ClassIdx, FieldDesc, TYPE_INT, TypeDesc, TypeIdx};
use abi::tables::{Access, QueryDesc};
use abi::trap;
use smallvec::SmallVec;
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
        let Some((desc, values, operands)) = (unsafe { read_operands(ctx, query, operands) }) else {
            return Ptr::default();
        };
        let operands = Operands { values: &values, ..operands };
        Ptr(with_relief(ctx, |ctx| run(ctx, query as u32, desc, &operands)))
    })
    .0
}

pub(super) extern "C" fn query_count(ctx: *mut Ctx, query: u64, operands: *mut Obj) -> u64 {
    entry(ctx, |ctx| {
        let Some(store) = store(ctx) else { return 0 };
        // SAFETY: see the module.
        let Some((_, values, operands)) = (unsafe { read_operands(ctx, query, operands) }) else { return 0 };
        let operands = Operands { values: &values, ..operands };
        let mut seen = 0;
        let count = store.count(query as u32, &operands, &mut seen);
        ctx.spends(seen);
        settled(ctx, count)
    })
}

/// Few, mostly.
type Values<'a> = SmallVec<[Cell<'a>; 4]>;

/// The values of the operands and the operands without them, borrowed from their object; `None` with a pending trap.
///
/// # Safety
/// See the module.
unsafe fn read_operands<'a>(
    ctx: &mut Ctx,
    query: u64,
    obj: *mut Obj,
) -> Option<(&'a QueryDesc, Values<'a>, Operands<'a>)> {
    let shapes = object::shapes(ctx);
    let desc = shapes.queries.get(query as usize)?;
    let (mut values, mut out) = (Values::new(), Operands::default());
    let Some(class) = desc.operands.and_then(|class| shapes.classes.get(class as usize)) else {
        return Some((desc, values, out));
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
        values.push(value);
    }
    Some((desc, values, out))
}

type ListsOf = SmallVec<[(*mut Obj, TypeIdx); 2]>;

/// The lists of a result while they grow.
struct Lists<'c> {
    ctx: &'c mut Ctx,
    /// With the types of their elements; the ids first, if they are asked for.
    lists: ListsOf,
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

/// The result of a query; null with a pending trap.
fn run(ctx: &mut Ctx, query: u32, desc: &QueryDesc, operands: &Operands<'_>) -> *mut Obj {
    let Some(store) = store(ctx) else { return std::ptr::null_mut() };
    let shapes = object::shapes(ctx);
    let fields = shapes.classes.get(desc.result as usize).map_or(&[][..], |class| &class.fields);
    let mut lists = SmallVec::new();
    let result = if let [field] = fields {
        let list = new_list(ctx, field);
        lists.push(list);
        list.0
    } else {
        object_of_lists(ctx, desc.result, fields, &mut lists)
    };
    if result.is_null() {
        return result;
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

/// An empty list of a result, with the type of its elements; null with a pending trap.
fn new_list(ctx: &mut Ctx, field: &FieldDesc) -> (*mut Obj, TypeIdx) {
    let element = match object::shapes(ctx).ty(field.ty) {
        TypeDesc::Multi(element) => element,
        // A result has no other fields.
        _ => TYPE_INT,
    };
    (multi::new(ctx, element, 0), element)
}

/// An object of a result's class with the empty lists that are added to `lists`; null with a pending trap.
fn object_of_lists(ctx: &mut Ctx, class: ClassIdx, fields: &[FieldDesc], lists: &mut ListsOf) -> *mut Obj {
    let result = object::new(ctx, class);
    if result.is_null() {
        return result;
    }
    for field in fields {
        let list = new_list(ctx, field);
        // SAFETY: the field lies within the fresh object, which owns the list from here on.
        unsafe { result.cast::<u8>().add(field.offset as usize).cast::<u64>().write(list.0 as u64) };
        if list.0.is_null() {
            // SAFETY: the only reference.
            unsafe { object::release(ctx, result) };
            return std::ptr::null_mut();
        }
        lists.push(list);
    }
    result
}
