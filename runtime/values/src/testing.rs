//! A context with an image of given shapes, for tests of this crate and of the builtins.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test support")]
#![allow(clippy::not_unsafe_ptr_arg_deref, reason = "test support: callers pass live objects")]

use crate::ctx::{Ctx, FuncInfo, Heap, Image};
use crate::object::{self, Obj};
use crate::text;
use abi::desc::{ClassDesc, ClassKind, Default as FieldDefault, FIXED_TYPES, FieldDesc, Shapes, TypeDesc, TypeIdx};

/// A fiber's context with everything it points at.
pub struct World {
    pub ctx: Box<Ctx>,
    heap: *mut Heap,
    image: *mut Image,
}

/// Shapes with the fixed types, to be extended.
#[must_use]
pub fn fixed_shapes() -> Shapes {
    Shapes { types: FIXED_TYPES.to_vec(), ..Shapes::default() }
}

/// Adds a type and returns its index.
pub fn add_type(shapes: &mut Shapes, ty: TypeDesc) -> TypeIdx {
    if let Some(i) = shapes.types.iter().position(|&t| t == ty) {
        return i as u32;
    }
    shapes.types.push(ty);
    shapes.types.len() as u32 - 1
}

/// Adds a record class with these fields and returns its index.
pub fn add_class(shapes: &mut Shapes, name: &str, fields: &[(&str, TypeIdx, Option<FieldDefault>)]) -> u32 {
    let mut offset = 8;
    let mut descs = Vec::new();
    for (name, ty, default) in fields {
        descs.push(FieldDesc { name: (*name).to_string(), ty: *ty, offset, default: default.clone() });
        offset += shapes.words(*ty) * 8;
    }
    shapes.classes.push(ClassDesc {
        name: name.to_string(),
        package: None,
        kind: ClassKind::Record,
        size: offset,
        fields: descs,
        reply: None,
    });
    shapes.classes.len() as u32 - 1
}

impl World {
    #[must_use]
    pub fn new(shapes: Shapes) -> World {
        let image = Box::into_raw(Box::new(Image {
            funcs: vec![
                FuncInfo { display: "main".into(), file: "main.wo".into() },
                FuncInfo { display: "Order.each".into(), file: "order.wo".into() },
            ],
            ..Image::of(shapes)
        }));
        let heap = Box::into_raw(Box::<Heap>::default());
        let ctx = Box::new(Ctx { budget: 4000, ..Ctx::new(heap, image) });
        World { ctx, heap, image }
    }

    /// The image, to be changed before anything runs.
    pub fn image(&mut self) -> &mut Image {
        // SAFETY: made in `new`, freed in `drop`; tests hold no other reference meanwhile.
        unsafe { &mut *self.image }
    }

    /// Objects and bytes that are alive.
    #[must_use]
    pub fn live(&self) -> (i64, i64) {
        // SAFETY: as above.
        unsafe { ((*self.heap).objects_live, (*self.heap).bytes_live) }
    }

    /// A new text.
    pub fn text(&mut self, t: &str) -> *mut Obj {
        text::new(&mut self.ctx, t.as_bytes())
    }

    /// The content of a text.
    #[must_use]
    pub fn read(&self, obj: *mut Obj) -> String {
        // SAFETY: tests pass live texts.
        String::from_utf8_lossy(unsafe { text::bytes(obj) }).into_owned()
    }

    /// The content of a text, which is released.
    pub fn take(&mut self, obj: *mut Obj) -> String {
        let t = self.read(obj);
        self.release(obj);
        t
    }

    pub fn release(&mut self, obj: *mut Obj) {
        // SAFETY: tests pass references they own.
        unsafe { object::release(&mut self.ctx, obj) };
    }

    /// Frees all garbage cycles.
    pub fn collect(&mut self) {
        crate::cycles::collect_all(&mut self.ctx);
    }

    /// Code and text of the pending trap, which is cleared.
    pub fn take_trap(&mut self) -> Option<(i64, String)> {
        if self.ctx.trap == 0 {
            return None;
        }
        let msg = std::mem::replace(&mut self.ctx.trap_msg, std::ptr::null_mut());
        let code = std::mem::take(&mut self.ctx.trap);
        Some((code, self.take(msg)))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.collect();
        }
        let live = self.live();
        // SAFETY: made in `new`; the context is not used any more.
        unsafe {
            drop(Box::from_raw(self.heap));
            drop(Box::from_raw(self.image));
        }
        if !std::thread::panicking() {
            assert_eq!(live, (0, 0), "objects and bytes alive at the end");
        }
    }
}
