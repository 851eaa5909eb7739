//! Deep copies and transfers of messages.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::memory::{KIDS, field, node_shapes};
use crate::object::{self, Obj};
use crate::testing::World;
use crate::{copy, map, multi, text};
use abi::desc::TYPE_TEXT;

fn node(w: &mut World, n: u64) -> *mut Obj {
    let obj = object::new(&mut w.ctx, 0);
    unsafe {
        *field(obj, 0) = n;
        *field(obj, 4) = w.text(&format!("tag {n}")) as u64;
    }
    obj
}

#[test]
fn an_unshared_message_moves() {
    let mut w = World::new(node_shapes());
    let a = node(&mut w, 1);
    let b = node(&mut w, 2);
    unsafe { *field(a, 1) = b as u64 };
    let moved = unsafe { copy::transfer(&mut w.ctx, a) };
    assert_eq!(moved, a);
    assert_eq!(unsafe { *field(moved, 1) }, b as u64);
    w.release(moved);
}

#[test]
fn what_is_shared_is_copied_with_its_sharing() {
    let mut w = World::new(node_shapes());
    let root = node(&mut w, 1);
    let shared = node(&mut w, 2);
    let below = node(&mut w, 3);
    let kids = multi::new(&mut w.ctx, KIDS, 0);
    unsafe {
        *field(shared, 1) = below as u64;
        // Referred to from outside, and three times from inside.
        for _ in 0..3 {
            object::retain(shared);
        }
        *field(root, 1) = shared as u64;
        assert!(multi::push(&mut w.ctx, kids, shared as u64, 0));
        assert!(multi::push(&mut w.ctx, kids, shared as u64, 0));
        *field(root, 2) = kids as u64;
        let moved = copy::transfer(&mut w.ctx, root);
        assert_eq!(moved, root);
        assert_eq!(object::count(shared), 1);
        let copied = *field(moved, 1);
        assert_ne!(copied, shared as u64);
        assert_eq!(multi::words(&w.ctx, *field(moved, 2) as *mut Obj), &[copied, copied]);
        assert_eq!(object::count(copied as *mut Obj), 3);
        assert_ne!(*field(copied as *mut Obj, 1), below as u64);
        assert_ne!(*field(copied as *mut Obj, 4), *field(shared, 4), "texts are not shared between shards");
        assert_eq!(w.read(*field(copied as *mut Obj, 4) as *mut Obj), "tag 2");
        w.release(moved);
    }
    w.release(shared);
}

#[test]
fn for_an_owner_of_this_shard_texts_stay_shared_and_nothing_else() {
    let mut w = World::new(node_shapes());
    let root = node(&mut w, 1);
    let shared = node(&mut w, 2);
    // SAFETY: see the module; the references taken here are given up below.
    unsafe {
        let tag = *field(root, 4) as *mut Obj;
        object::retain(tag);
        object::retain(shared);
        *field(root, 1) = shared as u64;
        let moved = copy::transfer_here(&mut w.ctx, root);
        assert_eq!(moved, root);
        assert_eq!((*field(moved, 4) as *mut Obj, object::count(tag)), (tag, 2));
        let copied = *field(moved, 1);
        assert_ne!(copied, shared as u64);
        assert_eq!(object::count(shared), 1);
        assert_eq!(*field(copied as *mut Obj, 4), *field(shared, 4));
        assert_eq!(object::count(*field(shared, 4) as *mut Obj), 2);
        // A shared root is copied, its text is not.
        object::retain(moved);
        let second = copy::transfer_here(&mut w.ctx, moved);
        assert_ne!(second, moved);
        assert_eq!((*field(second, 4) as *mut Obj, object::count(tag)), (tag, 3));
        w.release(second);
        w.release(moved);
        w.release(tag);
    }
    w.release(shared);
}

#[test]
fn a_shared_root_and_cycles_are_copied() {
    let mut w = World::new(node_shapes());
    let a = node(&mut w, 1);
    let b = node(&mut w, 2);
    unsafe {
        *field(a, 1) = b as u64;
        *field(b, 1) = a as u64;
        object::retain(a);
        let copied = copy::transfer(&mut w.ctx, a);
        assert_ne!(copied, a);
        let other = *field(copied, 1) as *mut Obj;
        assert_ne!(other, b);
        assert_eq!(*field(other, 1) as *mut Obj, copied);
        assert_eq!(*field(other, 0), 2);
        // Break the cycles, which counting does not find. Each root is held by its cycle and by the test or the copy.
        for (root, second) in [(a, b), (copied, other)] {
            *field(second, 1) = 0;
            while object::count(root) > 1 {
                object::release(&mut w.ctx, root);
            }
            object::release(&mut w.ctx, root);
        }
    }
}

#[test]
fn maps_are_copied_with_their_order() {
    let mut w = World::new(node_shapes());
    let m = map::new(&mut w.ctx, TYPE_TEXT, 6);
    for i in 0..100u64 {
        let key = w.text(&format!("key {i}"));
        let value = node(&mut w, i);
        unsafe { *map::slot(&mut w.ctx, m, key as u64) = value as u64 };
        w.release(key);
    }
    for i in (0..100).filter(|i| i % 4 == 2) {
        let key = w.text(&format!("key {i}"));
        assert!(unsafe { map::remove(&mut w.ctx, m, key as u64) });
        w.release(key);
    }
    unsafe { object::retain(m) };
    let copies = unsafe { [copy::deep_copy(&mut w.ctx, m), copy::transfer(&mut w.ctx, m)] };
    for copied in copies {
        assert_ne!(copied, m);
        let numbers = |m| -> Vec<u64> {
            unsafe { map::entries(m) }.map(|e| unsafe { *field(*e.add(1) as *mut Obj, 0) }).collect()
        };
        assert_eq!(numbers(copied), numbers(m));
        let key = w.text("key 55");
        let found = unsafe { map::find(copied, key as u64) };
        assert_eq!(unsafe { *field(*found as *mut Obj, 0) }, 55);
        w.release(key);
        w.release(copied);
    }
    w.release(m);
}

#[test]
fn deep_lists_are_copied_without_recursion() {
    let mut w = World::new(node_shapes());
    let mut list = std::ptr::null_mut::<Obj>();
    for i in 0..200_000u64 {
        let n = node(&mut w, i);
        unsafe { *field(n, 1) = list as u64 };
        list = n;
    }
    let copied = unsafe { copy::deep_copy(&mut w.ctx, list) };
    w.release(list);
    unsafe { object::retain(copied) };
    let second = unsafe { copy::transfer(&mut w.ctx, copied) };
    w.release(copied);
    assert_eq!(unsafe { *field(second, 0) }, 199_999);
    let moved = unsafe { copy::transfer(&mut w.ctx, second) };
    assert_eq!(moved, second);
    w.release(moved);
}

#[test]
fn texts_as_messages() {
    let mut w = World::new(node_shapes());
    let t = w.text("hello");
    assert_eq!(unsafe { copy::transfer(&mut w.ctx, t) }, t);
    unsafe { object::retain(t) };
    let copied = unsafe { copy::transfer(&mut w.ctx, t) };
    assert_ne!(copied, t);
    assert_eq!(w.take(copied), "hello");
    assert_eq!(unsafe { copy::deep_copy(&mut w.ctx, t) }, t);
    w.release(t);
    w.release(t);
    assert_eq!(unsafe { copy::transfer(&mut w.ctx, text::empty()) }, text::empty());
    assert!(unsafe { copy::transfer(&mut w.ctx, std::ptr::null_mut()) }.is_null());
}
