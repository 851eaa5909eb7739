//! Structural equality, as `assert_eq` sees it. The walk keeps its own list of open pairs: a fiber's stack leaves the
//! runtime too little room to recurse.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans};
use crate::{map, multi, text};
use abi::desc::{FieldDesc, Shapes, TypeDesc, TypeIdx};
use abi::layout::FIRST_CLASS;
use codec::json::DEPTH;
use std::collections::HashSet;

/// Whether two values of type `ty` are equal: by `==`, and containers, records, classes and payload unions member by
/// member. Values that differ only beyond 128 levels, or nest deeper, count as different. Maps are equal when they have
/// the same keys with equal values, in any order.
///
/// # Safety
/// Both pairs of words are live values of type `ty` on this shard.
#[must_use]
pub unsafe fn equal(ctx: &Ctx, ty: TypeIdx, left: [u64; 2], right: [u64; 2]) -> bool {
    let mut comparer =
        Comparer { shapes: object::shapes(ctx), plans: object::plans(ctx), open: Vec::new(), known: HashSet::new() };
    // SAFETY: the caller's promise.
    unsafe { comparer.run(Pair { ty, left, right }) }
}

struct Comparer<'a> {
    shapes: &'a Shapes,
    plans: &'a Plans,
    /// Pairs of objects whose members are being compared, outermost first.
    open: Vec<Open<'a>>,
    /// Pairs of shared objects found equal, so that a graph is not walked once per path.
    known: HashSet<(*mut Obj, *mut Obj)>,
}

/// Two values to be compared.
struct Pair {
    ty: TypeIdx,
    left: [u64; 2],
    right: [u64; 2],
}

struct Open<'a> {
    left: *mut Obj,
    right: *mut Obj,
    members: Members<'a>,
}

enum Members<'a> {
    Elements { ty: TypeIdx, left: &'a [u64], right: &'a [u64] },
    Entries { value: TypeIdx, position: u32 },
    Fields(std::slice::Iter<'a, FieldDesc>),
}

impl Comparer<'_> {
    /// The first difference ends the walk, nesting too deep included.
    ///
    /// # Safety
    /// Live values of the pair's type, which nothing changes meanwhile.
    unsafe fn run(&mut self, pair: Pair) -> bool {
        let mut next = Some(pair);
        loop {
            // SAFETY: the caller's promise holds for everything below the values too.
            unsafe {
                if let Some(pair) = next
                    && !self.begin(&pair)
                {
                    return false;
                }
                let Some(mut open) = self.open.pop() else { return true };
                match self.member(&mut open) {
                    Err(Different) => return false,
                    Ok(Some(pair)) => {
                        self.open.push(open);
                        next = Some(pair);
                    }
                    Ok(None) => {
                        if shared(open.left, open.right) {
                            let _ = self.known.insert((open.left, open.right));
                        }
                        next = None;
                    }
                }
            }
        }
    }

    /// Compares scalars; opens objects. False: they are different.
    unsafe fn begin(&mut self, pair: &Pair) -> bool {
        let ([mut a, a2], [mut b, b2]) = (pair.left, pair.right);
        let mut desc = self.shapes.ty(pair.ty);
        if let TypeDesc::Nullable(inner) = desc {
            if self.plans.words(pair.ty) == 2 {
                if a == 0 || b == 0 {
                    return a == b;
                }
                (a, b) = (a2, b2);
            }
            desc = self.shapes.ty(inner);
        }
        let (left, right) = (a as *mut Obj, b as *mut Obj);
        // SAFETY: the type says what the words are.
        let members = unsafe {
            match desc {
                TypeDesc::Float => return f64::from_bits(a) == f64::from_bits(b),
                TypeDesc::Int
                | TypeDesc::Bool
                | TypeDesc::Ordinal(_)
                | TypeDesc::Row(_)
                | TypeDesc::Actor
                | TypeDesc::Interface
                | TypeDesc::Nullable(_) => return a == b,
                _ if a == 0 || b == 0 || a == b => return a == b,
                TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => return text::eq(left, right),
                TypeDesc::Multi(ty) => {
                    let (left, right) = (multi::words_with(self.plans, left), multi::words_with(self.plans, right));
                    if left.len() != right.len() {
                        return false;
                    }
                    Members::Elements { ty, left, right }
                }
                TypeDesc::Map(_, value) => {
                    if (*left.cast::<map::Map>()).len != (*right.cast::<map::Map>()).len {
                        return false;
                    }
                    Members::Entries { value, position: 0 }
                }
                TypeDesc::Object(_) | TypeDesc::Union(_) => {
                    if (*left).kind != (*right).kind {
                        return false;
                    }
                    match self.shapes.classes.get((*left).kind.wrapping_sub(FIRST_CLASS) as usize) {
                        Some(class) => Members::Fields(class.fields.iter()),
                        None => return false,
                    }
                }
            }
        };
        // SAFETY: live objects.
        if unsafe { shared(left, right) } && self.known.contains(&(left, right)) {
            return true;
        }
        if self.open.len() >= DEPTH as usize {
            return false;
        }
        self.open.push(Open { left, right, members });
        true
    }

    /// The next pair of members, if there is one.
    unsafe fn member(&mut self, open: &mut Open<'_>) -> Result<Option<Pair>, Different> {
        // SAFETY: members of live objects are of the types that their shapes name.
        unsafe {
            let read = |at: *const u64, ty| [*at, if self.plans.words(ty) == 2 { *at.add(1) } else { 0 }];
            match &mut open.members {
                Members::Elements { ty, left, right } => {
                    let (Some(a), Some(b)) = (left.first(), right.first()) else { return Ok(None) };
                    let pair = Pair { ty: *ty, left: read(a, *ty), right: read(b, *ty) };
                    let size = self.plans.words(*ty);
                    *left = left.get(size..).unwrap_or_default();
                    *right = right.get(size..).unwrap_or_default();
                    Ok(Some(pair))
                }
                Members::Entries { value, position } => {
                    let Some(entry) = map::next_entry(open.left, position) else { return Ok(None) };
                    let other = map::find(open.right, *entry);
                    if other.is_null() {
                        return Err(Different);
                    }
                    Ok(Some(Pair { ty: *value, left: read(entry.add(1), *value), right: read(other, *value) }))
                }
                Members::Fields(fields) => {
                    let Some(field) = fields.next() else { return Ok(None) };
                    let place = |obj: *mut Obj| obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                    let (left, right) = (read(place(open.left), field.ty), read(place(open.right), field.ty));
                    Ok(Some(Pair { ty: field.ty, left, right }))
                }
            }
        }
    }
}

/// A key of one map is missing in the other.
struct Different;

/// Whether both objects can be reached in more than one way.
///
/// # Safety
/// Live objects.
unsafe fn shared(a: *mut Obj, b: *mut Obj) -> bool {
    // SAFETY: the caller's promise.
    unsafe { object::count(a) > 1 && object::count(b) > 1 }
}
