//! Heap objects: the header every one starts with, allocation within the process's memory bound, and release.
//!
//! Release is iterative: what dies is put on a list and taken apart one by one, so values of any depth are freed in
//! bounded stack. What a word in an object means is read from the image's `Plans`, derived once from the `Shapes`.

use crate::ctx::{Ctx, Heap};
use crate::pool::Pool;
use crate::{cycles, map, multi, shape, text};
use abi::desc::{Shapes, TypeDesc, TypeIdx};
use abi::layout::{FIRST_CLASS, IMMORTAL, KIND_BYTES, KIND_MAP, KIND_MULTI, KIND_TEXT, QUIET};
use std::alloc::Layout;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// A counted heap object: this header, then what its kind says (`abi::layout`).
#[repr(C)]
pub struct Obj {
    /// References, with the flag `layout::QUIET`. Not used atomically by generated code; the type only makes shared
    /// immortal objects sound to read.
    pub count: AtomicI32,
    pub kind: u32,
}

const _: () = {
    assert!(std::mem::offset_of!(Obj, count) == abi::layout::COUNT as usize);
    assert!(std::mem::offset_of!(Obj, kind) == abi::layout::KIND as usize);
    assert!(size_of::<Obj>() == abi::layout::FIELDS as usize);
};

/// How the addresses of actors are counted; set once by the scheduler, before the program starts.
pub struct ActorHooks {
    pub retain: fn(*mut Ctx, *mut c_void),
    /// Must not free objects on the spot: it runs in the middle of a release, and a chain of actors that hold each
    /// other's addresses would recurse. It queues what the actor held.
    pub release: fn(*mut Ctx, *mut c_void),
}

static HOOKS: OnceLock<ActorHooks> = OnceLock::new();

/// Sets the hooks. A second call changes nothing.
pub fn set_actor_hooks(hooks: ActorHooks) {
    let _ = HOOKS.set(hooks);
}

/// What the runtime must do about a word of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Scalar,
    /// A pointer to an object, or null.
    Counted,
    /// An actor's address, or null.
    Actor,
}

/// A class as release and copy see it.
#[derive(Debug)]
pub struct ClassPlan {
    /// Bytes, header included.
    pub size: usize,
    /// Byte offsets of the fields that are not scalars.
    pub slots: Vec<(usize, Slot)>,
    /// Per field, `,"name":` as JSON has it.
    pub json_keys: Vec<Vec<u8>>,
    /// Its objects can be on a cycle.
    pub traced: bool,
}

/// The shapes of an image, boiled down to what release and copy need.
#[derive(Debug)]
pub struct Plans {
    pub classes: Vec<ClassPlan>,
    types: Vec<TypePlan>,
}

#[derive(Clone, Copy, Debug)]
struct TypePlan {
    slot: Slot,
    /// Words in a container, 1 or 2.
    words: u32,
    /// A multi with elements of this type can be on a cycle; and a map with values of it.
    traced_multi: bool,
    traced_map: bool,
}

impl Plans {
    /// Those of the classes and types of `shapes`.
    #[must_use]
    pub fn new(shapes: &Shapes) -> Plans {
        let cyclic = shape::cyclic(shapes);
        let mut types: Vec<_> = (0..shapes.types.len() as u32)
            .map(|i| TypePlan {
                slot: slot_of(shapes, i),
                words: shapes.words(i),
                traced_multi: false,
                traced_map: false,
            })
            .collect();
        for (container, _) in shapes.types.iter().zip(&cyclic.types).filter(|(_, cyclic)| **cyclic) {
            match *container {
                TypeDesc::Multi(element) => {
                    if let Some(t) = types.get_mut(element as usize) {
                        t.traced_multi = true;
                    }
                }
                TypeDesc::Map(_, value) => {
                    if let Some(t) = types.get_mut(value as usize) {
                        t.traced_map = true;
                    }
                }
                _ => {}
            }
        }
        let classes = shapes.classes.iter().zip(cyclic.classes).map(|(class, traced)| ClassPlan {
            traced,
            size: (class.size as usize).max(size_of::<Obj>()),
            slots: class
                .fields
                .iter()
                .map(|f| (f.offset as usize, slot_of(shapes, f.ty)))
                .filter(|&(_, slot)| slot != Slot::Scalar)
                .collect(),
            json_keys: class.fields.iter().map(|f| json_key(&f.name)).collect(),
        });
        Plans { classes: classes.collect(), types }
    }

    /// What a value of type `ty` is in a container.
    #[must_use]
    pub fn slot(&self, ty: TypeIdx) -> Slot {
        self.types.get(ty as usize).map_or(Slot::Scalar, |t| t.slot)
    }

    /// Words a value of type `ty` takes in a container, 1 or 2.
    #[must_use]
    pub fn words(&self, ty: TypeIdx) -> usize {
        self.types.get(ty as usize).map_or(1, |t| t.words as usize)
    }

    /// Whether a multi with elements of type `ty` can be on a cycle.
    #[must_use]
    pub(crate) fn traced_multi(&self, ty: TypeIdx) -> bool {
        self.types.get(ty as usize).is_some_and(|t| t.traced_multi)
    }

    /// Whether a map with values of type `ty` can be on a cycle.
    #[must_use]
    pub(crate) fn traced_map(&self, ty: TypeIdx) -> bool {
        self.types.get(ty as usize).is_some_and(|t| t.traced_map)
    }
}

fn json_key(name: &str) -> Vec<u8> {
    let mut key = vec![b','];
    codec::json::quote(&mut key, name.as_bytes());
    key.push(b':');
    key
}

fn slot_of(shapes: &Shapes, ty: TypeIdx) -> Slot {
    match shapes.ty(ty) {
        TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => Slot::Scalar,
        TypeDesc::Text
        | TypeDesc::Bytes
        | TypeDesc::Json
        | TypeDesc::Multi(_)
        | TypeDesc::Map(..)
        | TypeDesc::Object(_)
        | TypeDesc::Union(_)
        | TypeDesc::Interface => Slot::Counted,
        TypeDesc::Actor => Slot::Actor,
        // The checker refuses `??T`, so this ends after one step.
        TypeDesc::Nullable(inner) if inner != ty => slot_of(shapes, inner),
        TypeDesc::Nullable(_) => Slot::Scalar,
    }
}

/// The plans of the running image.
#[inline]
#[must_use]
pub fn plans<'a>(ctx: &Ctx) -> &'a Plans {
    // SAFETY: the image outlives every context.
    unsafe { &(*ctx.image).plans }
}

/// The shapes of the running image.
#[must_use]
pub fn shapes<'a>(ctx: &Ctx) -> &'a Shapes {
    // SAFETY: the image outlives every context.
    unsafe { &(*ctx.image).shapes }
}

// -- memory account ----------------------------------------------------------------------------------------------

/// Bytes that shards take from the process's bound at a time, and beyond four of which they give back.
const CHUNK: i64 = 128 << 10;

/// Bytes of the bound that no shard has taken.
static AVAILABLE: AtomicI64 = AtomicI64::new(i64::MAX / 2);

/// The process's bound in bytes.
static LIMIT: AtomicI64 = AtomicI64::new(i64::MAX / 2);

/// Sets the process-wide bound in bytes. Called once, before the program starts.
pub fn set_heap_limit(bytes: u64) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 2);
    AVAILABLE.store(bytes, Ordering::Relaxed);
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Lifts the bound: the program has ended, and what it has left is only to be freed.
pub fn lift_heap_limit() {
    AVAILABLE.store(i64::MAX / 2, Ordering::Relaxed);
}

/// The process-wide bound in bytes.
pub(crate) fn heap_limit() -> i64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Takes `bytes` from the shard's account. False: the process's bound is reached.
#[inline]
fn charge(heap: &mut Heap, bytes: i64) -> bool {
    if heap.allowance < bytes && !refill(heap, bytes) && !use_grace(heap, bytes) {
        return false;
    }
    heap.allowance -= bytes;
    heap.bytes_live += bytes;
    true
}

#[cold]
fn refill(heap: &mut Heap, bytes: i64) -> bool {
    let missing = bytes - heap.allowance;
    for want in [missing + CHUNK, missing] {
        let take = |left: i64| (left >= want).then(|| left - want);
        if AVAILABLE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            heap.allowance += want;
            return true;
        }
    }
    false
}

/// Bytes beyond the bound that a shard may use after it has run out of memory, so that the trap can be caught: for the
/// error object, its texts and the first steps of the handler.
const GRACE: i64 = 4 << 10;
/// Most bytes beyond the bound for that, however often memory runs out.
const MOST_DEBT: i64 = 512 << 10;

/// Most bytes beyond the bound, in all, with the cycle collector's list of suspects, and with its tables: without any it
/// could not even find the smallest garbage.
pub(crate) const LIST_DEBT: i64 = MOST_DEBT + (128 << 10);
pub(crate) const TABLE_DEBT: i64 = MOST_DEBT + (384 << 10);

/// Takes `bytes` from the account, which may go `debt` below zero.
#[cold]
fn overdraw(heap: &mut Heap, bytes: i64, debt: i64) -> bool {
    let granted = heap.allowance - bytes >= -debt;
    if granted {
        heap.allowance -= bytes;
        heap.bytes_live += bytes;
    }
    granted
}

/// Lets the account go below zero, within the grace that the last want of memory has given.
#[cold]
fn use_grace(heap: &mut Heap, bytes: i64) -> bool {
    let granted = bytes <= heap.grace && heap.allowance - bytes >= -MOST_DEBT;
    if granted {
        heap.grace -= bytes;
    }
    granted
}

#[inline]
fn credit(heap: &mut Heap, bytes: i64) {
    heap.bytes_live -= bytes;
    heap.allowance += bytes;
    if heap.allowance > 4 * CHUNK {
        let _ = AVAILABLE.fetch_add(heap.allowance - CHUNK, Ordering::Relaxed);
        heap.allowance = CHUNK;
    }
}

/// Accounts for `bytes` that are not an object (actor records, scratch memory). Traps 4 and returns false beyond the
/// bound; otherwise `uncharge` must follow.
pub fn charge_extra(ctx: &mut Ctx, bytes: usize) -> bool {
    // SAFETY: a context always points at the heap of its shard.
    let charged = i64::try_from(bytes).is_ok_and(|n| charge(unsafe { &mut *ctx.heap }, n));
    if !charged {
        out_of_memory(ctx);
    }
    charged
}

/// Gives back what `charge_extra` took.
pub fn uncharge(ctx: &mut Ctx, bytes: usize) {
    // SAFETY: a context always points at the heap of its shard.
    credit(unsafe { &mut *ctx.heap }, bytes as i64);
}

/// Leaves trap 4 pending.
#[cold]
pub fn out_of_memory(ctx: &mut Ctx) {
    // SAFETY: a context always points at the heap of its shard.
    unsafe { (*ctx.heap).grace = GRACE };
    ctx.raise(abi::trap::OOM, abi::trap::OUT_OF_MEMORY);
}

/// Storage for the cycle collector, which may bring the account down to `debt` below zero, and to as much more as the
/// bound where it must be done at once; null when memory is short. Free with `give_back`.
pub(crate) fn alloc_table(heap: &mut Heap, bytes: usize, debt: i64) -> *mut u8 {
    let debt = if heap.cycles.is_urgent() { debt.saturating_add(heap_limit()) } else { debt };
    try_alloc(heap, bytes, |heap, bytes| charge(heap, bytes) || overdraw(heap, bytes, debt))
}

/// Has the processor load the cache line at `at`, which will be used soon.
#[inline]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that touches no memory as far as the program can tell, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}

/// Storage of `bytes` (not 0), aligned to 8 and paid for by `pay`; null when memory is short.
#[inline]
fn try_alloc(heap: &mut Heap, bytes: usize, pay: impl FnOnce(&mut Heap, i64) -> bool) -> *mut u8 {
    match i64::try_from(bytes) {
        Ok(n) if n > 0 && pay(heap, n) => heap.pool.take(bytes).unwrap_or_else(|| fresh(heap, bytes)),
        _ => std::ptr::null_mut(),
    }
}

/// Storage of `bytes`, which have been paid for and are paid back where there is none.
#[cold]
fn fresh(heap: &mut Heap, bytes: usize) -> *mut u8 {
    if let Ok(layout) = Layout::from_size_align(bytes, 8)
        && bytes > 0
    {
        // SAFETY: the size is not zero.
        let place = unsafe { std::alloc::alloc(layout) };
        if !place.is_null() {
            return place;
        }
    }
    credit(heap, bytes as i64);
    std::ptr::null_mut()
}

/// As `try_alloc`, with trap 4 when memory is short.
#[inline]
pub fn raw_alloc(ctx: &mut Ctx, bytes: usize) -> *mut u8 {
    // SAFETY: a context always points at the heap of its shard.
    let place = try_alloc(unsafe { &mut *ctx.heap }, bytes, charge);
    if place.is_null() {
        out_of_memory(ctx);
    }
    place
}

/// Frees storage of `alloc_table` or `raw_alloc`.
///
/// # Safety
/// `place` came from one of these with `bytes`, and nothing uses it any more.
#[inline]
pub(crate) unsafe fn give_back(heap: &mut Heap, place: *mut u8, bytes: usize) {
    credit(heap, bytes as i64);
    // SAFETY: the caller's promise gives the same layout as at allocation.
    unsafe {
        if !heap.pool.keep(place, bytes) {
            std::alloc::dealloc(place, Layout::from_size_align_unchecked(bytes, 8));
        }
    }
}

/// Frees storage of `raw_alloc`; null is allowed.
///
/// # Safety
/// `place` came from `raw_alloc` or `raw_realloc` with `bytes`, and nothing uses it any more.
#[inline]
pub unsafe fn raw_free(ctx: &mut Ctx, place: *mut u8, bytes: usize) {
    if !place.is_null() {
        // SAFETY: the caller's promise; the heap as everywhere.
        unsafe { give_back(&mut *ctx.heap, place, bytes) };
    }
}

/// Resizes storage, keeping the bytes both sizes share. Null and trap 4 when memory is short; `place` is then as before.
///
/// # Safety
/// As for `raw_free`; on success only the result may be used. Neither size is 0.
pub unsafe fn raw_realloc(ctx: &mut Ctx, place: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: a context always points at the heap of its shard.
    let heap = unsafe { &mut *ctx.heap };
    if Pool::keeps(old) && Pool::keeps(new) {
        let moved = try_alloc(heap, new, charge);
        if moved.is_null() {
            out_of_memory(ctx);
        } else {
            // SAFETY: the caller's promise; the new block is another one, and both are as long as what is copied.
            unsafe {
                moved.copy_from_nonoverlapping(place, old.min(new));
                give_back(heap, place, old);
            }
        }
        return moved;
    }
    if Layout::from_size_align(new, 8).is_ok() && charge(heap, new as i64) {
        // SAFETY: `place` has this layout by the caller's promise, and `new` has just been found to be a valid size.
        let moved = unsafe { std::alloc::realloc(place, Layout::from_size_align_unchecked(old, 8), new) };
        if !moved.is_null() {
            credit(heap, old as i64);
            return moved;
        }
        credit(heap, new as i64);
    }
    out_of_memory(ctx);
    std::ptr::null_mut()
}

/// Bytes of the process's bound held outside every shard's account, by a helper thread for instance; given back when
/// dropped.
#[derive(Debug, Default)]
pub struct Claim(i64);

impl Claim {
    /// Takes `bytes` more; false beyond the bound.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Ok(bytes) = i64::try_from(bytes) else { return false };
        let take = |left: i64| (left >= bytes).then(|| left - bytes);
        let taken = AVAILABLE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        self.0 += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = AVAILABLE.fetch_add(self.0, Ordering::Relaxed);
    }
}

/// An object of `bytes`, header set with count 1 and the rest not initialised; null and trap 4 when memory is short.
/// `traced`: it can be on a cycle.
#[inline]
pub fn allocate(ctx: &mut Ctx, bytes: usize, kind: u32, traced: bool) -> *mut Obj {
    debug_assert!(bytes >= size_of::<Obj>());
    let place = raw_alloc(ctx, bytes).cast::<Obj>();
    if !place.is_null() {
        // SAFETY: fresh memory, large enough for the header and aligned to 8.
        unsafe {
            place.write(Obj { count: AtomicI32::new(if traced { 1 } else { QUIET | 1 }), kind });
            (*ctx.heap).objects_live += 1;
        }
    }
    place
}

/// Frees the memory of an object, not what it holds.
///
/// # Safety
/// `obj` came from `allocate` with `bytes`, and nothing uses it any more.
#[inline]
pub unsafe fn deallocate(ctx: &mut Ctx, obj: *mut Obj, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        (*ctx.heap).objects_live -= 1;
        raw_free(ctx, obj.cast(), bytes);
    }
}

/// Fields of so many bytes are zeroed word by word.
const SMALL: usize = 64;

/// An object of class `class` with all field words zero; null and a trap on failure.
#[inline]
pub fn new(ctx: &mut Ctx, class: u32) -> *mut Obj {
    let Some(plan) = plans(ctx).classes.get(class as usize) else {
        ctx.raise(abi::trap::EXPLICIT, "internal error: unknown class");
        return std::ptr::null_mut();
    };
    let obj = allocate(ctx, plan.size, FIRST_CLASS + class, plan.traced);
    if !obj.is_null() {
        let fields = plan.size - size_of::<Obj>();
        // SAFETY: the object has `plan.size` bytes, the first of which are its header; both are multiples of a word.
        unsafe {
            let first = obj.cast::<u8>().add(size_of::<Obj>());
            if fields <= SMALL {
                // Volatile, or it would become the call that takes longer than the few words.
                for word in 0..fields / size_of::<u64>() {
                    first.cast::<u64>().add(word).write_volatile(0);
                }
            } else {
                first.write_bytes(0, fields);
            }
        }
    }
    obj
}

// -- counting ----------------------------------------------------------------------------------------------------

/// Current count; negative for immortal objects.
///
/// # Safety
/// `obj` is a live object.
#[inline]
#[must_use]
pub unsafe fn count(obj: *mut Obj) -> i32 {
    // SAFETY: the caller's promise.
    let word = unsafe { (*obj).count.load(Ordering::Relaxed) };
    if word < 0 { word } else { word & !QUIET }
}

/// Whether a reference to `obj` is the only word that refers to it: nothing else counts it, and the cycle collector does
/// not know it. False for immortal objects.
///
/// # Safety
/// `obj` is a live object of this shard.
#[inline]
pub(crate) unsafe fn is_unique(ctx: &Ctx, plans: &Plans, obj: *mut Obj) -> bool {
    // SAFETY: the caller's promise; a context always points at the heap of its shard.
    unsafe {
        match (*obj).count.load(Ordering::Relaxed) {
            1 => !cycles::knows(&mut *ctx.heap, obj),
            word => word == QUIET | 1 && ((*obj).kind <= KIND_BYTES || !cycles::is_traced(plans, obj)),
        }
    }
}

/// Takes one more reference; null is allowed.
///
/// # Safety
/// `obj` is null or a live object of this shard.
#[inline]
pub unsafe fn retain(obj: *mut Obj) {
    if obj.is_null() {
        return;
    }
    // SAFETY: the caller's promise. Only this thread writes the counts of mortal objects.
    unsafe {
        let n = (*obj).count.load(Ordering::Relaxed);
        if n >= 0 {
            // A count that reaches the top stays: the object lives for ever rather than being freed too early.
            (*obj).count.store(if n == i32::MAX { IMMORTAL } else { n + 1 }, Ordering::Relaxed);
        }
    }
}

/// Gives up one reference, true when `released` must follow; null is allowed.
///
/// # Safety
/// `obj` is null or a live object of this shard of which the caller owns a reference.
#[inline]
unsafe fn drop_count(obj: *mut Obj) -> bool {
    if obj.is_null() {
        return false;
    }
    // SAFETY: the caller's promise. Only this thread writes the counts of mortal objects.
    unsafe {
        let n = (*obj).count.load(Ordering::Relaxed);
        if n < 0 {
            return false;
        }
        (*obj).count.store(n - 1, Ordering::Relaxed);
        n <= QUIET + 1
    }
}

/// Gives up one reference and frees what that leaves without any; null is allowed.
///
/// # Safety
/// As for `drop_count`.
#[inline]
pub unsafe fn release(ctx: &mut Ctx, obj: *mut Obj) {
    // SAFETY: the caller's promise.
    unsafe {
        if drop_count(obj) {
            released(ctx, obj);
        }
    }
}

/// Takes one more reference to what `word` stands for.
///
/// # Safety
/// `word` is a live value of kind `slot`, on this shard.
#[inline]
pub unsafe fn retain_slot(ctx: &mut Ctx, slot: Slot, word: u64) {
    match slot {
        Slot::Scalar => {}
        // SAFETY: the caller's promise.
        Slot::Counted => unsafe { retain(word as *mut Obj) },
        Slot::Actor => {
            if let Some(hooks) = HOOKS.get()
                && word != 0
            {
                (hooks.retain)(ctx, word as *mut c_void);
            }
        }
    }
}

/// Gives up one reference to what `word` stands for.
///
/// # Safety
/// `word` is a live value of kind `slot` of which the caller owns a reference, on this shard.
#[inline]
pub unsafe fn release_slot(ctx: &mut Ctx, slot: Slot, word: u64) {
    match slot {
        Slot::Scalar => {}
        // SAFETY: the caller's promise.
        Slot::Counted => unsafe { release(ctx, word as *mut Obj) },
        Slot::Actor => release_actor(ctx, word),
    }
}

fn release_actor(ctx: &mut Ctx, word: u64) {
    if let Some(hooks) = HOOKS.get()
        && word != 0
    {
        (hooks.release)(ctx, word as *mut c_void);
    }
}

// -- release -----------------------------------------------------------------------------------------------------

/// Looks at an object that has lost a reference: frees it and what only it held, or notes that it may be part of a
/// garbage cycle.
///
/// # Safety
/// `obj` is an object of this shard, one of whose references was just given up, leaving a count word of `QUIET` or less.
#[inline]
pub unsafe fn released(ctx: &mut Ctx, obj: *mut Obj) {
    // SAFETY: the caller's promise; texts never lose `QUIET`, so one that comes here is dead. A context always points
    // at the heap of its shard.
    unsafe {
        if (*obj).kind <= KIND_BYTES {
            text::free(ctx, obj);
            return;
        }
        let plans = plans(ctx);
        if !cycles::settle(&mut *ctx.heap, plans, obj) {
            return;
        }
        match plans.classes.get((*obj).kind.wrapping_sub(FIRST_CLASS) as usize) {
            // It holds nothing.
            Some(plan) if plan.slots.is_empty() => {
                cycles::forget(&mut *ctx.heap, obj);
                deallocate(ctx, obj, plan.size);
            }
            _ => free_graph(ctx, obj),
        }
    }
}

/// Objects whose count is zero and which are still to be taken apart.
#[derive(Debug, Default)]
pub(crate) struct Dead(Vec<*mut Obj>);

impl Dead {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers a dead object. When not even the list can grow, the object leaks, unless it is on the cycle collector's
    /// list of suspects: memory is then gone for good and the next allocation traps.
    pub(crate) fn push(&mut self, obj: *mut Obj) {
        if self.0.try_reserve(1).is_ok() {
            self.0.push(obj);
        }
    }

    /// As `push`, but below what was put at place `top`, so that it comes after that.
    fn push_below(&mut self, obj: *mut Obj, top: usize) {
        self.push(obj);
        // Either may have found no room.
        if let Some(last) = self.0.len().checked_sub(1)
            && last > top
        {
            self.0.swap(top, last);
        }
    }

    /// Gives up one reference. Texts are freed at once; true when a larger object was put on the list.
    ///
    /// # Safety
    /// As for `release_slot`.
    pub(crate) unsafe fn give_up(&mut self, ctx: &mut Ctx, plans: &Plans, slot: Slot, word: u64) -> bool {
        match slot {
            Slot::Scalar => {}
            Slot::Actor => release_actor(ctx, word),
            Slot::Counted => {
                let obj = word as *mut Obj;
                // SAFETY: the caller's promise; a dead text is freed once, here.
                unsafe {
                    if drop_count(obj) {
                        if (*obj).kind <= KIND_BYTES {
                            text::free(ctx, obj);
                        } else if cycles::settle(&mut *ctx.heap, plans, obj) {
                            self.push(obj);
                            return true;
                        }
                    }
                }
            }
        }
        false
    }
}

/// Takes a dead object apart, and what dies with it.
///
/// # Safety
/// `first` is dead: its count is zero and nothing refers to it but perhaps the cycle collector's list of suspects.
pub(crate) unsafe fn free_graph(ctx: &mut Ctx, first: *mut Obj) {
    // SAFETY: a context always points at the heap of its shard. The list is taken out, so a nested call has its own.
    let mut dead = Dead(std::mem::take(unsafe { &mut (*ctx.heap).dead }));
    dead.push(first);
    let mut all = u64::MAX;
    // SAFETY: the caller's promise.
    unsafe { free_some(ctx, plans(ctx), &mut dead, &mut all) };
    // A list that grew large is not kept.
    if dead.0.capacity() <= 1024 {
        // SAFETY: as above.
        unsafe { (*ctx.heap).dead = dead.0 };
    }
}

/// Takes dead objects apart, one after the other, until `left` references and objects have been dealt with. A container
/// is emptied from its end and goes back on the list when an element dies, so the list grows with the depth of the
/// graph and never with the length of a container.
///
/// # Safety
/// As `free_graph`, for all objects on the list.
pub(crate) unsafe fn free_some(ctx: &mut Ctx, plans: &Plans, dead: &mut Dead, left: &mut u64) {
    while *left > 0
        && let Some(obj) = dead.0.pop()
    {
        *left -= 1;
        // SAFETY: every object on the list is dead: its count is zero and nothing else refers to it. It is freed once,
        // after all it held has been given up.
        unsafe {
            match (*obj).kind {
                KIND_TEXT | KIND_BYTES => text::free(ctx, obj),
                KIND_MULTI => empty_multi(ctx, plans, dead, obj, left),
                KIND_MAP => empty_map(ctx, plans, dead, obj, left),
                kind => {
                    let plan = plans.classes.get(kind.wrapping_sub(FIRST_CLASS) as usize);
                    debug_assert!(plan.is_some());
                    for &(offset, slot) in plan.iter().flat_map(|plan| &plan.slots) {
                        let word = *obj.cast::<u8>().add(offset).cast::<u64>();
                        let _ = dead.give_up(ctx, plans, slot, word);
                    }
                    free_memory(ctx, plans, obj);
                }
            }
        }
    }
}

/// Takes elements out of a dead multi, until one goes on the list or `left` is used up: then the multi is there below
/// it. Frees the memory of an empty one.
unsafe fn empty_multi(ctx: &mut Ctx, plans: &Plans, dead: &mut Dead, obj: *mut Obj, left: &mut u64) {
    // SAFETY: the caller's promise; elements below `len` are owned by the multi.
    unsafe {
        let m = obj.cast::<multi::Multi>();
        let slot = plans.slot((*m).element);
        let words = plans.words((*m).element);
        while slot != Slot::Scalar && (*m).len > 0 {
            (*m).len -= 1;
            let word = *(*m).data.add((*m).len as usize * words);
            let top = dead.0.len();
            if dead.give_up(ctx, plans, slot, word) || *left == 0 {
                if (*m).len == 0 {
                    break;
                }
                dead.push_below(obj, top);
                return;
            }
            *left -= 1;
        }
        free_memory(ctx, plans, obj);
    }
}

/// As `empty_multi`.
unsafe fn empty_map(ctx: &mut Ctx, plans: &Plans, dead: &mut Dead, obj: *mut Obj, left: &mut u64) {
    // SAFETY: the caller's promise; entries that are left are owned by the map.
    unsafe {
        let m = obj.cast::<map::Map>();
        let (key, value) = map::slots(plans, &*m);
        while (key != Slot::Scalar || value != Slot::Scalar)
            && let Some(entry) = map::take_last(m)
        {
            // Keys are never containers.
            let _ = dead.give_up(ctx, plans, key, *entry);
            let top = dead.0.len();
            if dead.give_up(ctx, plans, value, *entry.add(1)) || *left == 0 {
                if (*m).used <= (*m).head {
                    break;
                }
                dead.push_below(obj, top);
                return;
            }
            *left -= 1;
        }
        free_memory(ctx, plans, obj);
    }
}

/// Frees the memory of a container or class object, not what it holds. The block of one that the cycle collector lists
/// is kept as a shell.
///
/// # Safety
/// `obj` is dead, and what it held has been given up.
pub(crate) unsafe fn free_memory(ctx: &mut Ctx, plans: &Plans, obj: *mut Obj) {
    // SAFETY: the caller's promise; the kind says what the object is. A context always points at the heap of its shard.
    unsafe {
        cycles::forget(&mut *ctx.heap, obj);
        match (*obj).kind {
            KIND_MULTI => {
                let m = obj.cast::<multi::Multi>();
                multi::free_storage(ctx, m, plans.words((*m).element));
            }
            KIND_MAP => map::free_storage(ctx, obj.cast::<map::Map>()),
            _ => {}
        }
        if cycles::is_listed(obj) {
            (*ctx.heap).objects_live -= 1;
            cycles::keep(&mut *ctx.heap, plans, obj);
        } else {
            deallocate(ctx, obj, block(plans, obj));
        }
    }
}

/// Bytes of a container or class object itself.
///
/// # Safety
/// `obj` is one, which may have been taken apart.
#[inline]
pub(crate) unsafe fn block(plans: &Plans, obj: *mut Obj) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match (*obj).kind {
            KIND_MULTI => size_of::<multi::Multi>(),
            KIND_MAP => size_of::<map::Map>(),
            kind => {
                plans.classes.get(kind.wrapping_sub(FIRST_CLASS) as usize).map_or(size_of::<Obj>(), |plan| plan.size)
            }
        }
    }
}
