//! What the scheduler needs of `values`, in the form it needs it: texts, release, the hand-over of messages, the counts
//! of actors' addresses inside objects.

use crate::actor::{self, Actor};
use abi::desc::{ClassDesc, Shapes, TypeDesc, TypeIdx};
use std::ffi::c_void;
use values::ctx::Ctx;
use values::cycles::with_relief;
use values::object::{self, ActorHooks, Obj};

/// The bytes of a Text or Bytes object; empty for null.
///
/// # Safety
/// `t` is null or a live Text or Bytes, which stays alive and unchanged for `'a`.
#[must_use]
pub unsafe fn bytes<'a>(t: *const Obj) -> &'a [u8] {
    if t.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { values::text::bytes(t.cast_mut()) }
}

/// Drops one reference of `o`, which may be null.
pub fn release(ctx: &mut Ctx, o: *mut Obj) {
    // SAFETY: the scheduler gives up a reference that it owns: a message, a state, a trap's text.
    unsafe { object::release(ctx, o) };
}

/// A fresh Text; null with a pending trap 4 when memory is short, also after a collection.
pub fn text(ctx: &mut Ctx, bytes: &[u8]) -> *mut Obj {
    with_relief(ctx, |ctx| values::text::new(ctx, bytes))
}

/// Lets objects count the actors' addresses they hold.
pub fn install_hooks() {
    values::object::set_actor_hooks(ActorHooks { retain: hook_retain, release: hook_release });
}

fn hook_retain(_ctx: *mut Ctx, a: *mut c_void) {
    actor::retain(a.cast::<Actor>());
}

fn hook_release(_ctx: *mut Ctx, a: *mut c_void) {
    actor::release_later(a.cast::<Actor>());
}

/// Per class: whether an object of it may change hands as it is. Others can share parts with what the sender keeps.
/// `texts`: it stays on its shard, where texts may be shared.
#[must_use]
pub fn plain_classes(shapes: &Shapes, texts: bool) -> Vec<bool> {
    let plain = |ty: TypeDesc| match ty {
        TypeDesc::Int
        | TypeDesc::Bool
        | TypeDesc::Float
        | TypeDesc::Ordinal(_)
        | TypeDesc::Row(_)
        | TypeDesc::Actor => true,
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => texts,
        TypeDesc::Multi(_)
        | TypeDesc::Map(..)
        | TypeDesc::Object(_)
        | TypeDesc::Union(_)
        | TypeDesc::Interface
        | TypeDesc::Nullable(_) => false,
    };
    let field = |ty| match shapes.ty(ty) {
        TypeDesc::Nullable(inner) => plain(shapes.ty(inner)),
        ty => plain(ty),
    };
    shapes.classes.iter().map(|c| c.fields.iter().all(|f| field(f.ty))).collect()
}

/// Whether a field of this type is an actor's address or nil.
fn is_address(shapes: &Shapes, ty: TypeIdx) -> bool {
    match shapes.ty(ty) {
        TypeDesc::Nullable(inner) => shapes.ty(inner) == TypeDesc::Actor,
        ty => ty == TypeDesc::Actor,
    }
}

/// Per class: offsets of the fields that hold an actor's address or nil.
#[must_use]
pub fn actor_fields(shapes: &Shapes) -> Vec<Vec<u32>> {
    let fields = |c: &ClassDesc| c.fields.iter().filter(|f| is_address(shapes, f.ty)).map(|f| f.offset).collect();
    shapes.classes.iter().map(fields).collect()
}

/// Per class: whether an object of it can hold addresses of actors elsewhere than in its own fields.
#[must_use]
pub fn deep_holders(shapes: &Shapes) -> Vec<bool> {
    let anywhere = shapes.types.contains(&TypeDesc::Actor);
    // Grows until nothing changes: what a class holds depends on what the classes of its fields hold.
    let mut holds: Vec<bool> = vec![false; shapes.classes.len()];
    let reaches = |holds: &[bool], ty| {
        let mut types = vec![(ty, 0)];
        while let Some((ty, depth)) = types.pop() {
            match shapes.ty(ty) {
                TypeDesc::Actor => return true,
                TypeDesc::Interface if anywhere => return true,
                TypeDesc::Nullable(inner) | TypeDesc::Multi(inner) if depth < shapes.types.len() => {
                    types.push((inner, depth + 1));
                }
                TypeDesc::Map(key, value) if depth < shapes.types.len() => {
                    types.extend([(key, depth + 1), (value, depth + 1)]);
                }
                TypeDesc::Object(class) if holds.get(class as usize).copied().unwrap_or(false) => return true,
                TypeDesc::Union(u) => {
                    let classes = shapes.unions.get(u as usize).map_or(&[][..], |u| &u.classes);
                    if classes.iter().any(|c| holds.get(*c as usize).copied().unwrap_or(false)) {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    };
    loop {
        let next: Vec<bool> = shapes.classes.iter().map(|c| c.fields.iter().any(|f| reaches(&holds, f.ty))).collect();
        if next == holds {
            break;
        }
        holds = next;
    }
    let deep = |c: &ClassDesc| c.fields.iter().any(|f| !is_address(shapes, f.ty) && reaches(&holds, f.ty));
    shapes.classes.iter().map(deep).collect()
}

/// Makes a message independent of what its sender keeps, on this shard (`here`) or another; `plain` says of which classes
/// it is already. Consumes it; null with a pending trap 4 when memory is short.
pub fn hand_over(ctx: &mut Ctx, plain: &[bool], here: bool, msg: *mut Obj) -> *mut Obj {
    if msg.is_null() {
        return msg;
    }
    // SAFETY: the caller owns a reference, so the object lives and may be given away.
    unsafe {
        let class = (*msg).kind.wrapping_sub(abi::layout::FIRST_CLASS) as usize;
        if object::count(msg) == 1 && plain.get(class).copied().unwrap_or(false) {
            return msg;
        }
        if here { values::copy::transfer_here(ctx, msg) } else { values::copy::transfer(ctx, msg) }
    }
}
