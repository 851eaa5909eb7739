//! Fiber stacks: slices of a few large lazily committed reservations, so that a hundred thousand of them take a handful
//! of mappings. The lowest page of each is a guard where the kernel can install one without splitting the mapping.

use crate::sys;
use corosensei::stack::{Stack, StackPointer};

/// Bytes between the lowest usable address of generated code and the guard: room for runtime functions.
pub const RESERVE: usize = 32 * 1024;
const PAGE: usize = 4096;
/// Pooled stacks that keep their pages.
const WARM: usize = 256;
/// How long others keep theirs, in nanoseconds: giving pages back and faulting them in again costs more than a burst of
/// fibers should.
const KEEP: u64 = 200_000_000;
/// Stacks that give their pages back at a time, while the shard has something to do and while it has not.
const STEP: usize = 16;
const IDLE_STEP: usize = 512;
/// Linux 6.13.
const MADV_GUARD_INSTALL: i32 = 102;
/// Guards by `mprotect` split the mapping; only so many are made.
const MPROTECT_GUARDS: usize = 1000;

/// One stack. Owned by the coroutine that runs on it, else by the pool.
#[derive(Clone, Copy, Debug)]
pub struct FiberStack {
    /// Highest address, 16-aligned.
    base: usize,
    /// Lowest address, guard included.
    low: usize,
}

impl FiberStack {
    #[must_use]
    pub fn base_address(&self) -> u64 {
        self.base as u64
    }

    /// Lowest address generated code may use.
    #[must_use]
    pub fn limit_for_code(&self) -> u64 {
        (self.low + PAGE + RESERVE) as u64
    }
}

// SAFETY: `base` and `low` bound memory that stays mapped for the life of the shard's `Stacks`, both are 16-aligned,
// and a stack is handed to one coroutine at a time.
unsafe impl Stack for FiberStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.base).unwrap_or(StackPointer::MIN)
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.low).unwrap_or(StackPointer::MIN)
    }
}

/// The stacks of a shard.
pub struct Stacks {
    stride: usize,
    regions: Vec<(usize, usize)>,
    /// Next unused stack of the last region, and how many it has.
    next: usize,
    room: usize,
    made: usize,
    guard_advice: bool,
    free: Vec<FiberStack>,
    /// The first stacks of `free`, which have given their pages back.
    cold: usize,
    /// Fewest in `free` since when.
    least: usize,
    since: u64,
}

fn map(bytes: usize) -> Option<usize> {
    // SAFETY: an anonymous private mapping at an address of the kernel's choice.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if p == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: advice on the mapping just made.
    let _ = unsafe { libc::madvise(p, bytes, libc::MADV_NOHUGEPAGE) };
    Some(p as usize)
}

impl Stacks {
    #[must_use]
    pub fn new(stack_kb: usize) -> Stacks {
        let stride = (stack_kb * 1024 + RESERVE + PAGE + 4096).next_multiple_of(PAGE);
        Stacks {
            stride,
            regions: Vec::new(),
            next: 0,
            room: 0,
            made: 0,
            guard_advice: true,
            free: Vec::new(),
            cold: 0,
            least: 0,
            since: 0,
        }
    }

    /// A stack of the common size; `None` when no address space is left.
    pub fn take(&mut self) -> Option<FiberStack> {
        if let Some(s) = self.free.pop() {
            self.cold = self.cold.min(self.free.len());
            self.least = self.least.min(self.free.len());
            return Some(s);
        }
        if self.next == self.room {
            self.grow()?;
        }
        let (start, _) = *self.regions.last()?;
        let low = start + self.next * self.stride;
        self.next += 1;
        self.made += 1;
        self.guard(low);
        // Tops at multiples of the page would share cache sets.
        let colour = (self.made % 24) * 128;
        Some(FiberStack { base: low + self.stride - colour, low })
    }

    /// A stack of its own size, unmapped with the shard.
    pub fn take_large(&mut self, kb: usize) -> Option<FiberStack> {
        let bytes = (kb * 1024 + RESERVE + PAGE).next_multiple_of(PAGE);
        let low = map(bytes)?;
        // Not the last region: the current one keeps serving `take`.
        self.regions.insert(0, (low, bytes));
        self.guard(low);
        Some(FiberStack { base: low + bytes, low })
    }

    /// Takes back a stack on which nothing runs.
    pub fn give(&mut self, stack: FiberStack) {
        self.free.push(stack);
    }

    /// Gives back pages of stacks that nobody has needed for a while, some at a time. How long the shard may sleep
    /// before there is more to do, in nanoseconds.
    pub fn trim(&mut self, now: u64, idle: bool) -> u64 {
        if self.free.len() <= self.cold.max(WARM) {
            return sys::NEVER;
        }
        let age = now.saturating_sub(self.since);
        if self.since == 0 || age >= KEEP {
            let unneeded = if self.since == 0 { 0 } else { self.least.saturating_sub(WARM) };
            let end = unneeded.min(self.cold + if idle { IDLE_STEP } else { STEP });
            for stack in self.free.get(self.cold..end).unwrap_or(&[]) {
                // SAFETY: the stack's own memory, on which nothing lives; guards survive the advice.
                let _ = unsafe { libc::madvise((stack.low + PAGE) as *mut _, self.stride - PAGE, libc::MADV_DONTNEED) };
            }
            self.cold = self.cold.max(end);
            if self.cold < unneeded {
                return 0;
            }
            (self.since, self.least) = (now, self.free.len());
            return if self.free.len() <= self.cold.max(WARM) { sys::NEVER } else { KEEP };
        }
        KEEP - age
    }

    fn grow(&mut self) -> Option<()> {
        for gib in [64, 16, 4, 1] {
            let room = ((gib << 30) / self.stride).max(1);
            if let Some(start) = map(room * self.stride) {
                self.regions.push((start, room * self.stride));
                (self.next, self.room) = (0, room);
                return Some(());
            }
        }
        let start = map(self.stride)?;
        self.regions.push((start, self.stride));
        (self.next, self.room) = (0, 1);
        Some(())
    }

    fn guard(&mut self, low: usize) {
        if self.guard_advice {
            // SAFETY: the lowest page of a stack not in use yet.
            if unsafe { libc::madvise(low as *mut _, PAGE, MADV_GUARD_INSTALL) } == 0 {
                return;
            }
            self.guard_advice = sys::errno() != libc::EINVAL;
        }
        if self.made <= MPROTECT_GUARDS {
            // SAFETY: as above.
            let _ = unsafe { libc::mprotect(low as *mut _, PAGE, libc::PROT_NONE) };
        }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for &(start, bytes) in &self.regions {
            // SAFETY: mapped by `map` with this length; the shard ends its fibers before it drops its stacks.
            let _ = unsafe { libc::munmap(start as *mut _, bytes) };
        }
    }
}
