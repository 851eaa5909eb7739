//! JSON text of a value (language specification 10.1). The walk keeps its own list of open containers: a fiber's stack
//! leaves the runtime too little room to recurse.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans};
use crate::text::{self, Builder};
use crate::{map, multi};
use abi::desc::{ClassIdx, FieldDesc, Shapes, TypeDesc, TypeIdx};
use abi::layout::{FIRST_CLASS, KIND_BYTES, KIND_TEXT};
use abi::trap;
use codec::Sink;
use codec::json::DEPTH;
use std::sync::OnceLock;

/// Why a value has no JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    TooDeep,
    /// A row handle without a row; or there was no memory for the row, and the trap is pending.
    NoRow,
}

/// How the columns of a row are read; set once, by whoever has the tables. It gives a fresh object of the class; null
/// where there is no such row, and beside a pending trap.
pub type RowReader = fn(&mut Ctx, ClassIdx, u64) -> *mut Obj;

static ROW_READER: OnceLock<RowReader> = OnceLock::new();

/// Sets the reader. A second call changes nothing.
pub fn set_row_reader(reader: RowReader) {
    let _ = ROW_READER.set(reader);
}

/// The JSON text of the value. Null and a trap on failure: 4, 5 `no such row`, 6 `json: nesting too deep`.
///
/// # Safety
/// The words are a live value of type `ty` on this shard.
pub unsafe fn encode(ctx: &mut Ctx, ty: TypeIdx, first: u64, second: u64) -> *mut Obj {
    let mut out = Builder::new(ctx, KIND_TEXT, 232);
    // SAFETY: the caller's promise.
    let refusal = match unsafe { write(&mut out, ty, first, second) } {
        Ok(()) => {
            let made = out.finish();
            // SAFETY: null or a fresh text.
            ctx.works(unsafe { text::bytes(made) }.len());
            return made;
        }
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
    let mut encoder = Encoder { out, shapes, plans, open: Vec::new(), rows: Vec::new() };
    // SAFETY: the caller's promise.
    let written = unsafe { encoder.run(Value { ty, first, second, field: false }) };
    encoder.release_rows(0);
    written
}

struct Encoder<'b, 'c> {
    out: &'b mut Builder<'c>,
    shapes: &'b Shapes,
    plans: &'b Plans,
    /// Containers around the one being written, outermost first.
    open: Vec<Open<'b>>,
    /// Those of them that are rows, read for this purpose: each is released when it is closed.
    rows: Vec<*mut Obj>,
}

/// A value to be written.
#[derive(Clone, Copy)]
struct Value {
    ty: TypeIdx,
    first: u64,
    second: u64,
    /// It is a field, where a row handle is written as its id.
    field: bool,
}

/// A container whose opening bracket and first members have been written.
enum Open<'b> {
    Multi { element: TypeIdx, words: &'b [u64], at: usize },
    Map { key: TypeIdx, value: TypeIdx, obj: *mut Obj, position: u32 },
    Object { fields: &'b [FieldDesc], keys: &'b [Vec<u8>], obj: *mut Obj, at: usize },
}

impl<'b> Encoder<'b, '_> {
    /// Writes the value and all below it.
    ///
    /// # Safety
    /// A live value of its type, which nothing changes meanwhile.
    unsafe fn run(&mut self, value: Value) -> Result<(), Refusal> {
        // SAFETY: the caller's promise holds for everything below the value too.
        unsafe {
            let Some(mut current) = self.begin(value)? else { return Ok(()) };
            loop {
                match self.member(&mut current) {
                    Some(value) => {
                        if let Some(inner) = self.begin(value)? {
                            if self.open.len() + 1 >= DEPTH as usize {
                                return Err(Refusal::TooDeep);
                            }
                            self.open.push(std::mem::replace(&mut current, inner));
                        }
                    }
                    // A graph of few objects can have an endless text; memory ends it.
                    None if self.out.is_closed() => return Ok(()),
                    None => {
                        if let Open::Object { obj, .. } = current
                            && self.rows.last() == Some(&obj)
                        {
                            self.release_rows(self.rows.len() - 1);
                        }
                        match self.open.pop() {
                            Some(outer) => current = outer,
                            None => return Ok(()),
                        }
                    }
                }
            }
        }
    }

    /// Writes a scalar, or the opening bracket of a container, which is returned.
    unsafe fn begin(&mut self, value: Value) -> Result<Option<Open<'b>>, Refusal> {
        let Value { mut ty, mut first, second, field } = value;
        let mut desc = self.shapes.ty(ty);
        if let TypeDesc::Nullable(inner) = desc {
            if self.plans.words(ty) == 2 {
                if first == 0 {
                    self.out.put(b"null");
                    return Ok(None);
                }
                first = second;
            }
            ty = inner;
            desc = self.shapes.ty(ty);
        }
        // SAFETY: the type says what the words are.
        unsafe {
            match desc {
                TypeDesc::Int | TypeDesc::Ordinal(_) => self.out.put_int(first as i64),
                TypeDesc::Row(_) if field => self.out.put_int(first as i64),
                TypeDesc::Row(class) => {
                    let obj = ROW_READER.get().map_or(std::ptr::null_mut(), |read| read(self.out.ctx(), class, first));
                    if obj.is_null() {
                        return Err(Refusal::NoRow);
                    }
                    self.rows.push(obj);
                    return Ok(Some(self.object(obj)));
                }
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
                TypeDesc::Multi(element) => {
                    let words = multi::words_with(self.plans, first as *mut Obj);
                    self.out.put(b"[");
                    return Ok(Some(Open::Multi { element, words, at: 0 }));
                }
                TypeDesc::Map(key, value) => {
                    self.out.put(b"{");
                    return Ok(Some(Open::Map { key, value, obj: first as *mut Obj, position: 0 }));
                }
                TypeDesc::Object(_) | TypeDesc::Union(_) | TypeDesc::Interface => {
                    return Ok(Some(self.object(first as *mut Obj)));
                }
                // The checker refuses `??T`.
                TypeDesc::Nullable(_) => self.out.put(b"null"),
            }
        }
        Ok(None)
    }

    /// Begins an object of a class.
    ///
    /// # Safety
    /// A live object of a class.
    unsafe fn object(&mut self, obj: *mut Obj) -> Open<'b> {
        // SAFETY: the caller's promise.
        let class = unsafe { (*obj).kind }.wrapping_sub(FIRST_CLASS) as usize;
        self.out.put(b"{");
        let fields = self.shapes.classes.get(class).map_or(&[][..], |desc| &desc.fields);
        let keys = self.plans.classes.get(class).map_or(&[][..], |plan| &plan.json_keys);
        Open::Object { fields, keys, obj, at: 0 }
    }

    /// Releases the rows from number `from` on.
    fn release_rows(&mut self, from: usize) {
        for obj in self.rows.drain(from..).rev() {
            // SAFETY: the reader gave the object to this walk, which does not come back to it.
            unsafe { object::release(self.out.ctx(), obj) };
        }
    }

    /// The next member of a container, with what precedes it written; or `None` with the closing bracket written.
    unsafe fn member(&mut self, open: &mut Open<'b>) -> Option<Value> {
        // SAFETY: members of a live container are of the types that it names.
        unsafe {
            match open {
                Open::Multi { element, words, at } => {
                    let Some(&first) = words.get(*at) else {
                        self.out.put(b"]");
                        return None;
                    };
                    if *at > 0 {
                        self.out.put(b",");
                    }
                    let size = self.plans.words(*element);
                    let second = if size == 2 { words.get(*at + 1).copied().unwrap_or(0) } else { 0 };
                    *at += size;
                    Some(Value { ty: *element, first, second, field: false })
                }
                Open::Map { key, value, obj, position } => {
                    let start = *position == 0;
                    let Some(entry) = map::next_entry(*obj, position) else {
                        self.out.put(b"}");
                        return None;
                    };
                    if !start {
                        self.out.put(b",");
                    }
                    self.key(*key, *entry);
                    self.out.put(b":");
                    let second = if self.plans.words(*value) == 2 { *entry.add(2) } else { 0 };
                    Some(Value { ty: *value, first: *entry.add(1), second, field: false })
                }
                Open::Object { fields, keys, obj, at } => {
                    let (Some(field), Some(key)) = (fields.get(*at), keys.get(*at)) else {
                        self.out.put(b"}");
                        return None;
                    };
                    self.out.put(if *at == 0 { key.get(1..).unwrap_or_default() } else { key });
                    *at += 1;
                    let place = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                    let second = if self.plans.words(field.ty) == 2 { *place.add(1) } else { 0 };
                    Some(Value { ty: field.ty, first: *place, second, field: true })
                }
            }
        }
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

    fn base64(&mut self, bytes: &[u8]) {
        self.out.put(b"\"");
        codec::base64::encode(bytes, self.out);
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
