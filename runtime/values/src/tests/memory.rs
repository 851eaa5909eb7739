//! Release, accounting, the heap bound.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use crate::object::{self, Obj};
use crate::testing::{World, add_class, add_type, fixed_shapes};
use crate::{map, multi, text};
use abi::desc::{Shapes, TYPE_INT, TYPE_TEXT, TypeDesc};

/// Type of the field `kids`.
pub(super) const KIDS: u32 = 8;

/// `Node { n: Int, next: ?Node, kids: multi Node, names: map<Text, Node>, tag: Text }`
pub(super) fn node_shapes() -> Shapes {
    let mut s = fixed_shapes();
    let node = add_type(&mut s, TypeDesc::Object(0));
    let next = add_type(&mut s, TypeDesc::Nullable(node));
    let kids = add_type(&mut s, TypeDesc::Multi(node));
    let names = add_type(&mut s, TypeDesc::Map(TYPE_TEXT, node));
    let class = add_class(
        &mut s,
        "Node",
        &[
            ("n", TYPE_INT, None),
            ("next", next, None),
            ("kids", kids, None),
            ("names", names, None),
            ("tag", TYPE_TEXT, None),
        ],
    );
    assert_eq!(class, 0);
    s
}

pub(super) fn field(obj: *mut Obj, i: usize) -> *mut u64 {
    unsafe { obj.cast::<u64>().add(1 + i) }
}

#[test]
fn a_million_deep_list_is_freed() {
    let mut w = World::new(node_shapes());
    // On a small stack, so that recursion would show.
    let free = |w: World| {
        let handle = std::thread::Builder::new().stack_size(64 << 10);
        struct Sendable(World);
        unsafe impl Send for Sendable {}
        impl Sendable {
            fn open(self) -> World {
                self.0
            }
        }
        let w = Sendable(w);
        handle
            .spawn(move || {
                let mut w = w.open();
                let first = w.ctx.trap_msg;
                w.ctx.trap_msg = std::ptr::null_mut();
                w.release(first);
                assert_eq!(w.live(), (0, 0));
            })
            .unwrap()
            .join()
            .unwrap();
    };
    let mut list = std::ptr::null_mut::<Obj>();
    for i in 0..1_000_000u64 {
        let node = object::new(&mut w.ctx, 0);
        unsafe {
            *field(node, 0) = i;
            match i % 3 {
                0 => *field(node, 1) = list as u64,
                1 => {
                    let kids = multi::new(&mut w.ctx, KIDS, 0);
                    let extra = object::new(&mut w.ctx, 0);
                    assert!(multi::push(&mut w.ctx, kids, list as u64, 0));
                    assert!(multi::push(&mut w.ctx, kids, extra as u64, 0));
                    *field(node, 2) = kids as u64;
                }
                _ => {
                    let names = map::new(&mut w.ctx, TYPE_TEXT, 6);
                    *map::slot(&mut w.ctx, names, text::of_byte(b'x') as u64) = list as u64;
                    let key = text::new(&mut w.ctx, b"another key");
                    *map::slot(&mut w.ctx, names, key as u64) = 0;
                    object::release(&mut w.ctx, key);
                    *field(node, 3) = names as u64;
                }
            }
            *field(node, 4) = text::new(&mut w.ctx, b"some tag") as u64;
        }
        list = node;
    }
    assert!(w.live().0 > 3_000_000);
    w.ctx.trap_msg = list;
    free(w);
}

#[test]
fn wide_containers_are_freed_and_shared_elements_survive() {
    let mut w = World::new(node_shapes());
    let shared = object::new(&mut w.ctx, 0);
    let kids = multi::new(&mut w.ctx, KIDS, 0);
    for i in 0..10_000 {
        let kid = if i % 7 == 0 {
            unsafe { object::retain(shared) };
            shared
        } else {
            object::new(&mut w.ctx, 0)
        };
        assert!(unsafe { multi::push(&mut w.ctx, kids, kid as u64, 0) });
    }
    w.release(kids);
    assert_eq!(w.live().0, 1);
    assert_eq!(unsafe { object::count(shared) }, 1);
    w.release(shared);
}

#[test]
fn immortal_objects_are_not_counted() {
    let mut w = World::new(fixed_shapes());
    for _ in 0..10 {
        unsafe { object::retain(text::empty()) };
    }
    for _ in 0..100 {
        w.release(text::empty());
    }
    assert_eq!(unsafe { object::count(text::empty()) }, abi::layout::IMMORTAL);
}

#[test]
fn unknown_class_traps() {
    let mut w = World::new(fixed_shapes());
    assert!(object::new(&mut w.ctx, 99).is_null());
    assert_eq!(w.take_trap().unwrap().0, 8);
}
