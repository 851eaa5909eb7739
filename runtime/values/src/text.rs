//! Text and Bytes: immutable byte strings. Length at 8, capacity and cached hash at 16, bytes at 24.
//!
//! A text that has only one reference is appended to in place; its spare capacity doubles, so that a loop of appends
//! takes linear time.

use crate::ctx::{Ctx, GiveWay};
use crate::cycles;
use crate::object::{self, Obj};
use abi::layout::{IMMORTAL, KIND_BYTES, KIND_TEXT, TEXT_DATA, TEXT_LEN};
use abi::symbols::{PART_BOOL, PART_FLOAT, PART_INT, PART_TEXT};
use codec::{PIECE, Sink};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// What precedes the bytes of a Text or Bytes.
#[repr(C)]
pub struct Text {
    pub header: Obj,
    pub len: u64,
    /// Bytes of storage behind this structure; meaningless for immortal texts.
    capacity: u32,
    /// Hash of the content, 0 while not computed; only used in mortal texts.
    hash: AtomicU32,
}

const HEAD: usize = size_of::<Text>();

const _: () = {
    assert!(std::mem::offset_of!(Text, len) == TEXT_LEN as usize);
    assert!(HEAD == TEXT_DATA as usize);
};

/// Longest text in bytes. The specification asks for 2^31-1 at least.
pub const MAX_LEN: usize = u32::MAX as usize - 4096;

/// Storage for the constant texts that the runtime itself needs, laid out as in generated code.
#[repr(C)]
pub struct StaticText<const N: usize> {
    head: Text,
    bytes: [u8; N],
}

impl<const N: usize> StaticText<N> {
    #[must_use]
    pub const fn new(bytes: [u8; N]) -> StaticText<N> {
        let header = Obj { count: AtomicI32::new(IMMORTAL), kind: KIND_TEXT };
        StaticText { head: Text { header, len: N as u64, capacity: 0, hash: AtomicU32::new(0) }, bytes }
    }

    /// The text as an object. Immortal objects are never written to.
    #[must_use]
    pub const fn obj(&'static self) -> *mut Obj {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

static EMPTY: StaticText<0> = StaticText::new([]);
static EMPTY_BYTES: StaticText<0> = {
    let mut bytes = StaticText::new([]);
    bytes.head.header.kind = KIND_BYTES;
    bytes
};
static TRUE: StaticText<4> = StaticText::new(*b"true");
static FALSE: StaticText<5> = StaticText::new(*b"false");
static NULL: StaticText<4> = StaticText::new(*b"null");
static OUT_OF_MEMORY: StaticText<13> = StaticText::new(*b"out of memory");

/// The empty text.
#[must_use]
pub fn empty() -> *mut Obj {
    EMPTY.obj()
}

/// The empty Bytes.
#[must_use]
pub fn empty_bytes() -> *mut Obj {
    EMPTY_BYTES.obj()
}

/// `true` or `false`.
#[must_use]
pub fn of_bool(value: bool) -> *mut Obj {
    if value { TRUE.obj() } else { FALSE.obj() }
}

/// The text `null`: the zero value of `json.Value`.
#[must_use]
pub fn null() -> *mut Obj {
    NULL.obj()
}

/// All texts of one byte.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
static BYTES: [StaticText<1>; 256] = {
    #[allow(clippy::declare_interior_mutable_const, reason = "each element of the array is a fresh copy")]
    const EMPTY: StaticText<1> = StaticText::new([0]);
    let mut all = [EMPTY; 256];
    let mut i = 0;
    while i < 256 {
        all[i].bytes[0] = i as u8;
        i += 1;
    }
    all
};

/// The text of one byte.
#[must_use]
pub fn of_byte(byte: u8) -> *mut Obj {
    BYTES.get(usize::from(byte)).map_or(empty(), StaticText::obj)
}

pub(crate) fn out_of_memory() -> *mut Obj {
    OUT_OF_MEMORY.obj()
}

/// The bytes of a Text or Bytes; null counts as empty.
///
/// # Safety
/// `obj` is null or a live Text or Bytes that is neither freed nor appended to while the slice is in use.
#[inline]
#[must_use]
pub unsafe fn bytes<'a>(obj: *mut Obj) -> &'a [u8] {
    if obj.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; `len` bytes behind the head are initialised.
    unsafe {
        let text = obj.cast::<Text>();
        std::slice::from_raw_parts(obj.cast::<u8>().add(HEAD), (*text).len as usize)
    }
}

fn data(obj: *mut Obj) -> *mut u8 {
    obj.cast::<u8>().wrapping_add(HEAD)
}

/// A mortal text or Bytes of length `len` with room for `capacity` bytes, which are not initialised; null and trap 4
/// when memory is short.
#[inline]
fn allocate(ctx: &mut Ctx, kind: u32, len: usize, capacity: usize) -> *mut Obj {
    if capacity > MAX_LEN {
        object::out_of_memory(ctx);
        return std::ptr::null_mut();
    }
    let capacity = rounded(capacity);
    let obj = object::allocate(ctx, HEAD + capacity, kind, false);
    if !obj.is_null() {
        let text = obj.cast::<Text>();
        // SAFETY: fresh memory of at least `HEAD` bytes.
        unsafe {
            (*text).len = len as u64;
            (*text).capacity = capacity as u32;
            (*text).hash = AtomicU32::new(0);
        }
    }
    obj
}

/// Rounds a capacity up so that the whole object fills a size class of the allocator.
#[inline]
const fn rounded(capacity: usize) -> usize {
    ((capacity + HEAD + 15) & !15) - HEAD
}

/// A new text with these bytes, count 1. Null and trap 4 when memory is short.
pub fn new(ctx: &mut Ctx, bytes: &[u8]) -> *mut Obj {
    new_kind(ctx, KIND_TEXT, bytes)
}

/// A new Bytes with these bytes, count 1. Null and trap 4 when memory is short.
pub fn new_bytes(ctx: &mut Ctx, bytes: &[u8]) -> *mut Obj {
    new_kind(ctx, KIND_BYTES, bytes)
}

/// A new object of `kind` (Text or Bytes) with these bytes. Null and trap 4 when memory is short.
#[inline]
pub fn new_kind(ctx: &mut Ctx, kind: u32, bytes: &[u8]) -> *mut Obj {
    if bytes.is_empty() {
        return if kind == KIND_TEXT { empty() } else { empty_bytes() };
    }
    let obj = allocate(ctx, kind, bytes.len(), bytes.len());
    if !obj.is_null() {
        // SAFETY: the object has room for the bytes and is new, so the two do not overlap.
        let _ = unsafe { copy_to(data(obj), bytes) };
    }
    obj
}

/// A new object of `kind` (Text or Bytes) of length `len`, which `fill` writes (it gets zeros). Null and trap 4 when
/// memory is short; `fill` is then not called.
pub fn new_with(ctx: &mut Ctx, kind: u32, len: usize, fill: impl FnOnce(&mut [u8])) -> *mut Obj {
    if len == 0 {
        return new_kind(ctx, kind, &[]);
    }
    let obj = allocate(ctx, kind, len, len);
    if !obj.is_null() {
        // SAFETY: the object is new, has room for `len` bytes, and they are initialised before the slice is made.
        unsafe {
            data(obj).write_bytes(0, len);
            fill(std::slice::from_raw_parts_mut(data(obj), len));
        }
    }
    obj
}

/// Frees a dead text or Bytes.
///
/// # Safety
/// `obj` is a mortal Text or Bytes with count zero, not used any more.
#[inline]
pub(crate) unsafe fn free(ctx: &mut Ctx, obj: *mut Obj) {
    // SAFETY: mortal texts come from `allocate` or `grow`, which keep `capacity` true.
    unsafe {
        let capacity = (*obj.cast::<Text>()).capacity as usize;
        object::deallocate(ctx, obj, HEAD + capacity);
    }
}

/// Moves the only reference of a text to storage of at least `capacity` bytes. Null and trap 4 when memory is short;
/// `obj` is then as before.
///
/// # Safety
/// `obj` is a mortal text with one reference, owned by the caller; on success only the result may be used.
unsafe fn grow(ctx: &mut Ctx, obj: *mut Obj, capacity: usize) -> *mut Obj {
    if capacity > MAX_LEN {
        object::out_of_memory(ctx);
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let old = (*obj.cast::<Text>()).capacity as usize;
        let wanted = rounded(capacity.max(old.saturating_mul(2).min(MAX_LEN)));
        let moved = object::raw_realloc(ctx, obj.cast(), HEAD + old, HEAD + wanted).cast::<Obj>();
        if !moved.is_null() {
            (*moved.cast::<Text>()).capacity = wanted as u32;
        }
        moved
    }
}

/// Whether two texts have the same bytes; null equals null only.
///
/// # Safety
/// Both are null or live Texts or Bytes.
#[inline]
#[must_use]
pub unsafe fn eq(a: *mut Obj, b: *mut Obj) -> bool {
    if a == b {
        return true;
    }
    if a.is_null() || b.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe { bytes(a) == bytes(b) }
}

/// Hash of the bytes as maps use it; never 0.
///
/// # Safety
/// `obj` is null or a live Text or Bytes of this shard.
#[inline]
#[must_use]
pub unsafe fn hash(obj: *mut Obj) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        if obj.is_null() {
            return 1;
        }
        if object::count(obj) < 0 {
            return hash_bytes(bytes(obj));
        }
        let cached = &(*obj.cast::<Text>()).hash;
        let known = cached.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let computed = hash_bytes(bytes(obj));
        cached.store(computed, Ordering::Relaxed);
        computed
    }
}

fn hash_bytes(bytes: &[u8]) -> u32 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = seed().build_hasher();
    hasher.write(bytes);
    let h = hasher.finish();
    ((h ^ (h >> 32)) as u32).max(1)
}

/// The process's hash state, seeded at random so that keys from outside cannot be chosen to collide.
pub(crate) fn seed() -> &'static foldhash::fast::FixedState {
    static SEED: OnceLock<foldhash::fast::FixedState> = OnceLock::new();
    SEED.get_or_init(|| {
        use std::hash::{BuildHasher, Hasher};
        foldhash::fast::FixedState::with_seed(std::hash::RandomState::new().build_hasher().finish())
    })
}

// -- concatenation -----------------------------------------------------------------------------------------------

/// One part of a concatenation, as generated code lays it out: kind (`abi::symbols::PART_*`) and value word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub kind: i64,
    pub word: u64,
}

/// Copies bytes to `at`; their number. Short ones, the usual case, without a call.
///
/// # Safety
/// There is room for them at `at`, and the two do not overlap.
#[inline]
unsafe fn copy_to(at: *mut u8, from: &[u8]) -> usize {
    let (n, from) = (from.len(), from.as_ptr());
    // SAFETY: the caller's promise; each pair of words covers the bytes and nothing else.
    unsafe {
        match n {
            0 => {}
            1..4 => {
                *at = *from;
                *at.add(n / 2) = *from.add(n / 2);
                *at.add(n - 1) = *from.add(n - 1);
            }
            4..8 => {
                let (first, last) =
                    (from.cast::<u32>().read_unaligned(), from.add(n - 4).cast::<u32>().read_unaligned());
                at.cast::<u32>().write_unaligned(first);
                at.add(n - 4).cast::<u32>().write_unaligned(last);
            }
            8..=16 => {
                let (first, last) =
                    (from.cast::<u64>().read_unaligned(), from.add(n - 8).cast::<u64>().read_unaligned());
                at.cast::<u64>().write_unaligned(first);
                at.add(n - 8).cast::<u64>().write_unaligned(last);
            }
            _ => at.copy_from_nonoverlapping(from, n),
        }
    }
    n
}

/// Writes a part to `at`; its length.
///
/// # Safety
/// There is room for `bound` bytes at `at`; a text part is null or a live Text that does not reach there.
#[inline]
unsafe fn write_part(at: *mut u8, part: Part) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match part.kind {
            PART_INT => copy_to(at, codec::int::format(part.word as i64).as_bytes()),
            PART_FLOAT => copy_to(at, codec::float::format(f64::from_bits(part.word)).as_bytes()),
            PART_BOOL => copy_to(at, if part.word == 0 { b"false" } else { b"true" }),
            _ => copy_to(at, bytes(part.word as *mut Obj)),
        }
    }
}

/// Upper bound of a part's length.
#[inline]
unsafe fn bound(part: Part) -> usize {
    match part.kind {
        PART_INT => 20,
        PART_FLOAT => 32,
        PART_BOOL => 5,
        // SAFETY: as for `write_part`.
        _ => unsafe { bytes(part.word as *mut Obj).len() },
    }
}

/// The parts after each other as a new text; null and trap 4 when memory is short.
///
/// # Safety
/// Text parts are null or live Texts of this shard.
pub unsafe fn concat(ctx: &mut Ctx, parts: &[Part]) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe {
        if let [Part { kind: PART_INT, word }] = *parts {
            return new(ctx, codec::int::format(word as i64).as_bytes());
        }
        let room = parts.iter().fold(0usize, |n, &p| n.saturating_add(bound(p)));
        if room == 0 {
            return empty();
        }
        let obj = allocate(ctx, KIND_TEXT, 0, room);
        if obj.is_null() {
            return obj;
        }
        let mut len = 0;
        for &part in parts {
            len += write_part(data(obj).add(len), part);
        }
        (*obj.cast::<Text>()).len = len as u64;
        obj
    }
}

/// `text` with the parts behind it. Consumes `text` and grows it in place where this was its only reference. Null and
/// trap 4 when memory is short; `text` is consumed all the same.
///
/// # Safety
/// `text` is null or a live Text of which the caller owns a reference; text parts are null or live Texts, one of which
/// may be `text` itself.
pub unsafe fn append(ctx: &mut Ctx, text: *mut Obj, parts: &[Part]) -> *mut Obj {
    // SAFETY: the caller's promise. A part that is `text` itself is read from its new place, where its first `len`
    // bytes are the same; the write goes behind them.
    unsafe {
        let len = bytes(text).len();
        // The usual turn of a loop: one text goes into spare room.
        if let [Part { kind: PART_TEXT, word }] = *parts
            && word as *mut Obj != text
            && !text.is_null()
            && object::count(text) == 1
        {
            let more = bytes(word as *mut Obj);
            if len + more.len() <= (*text.cast::<Text>()).capacity as usize {
                let end = len + copy_to(data(text).add(len), more);
                (*text.cast::<Text>()).len = end as u64;
                (*text.cast::<Text>()).hash = AtomicU32::new(0);
                return text;
            }
        }
        let room = parts.iter().fold(len, |n, &p| n.saturating_add(bound(p)));
        if room == len {
            return if text.is_null() { empty() } else { text };
        }
        let old = text;
        let text = if !text.is_null() && object::count(text) == 1 {
            if room <= (*text.cast::<Text>()).capacity as usize {
                text
            } else {
                let moved = cycles::with_relief(ctx, |ctx| grow(ctx, text, room));
                if moved.is_null() {
                    object::release(ctx, text);
                    return moved;
                }
                moved
            }
        } else {
            let copy = cycles::with_relief(ctx, |ctx| allocate(ctx, KIND_TEXT, len, room));
            if !copy.is_null() {
                data(copy).copy_from_nonoverlapping(bytes(text).as_ptr(), len);
            }
            // Another owner keeps the bytes alive for the parts below: the count was not one.
            object::release(ctx, text);
            if copy.is_null() {
                return copy;
            }
            copy
        };
        let mut end = len;
        for &part in parts {
            let at = data(text).add(end);
            end += if part.kind == PART_TEXT && part.word as *mut Obj == old {
                copy_to(at, std::slice::from_raw_parts(data(text), len))
            } else {
                write_part(at, part)
            };
        }
        (*text.cast::<Text>()).len = end as u64;
        (*text.cast::<Text>()).hash = AtomicU32::new(0);
        text
    }
}

// -- builder -----------------------------------------------------------------------------------------------------

/// A text under construction. Growth failures are remembered, with their trap pending, and `finish` then gives null.
pub struct Builder<'c> {
    ctx: &'c mut Ctx,
    /// Owned, count 1; null after a failure.
    obj: *mut Obj,
}

impl<'c> Builder<'c> {
    /// A builder with room for `capacity` bytes at first.
    pub fn new(ctx: &'c mut Ctx, kind: u32, capacity: usize) -> Builder<'c> {
        let obj = allocate(ctx, kind, 0, capacity);
        Builder { ctx, obj }
    }

    /// Gives up what has been put, and takes no more.
    fn close(&mut self) {
        // SAFETY: null, or the only reference to the object under construction.
        unsafe { object::release(self.ctx, std::mem::replace(&mut self.obj, std::ptr::null_mut())) };
    }

    pub fn ctx(&mut self) -> &mut Ctx {
        self.ctx
    }

    /// What has been put so far; empty after a failure.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: null, or the only reference to the object under construction, which the borrow keeps from changing.
        unsafe { bytes(self.obj) }
    }

    pub fn put_int(&mut self, n: i64) {
        self.put(codec::int::format(n).as_bytes());
    }

    /// The finished object; null when memory ran out. Ample spare room is given back.
    #[must_use]
    pub fn finish(mut self) -> *mut Obj {
        let obj = std::mem::replace(&mut self.obj, std::ptr::null_mut());
        if obj.is_null() {
            return obj;
        }
        // SAFETY: the builder owns the only reference; nothing else knows the object.
        unsafe {
            let text = obj.cast::<Text>();
            let (len, capacity) = ((*text).len as usize, (*text).capacity as usize);
            let fit = rounded(len);
            if capacity > 64 && capacity - capacity / 4 > fit {
                let moved = object::raw_realloc(self.ctx, obj.cast(), HEAD + capacity, HEAD + fit).cast::<Obj>();
                if moved.is_null() {
                    object::release(self.ctx, obj);
                } else {
                    (*moved.cast::<Text>()).capacity = fit as u32;
                }
                return moved;
            }
        }
        obj
    }
}

impl Sink for Builder<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.obj.is_null() {
            return;
        }
        // SAFETY: the builder owns the only reference. `bytes` cannot point into it, because it never lends it out.
        unsafe {
            let len = (*self.obj.cast::<Text>()).len as usize;
            let end = len.saturating_add(bytes.len());
            if end > (*self.obj.cast::<Text>()).capacity as usize {
                let moved = grow(self.ctx, self.obj, end);
                if moved.is_null() {
                    self.close();
                    return;
                }
                self.obj = moved;
            }
            let _ = copy_to(data(self.obj).add(len), bytes);
            (*self.obj.cast::<Text>()).len = end as u64;
        }
    }

    fn is_closed(&self) -> bool {
        self.obj.is_null()
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A builder of long texts, which lets other fibers have their turn between pieces.
pub struct Gradual<'c> {
    out: Builder<'c>,
    give_way: GiveWay,
    /// Bytes until the next turn.
    left: usize,
}

impl<'c> Gradual<'c> {
    /// A builder with room for `capacity` bytes at first.
    pub fn new(ctx: &'c mut Ctx, kind: u32, capacity: usize, give_way: GiveWay) -> Gradual<'c> {
        Gradual { out: Builder::new(ctx, kind, capacity), give_way, left: PIECE }
    }

    /// The finished object; null beside a pending trap.
    #[must_use]
    pub fn finish(self) -> *mut Obj {
        self.out.finish()
    }

    /// Puts the rest of the piece; and the other bytes, after others had their turn.
    #[cold]
    fn put_pieces(&mut self, bytes: &[u8]) {
        let (piece, mut rest) = bytes.split_at(self.left);
        self.out.put(piece);
        while !rest.is_empty() && !self.is_closed() {
            if !(self.give_way)(self.out.ctx()) {
                self.out.close();
            }
            let (piece, after) = rest.split_at(rest.len().min(PIECE));
            self.out.put(piece);
            self.left = PIECE - piece.len();
            rest = after;
        }
    }
}

impl Sink for Gradual<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > self.left {
            self.put_pieces(bytes);
            return;
        }
        self.left -= bytes.len();
        self.out.put(bytes);
    }

    fn is_closed(&self) -> bool {
        self.out.is_closed()
    }
}
