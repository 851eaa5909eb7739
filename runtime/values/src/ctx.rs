//! The fiber context: what generated code passes as its first argument, and what the runtime keeps per fiber. Also the
//! image of the loaded program, and how a runtime function raises a trap.

use crate::object::Obj;
use abi::desc::Shapes;
use abi::trap;

/// One per fiber, owned by the fiber's record. The first fields are read and written by generated code at the offsets
/// of `abi::layout`.
#[repr(C)]
pub struct Ctx {
    /// Reductions left in this slice.
    pub budget: i64,
    /// Lowest stack address for generated code; below it lies a reserve for runtime functions.
    pub stack_limit: u64,
    /// Pending trap, 0 for none.
    pub trap: i64,
    /// Allocation account of the fiber's shard.
    pub heap: *mut Heap,
    pub image: *const Image,
    /// The scheduler's record of this fiber.
    pub fiber: *mut std::ffi::c_void,
    /// Highest address of the fiber's stack: where stack walks end.
    pub stack_base: u64,
    /// Text of the pending trap (owned), null for none.
    pub trap_msg: *mut Obj,
    /// Frames of the pending trap, innermost first; recorded once, by `trap.site`.
    pub trap_frames: Vec<Frame>,
    pub trap_recorded: bool,
    /// Frames of the trap this fiber caught last.
    pub caught_frames: Vec<Frame>,
}

const _: () = {
    assert!(std::mem::offset_of!(Ctx, budget) == abi::layout::CTX_BUDGET as usize);
    assert!(std::mem::offset_of!(Ctx, stack_limit) == abi::layout::CTX_STACK_LIMIT as usize);
    assert!(std::mem::offset_of!(Ctx, trap) == abi::layout::CTX_TRAP as usize);
};

/// A stack frame as reports print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index into `Image::funcs`.
    pub func: u32,
    pub line: u32,
}

/// Allocation account of a shard. Objects may be freed on another shard than they were made on: only the sums over all
/// shards mean something.
#[derive(Debug, Default)]
pub struct Heap {
    pub objects_live: i64,
    pub bytes_live: i64,
    /// Bytes of the process's bound that this shard has taken and not used.
    pub(crate) allowance: i64,
    /// Bytes beyond the bound that may be used to handle a want of memory.
    pub(crate) grace: i64,
    /// The empty list that releases work with, kept for its capacity.
    pub(crate) dead: Vec<*mut Obj>,
    pub(crate) pool: crate::pool::Pool,
    pub(crate) cycles: crate::cycles::Cycles,
}

// SAFETY: between calls `dead` is empty, and what `cycles` points at are objects of this shard and tables of this heap.
unsafe impl Send for Heap {}

/// `receive` of an actor class: state and message borrowed, reply words stored through the last argument.
pub type ReceiveFn = extern "C" fn(*mut Ctx, *mut Obj, *mut Obj, *mut [u64; 2]);
/// The program's entry; the result is the exit status (0 where `main` has none).
pub type MainFn = extern "C" fn(*mut Ctx) -> i64;

/// A compiled program in memory. Lives as long as the process.
pub struct Image {
    pub shapes: Shapes,
    /// Derived from `shapes`.
    pub plans: crate::object::Plans,
    pub funcs: Vec<FuncInfo>,
    /// Per class: the entry of its `receive`.
    pub receives: Vec<Option<ReceiveFn>>,
    pub main: Option<MainFn>,
    /// Where the code begins.
    pub base: u64,
    /// Calls in generated code, ascending by their return addresses.
    pub sites: Vec<Site>,
    /// Arguments of the program.
    pub args: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub struct FuncInfo {
    pub display: String,
    pub file: String,
}

/// A call: the calling function and line.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Of the return address, from `Image::base`.
    pub offset: u32,
    pub func: u32,
    pub line: u32,
}

/// Lets other fibers have their turn in the midst of long work. False: a trap is pending, and the rest is not to be done.
pub type GiveWay = fn(&mut Ctx) -> bool;

impl Image {
    /// An image with these shapes and nothing else.
    #[must_use]
    pub fn of(shapes: Shapes) -> Image {
        Image {
            plans: crate::object::Plans::new(&shapes),
            shapes,
            funcs: Vec::new(),
            receives: Vec::new(),
            main: None,
            base: 0,
            sites: Vec::new(),
            args: Vec::new(),
        }
    }

    /// How far `address` lies behind the start of the code; `None` if it cannot be in it.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u32> {
        address.checked_sub(self.base).and_then(|offset| u32::try_from(offset).ok())
    }

    /// The call that returns to `offset`, or `None` where there is no generated code.
    #[must_use]
    pub fn site(&self, offset: u32) -> Option<Site> {
        let i = self.sites.binary_search_by_key(&offset, |s| s.offset).ok()?;
        self.sites.get(i).copied()
    }
}

impl Ctx {
    /// A context that belongs to no stack.
    #[must_use]
    pub fn new(heap: *mut Heap, image: *const Image) -> Ctx {
        Ctx {
            budget: 0,
            stack_limit: 0,
            trap: 0,
            heap,
            image,
            fiber: std::ptr::null_mut(),
            stack_base: 0,
            trap_msg: std::ptr::null_mut(),
            trap_frames: Vec::new(),
            trap_recorded: false,
            caught_frames: Vec::new(),
        }
    }

    /// A builtin goes through so many bytes without giving way. A piece or more uses up the slice: a loop around it must
    /// not do that for a slice's number of turns.
    pub fn works(&mut self, bytes: usize) {
        if bytes >= codec::PIECE {
            self.budget = self.budget.min(0);
        }
    }

    /// A builtin has done as much as so many turns of a loop do.
    pub fn spends(&mut self, turns: u64) {
        self.budget = self.budget.saturating_sub_unsigned(turns);
    }

    /// Leaves a pending trap with `code` and `msg`. A trap that is already pending stays.
    pub fn raise(&mut self, code: i64, msg: &str) {
        if self.trap != 0 {
            return;
        }
        // Running out of memory is reported without needing any.
        let text = if code == trap::OOM && msg == trap::OUT_OF_MEMORY {
            crate::text::out_of_memory()
        } else {
            let text = crate::text::new(self, msg.as_bytes());
            if text.is_null() {
                // The trap for want of memory is pending instead.
                return;
            }
            text
        };
        let _ = self.raise_text(code, text);
    }

    /// Leaves a pending trap with `code` and a text that the trap takes over (not null). A trap that is already pending
    /// stays; the text then remains with the caller, and the result is false.
    pub fn raise_text(&mut self, code: i64, text: *mut Obj) -> bool {
        if self.trap != 0 {
            return false;
        }
        self.trap_msg = text;
        self.trap = code;
        self.trap_recorded = false;
        self.trap_frames.clear();
        true
    }
}

/// The edge of every runtime function: runs `f`, turns a panic into trap 8 with its place, and then returns `R`'s
/// default. No panic passes generated frames.
#[allow(clippy::not_unsafe_ptr_arg_deref, reason = "only runtime functions call it, with the context they were given")]
pub fn entry<R: Default>(ctx: *mut Ctx, f: impl FnOnce(&mut Ctx) -> R) -> R {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: generated code passes the context of the running fiber, which nothing else touches while it runs.
        f(unsafe { &mut *ctx })
    }));
    match result {
        Ok(value) => value,
        Err(_) => {
            let place = PANIC_PLACE.with(|p| p.take());
            // SAFETY: as above; the closure's borrow has ended.
            unsafe { &mut *ctx }.raise(trap::EXPLICIT, &format!("internal error at {place}"));
            R::default()
        }
    }
}

thread_local! {
    /// `FILE:LINE` of the last panic of this thread; set by the hook that `install_panic_hook` puts in place.
    static PANIC_PLACE: std::cell::Cell<String> = const { std::cell::Cell::new(String::new()) };
}

/// Makes panics silent and remembers where they happened. Called once, before the program starts.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(|| "unknown".to_string(), |l| format!("{}:{}", l.file(), l.line()));
        PANIC_PLACE.with(|p| p.set(place));
    }));
}
