//! Structural equality, as `assert_eq` sees it.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans};
use crate::{map, multi, text};
use abi::desc::{Shapes, TypeDesc, TypeIdx};
use abi::layout::FIRST_CLASS;
use codec::json::DEPTH;
use std::collections::HashSet;

/// Whether two values of type `ty` are equal: by `==`, and containers, records, classes and payload unions member by
/// member. Values that differ only beyond 128 levels, or nest deeper, count as different. Maps are equal when they have
/// the same keys with equal values, in any order.
///
/// # Safety
/// Both pairs of words are live values of type `ty` on this shard.
pub unsafe fn equal(ctx: &Ctx, ty: TypeIdx, left: [u64; 2], right: [u64; 2]) -> bool {
    let mut comparer =
        Comparer { shapes: object::shapes(ctx), plans: object::plans(ctx), depth: 0, known: HashSet::new() };
    // SAFETY: the caller's promise.
    unsafe { comparer.values(ty, left, right) }
}

struct Comparer<'a> {
    shapes: &'a Shapes,
    plans: &'a Plans,
    depth: u32,
    /// Pairs of shared objects found equal, so that a graph is not walked once per path.
    known: HashSet<(*mut Obj, *mut Obj)>,
}

impl Comparer<'_> {
    /// Recursion ends at `DEPTH` levels. The first difference ends the walk, nesting too deep included.
    unsafe fn values(&mut self, ty: TypeIdx, left: [u64; 2], right: [u64; 2]) -> bool {
        let ([a, a2], [b, b2]) = (left, right);
        // SAFETY: the caller's promise, and the type says what the words are.
        unsafe {
            match self.shapes.ty(ty) {
                TypeDesc::Nullable(inner) if self.plans.words(ty) == 2 => {
                    if a == 0 || b == 0 {
                        a == b
                    } else {
                        self.values(inner, [a2, 0], [b2, 0])
                    }
                }
                TypeDesc::Nullable(inner) => self.values(inner, left, right),
                TypeDesc::Float => f64::from_bits(a) == f64::from_bits(b),
                TypeDesc::Int
                | TypeDesc::Bool
                | TypeDesc::Ordinal(_)
                | TypeDesc::Row(_)
                | TypeDesc::Actor
                | TypeDesc::Interface => a == b,
                _ if a == 0 || b == 0 => a == b,
                TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => text::eq(a as *mut Obj, b as *mut Obj),
                TypeDesc::Multi(element) => self.objects(a, b, |this, a, b| this.multis(element, a, b)),
                TypeDesc::Map(_, value) => self.objects(a, b, |this, a, b| this.maps(value, a, b)),
                TypeDesc::Object(_) | TypeDesc::Union(_) => self.objects(a, b, |this, a, b| this.fields(a, b)),
            }
        }
    }

    unsafe fn objects(&mut self, a: u64, b: u64, compare: impl FnOnce(&mut Self, *mut Obj, *mut Obj) -> bool) -> bool {
        let (a, b) = (a as *mut Obj, b as *mut Obj);
        // SAFETY: live objects.
        let shared = unsafe { object::count(a) > 1 && object::count(b) > 1 };
        if a == b || (shared && self.known.contains(&(a, b))) {
            return true;
        }
        if self.depth >= DEPTH {
            return false;
        }
        self.depth += 1;
        let same = compare(self, a, b);
        self.depth -= 1;
        if same && shared {
            let _ = self.known.insert((a, b));
        }
        same
    }

    fn multis(&mut self, element: TypeIdx, a: *mut Obj, b: *mut Obj) -> bool {
        let words = self.plans.words(element);
        // SAFETY: live multis, which comparing does not change.
        let (a, b) = unsafe { (multi::words_with(self.plans, a), multi::words_with(self.plans, b)) };
        let pair = |chunk: &[u64]| [chunk.first().copied().unwrap_or(0), chunk.get(1).copied().unwrap_or(0)];
        a.len() == b.len()
            && a.chunks(words).zip(b.chunks(words)).all(|(a, b)| {
                // SAFETY: elements of the type.
                unsafe { self.values(element, pair(a), pair(b)) }
            })
    }

    fn maps(&mut self, value: TypeIdx, a: *mut Obj, b: *mut Obj) -> bool {
        let words = self.plans.words(value);
        // SAFETY: live maps of one type, which comparing does not change.
        unsafe {
            let pair = |at: *const u64| [*at, if words == 2 { *at.add(1) } else { 0 }];
            (*a.cast::<map::Map>()).len == (*b.cast::<map::Map>()).len
                && map::entries(a).all(|entry| {
                    let other = map::find(b, *entry);
                    !other.is_null() && self.values(value, pair(entry.add(1)), pair(other))
                })
        }
    }

    fn fields(&mut self, a: *mut Obj, b: *mut Obj) -> bool {
        // SAFETY: live objects; the class says where the fields are.
        unsafe {
            if (*a).kind != (*b).kind {
                return false;
            }
            let Some(desc) = self.shapes.classes.get((*a).kind.wrapping_sub(FIRST_CLASS) as usize) else {
                return false;
            };
            desc.fields.iter().all(|field| {
                let two = self.plans.words(field.ty) == 2;
                let read = |obj: *mut Obj| {
                    let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                    [*at, if two { *at.add(1) } else { 0 }]
                };
                self.values(field.ty, read(a), read(b))
            })
        }
    }
}
