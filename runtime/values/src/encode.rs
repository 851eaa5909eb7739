//! JSON text of a value (language specification 10.1).

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans};
use crate::text::{self, Builder};
use crate::{map, multi};
use abi::desc::{Shapes, TypeDesc, TypeIdx};
use abi::layout::{FIRST_CLASS, KIND_BYTES, KIND_TEXT};
use abi::trap;
use codec::Sink;
use codec::json::DEPTH;

/// Why a value has no JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    TooDeep,
    /// A row handle; tables are not part of this runtime yet, so every handle is stale.
    NoRow,
}

/// The JSON text of the value. Null and a trap on failure: 4, 5 `no such row`, 6 `json: nesting too deep`.
///
/// # Safety
/// The words are a live value of type `ty` on this shard.
pub unsafe fn encode(ctx: &mut Ctx, ty: TypeIdx, first: u64, second: u64) -> *mut Obj {
    let mut out = Builder::new(ctx, KIND_TEXT, 232);
    // SAFETY: the caller's promise.
    let refusal = match unsafe { write(&mut out, ty, first, second) } {
        Ok(()) => return out.finish(),
        Err(refusal) => refusal,
    };
    drop(out);
    match refusal {
        Refusal::TooDeep => ctx.raise(trap::BOUNDS, "json: nesting too deep"),
        Refusal::NoRow => ctx.raise(trap::DB, "no such row"),
    }
    std::ptr::null_mut()
}

/// Appends the JSON text of the value; on a refusal the text is incomplete.
///
/// # Safety
/// As for `encode`.
pub unsafe fn write(out: &mut Builder<'_>, ty: TypeIdx, first: u64, second: u64) -> Result<(), Refusal> {
    let (shapes, plans) = (object::shapes(out.ctx()), object::plans(out.ctx()));
    let mut encoder = Encoder { out, shapes, plans, depth: 0 };
    // SAFETY: the caller's promise.
    unsafe { encoder.value(ty, first, second, false) }
}

struct Encoder<'b, 'c> {
    out: &'b mut Builder<'c>,
    shapes: &'b Shapes,
    plans: &'b Plans,
    depth: u32,
}

impl Encoder<'_, '_> {
    /// Recursion ends at `DEPTH` levels.
    ///
    /// # Safety
    /// The words are a live value of type `ty`.
    unsafe fn value(&mut self, ty: TypeIdx, first: u64, second: u64, field: bool) -> Result<(), Refusal> {
        // SAFETY: the caller's promise, and the type says what the words are.
        unsafe {
            match self.shapes.ty(ty) {
                TypeDesc::Nullable(inner) if self.plans.words(ty) == 2 => {
                    if first == 0 {
                        self.out.put(b"null");
                        return Ok(());
                    }
                    return self.value(inner, second, 0, field);
                }
                TypeDesc::Nullable(inner) => return self.value(inner, first, 0, field),
                TypeDesc::Int | TypeDesc::Ordinal(_) => self.out.put_int(first as i64),
                TypeDesc::Row(_) if field => self.out.put_int(first as i64),
                TypeDesc::Row(_) => return Err(Refusal::NoRow),
                TypeDesc::Bool => self.out.put(if first == 0 { b"false" } else { b"true" }),
                TypeDesc::Float => {
                    let f = f64::from_bits(first);
                    if f.is_finite() {
                        self.out.put(codec::float::format(f).as_bytes());
                    } else {
                        self.out.put(b"null");
                    }
                }
                // Every type below is a pointer.
                _ if first == 0 => self.out.put(b"null"),
                TypeDesc::Actor => self.out.put_int(first as i64),
                TypeDesc::Text => codec::json::quote(self.out, text::bytes(first as *mut Obj)),
                TypeDesc::Bytes => self.base64(text::bytes(first as *mut Obj)),
                TypeDesc::Json => self.out.put(text::bytes(first as *mut Obj)),
                TypeDesc::Multi(element) => return self.multi(element, first as *mut Obj),
                TypeDesc::Map(key, value) => return self.map(key, value, first as *mut Obj),
                TypeDesc::Object(_) | TypeDesc::Union(_) | TypeDesc::Interface => {
                    return self.object(first as *mut Obj);
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Refusal> {
        if self.depth >= DEPTH {
            return Err(Refusal::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    unsafe fn multi(&mut self, element: TypeIdx, obj: *mut Obj) -> Result<(), Refusal> {
        self.enter()?;
        self.out.put(b"[");
        let words = self.plans.words(element);
        // SAFETY: a live multi, which encoding does not change.
        let all = unsafe { multi::words_with(self.plans, obj) };
        let mut i = 0;
        while let Some(&first) = all.get(i) {
            if i > 0 {
                self.out.put(b",");
            }
            let second = if words == 2 { all.get(i + 1).copied().unwrap_or(0) } else { 0 };
            // SAFETY: an element of the type.
            unsafe { self.value(element, first, second, false)? };
            // A graph of few objects can have an endless text; memory ends it.
            if self.out.failed() {
                break;
            }
            i += words;
        }
        self.out.put(b"]");
        self.depth -= 1;
        Ok(())
    }

    unsafe fn map(&mut self, key: TypeIdx, value: TypeIdx, obj: *mut Obj) -> Result<(), Refusal> {
        self.enter()?;
        let words = self.plans.words(value);
        let mut separator: &[u8] = b"{";
        // SAFETY: a live map, which encoding does not change; entries hold a key and a value of the types.
        for entry in unsafe { map::entries(obj) } {
            self.out.put(separator);
            separator = b",";
            unsafe {
                self.key(key, *entry);
                self.out.put(b":");
                self.value(value, *entry.add(1), if words == 2 { *entry.add(2) } else { 0 }, false)?;
            }
            if self.out.failed() {
                break;
            }
        }
        self.out.put(if separator == b"{" { b"{}" } else { b"}" });
        self.depth -= 1;
        Ok(())
    }

    unsafe fn key(&mut self, ty: TypeIdx, word: u64) {
        match self.shapes.ty(ty) {
            // SAFETY: a live key of the type.
            TypeDesc::Text | TypeDesc::Json => codec::json::quote(self.out, unsafe { text::bytes(word as *mut Obj) }),
            // SAFETY: as above.
            TypeDesc::Bytes => self.base64(unsafe { text::bytes(word as *mut Obj) }),
            other => {
                self.out.put(b"\"");
                match other {
                    TypeDesc::Bool => self.out.put(if word == 0 { b"false" } else { b"true" }),
                    TypeDesc::Float => self.out.put(codec::float::format(f64::from_bits(word)).as_bytes()),
                    _ => self.out.put_int(word as i64),
                }
                self.out.put(b"\"");
            }
        }
    }

    unsafe fn object(&mut self, obj: *mut Obj) -> Result<(), Refusal> {
        // SAFETY: a live object; its kind tells its class, and the class where its fields are.
        unsafe {
            let class = (*obj).kind.wrapping_sub(FIRST_CLASS) as usize;
            let (Some(desc), Some(plan)) = (self.shapes.classes.get(class), self.plans.classes.get(class)) else {
                self.out.put(b"null");
                return Ok(());
            };
            self.enter()?;
            self.out.put(b"{");
            for (i, (field, key)) in desc.fields.iter().zip(&plan.json_keys).enumerate() {
                self.out.put(if i == 0 { key.get(1..).unwrap_or_default() } else { key });
                let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                let second = if self.plans.words(field.ty) == 2 { *at.add(1) } else { 0 };
                self.value(field.ty, *at, second, true)?;
                if self.out.failed() {
                    break;
                }
            }
            self.out.put(b"}");
            self.depth -= 1;
        }
        Ok(())
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.out.put(b"\"");
        // In pieces of a multiple of three bytes, so that padding comes at the end only.
        for piece in bytes.chunks(3 * 256) {
            let mut buf = [0; 4 * 256];
            let len = piece.len().div_ceil(3) * 4;
            if let Some(room) = buf.get_mut(..len) {
                let n = codec::base64::encode(piece, room);
                self.out.put(room.get(..n).unwrap_or_default());
            }
        }
        self.out.put(b"\"");
    }
}

/// JSON of a value for a message, or what stands in for it; never leaves a refusal pending.
///
/// # Safety
/// As for `encode`.
pub unsafe fn describe(ctx: &mut Ctx, ty: TypeIdx, first: u64, second: u64) -> Vec<u8> {
    let mut out = Builder::new(ctx, KIND_BYTES, 232);
    // SAFETY: the caller's promise.
    match unsafe { write(&mut out, ty, first, second) } {
        Ok(()) => out.bytes().to_vec(),
        Err(Refusal::TooDeep) => b"(nested too deep)".to_vec(),
        Err(Refusal::NoRow) => b"(row)".to_vec(),
    }
}
