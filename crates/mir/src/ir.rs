//! MIR: a control-flow graph per function, in which every retain, release, bounds check, unwind edge and safepoint is
//! an instruction. Code generation follows it one to one and knows no rule of the language.
//!
//! Locals are mutable variables of one machine value (not SSA; Cranelift's frontend builds SSA). A nullable scalar is
//! two locals, tag and value. Managed locals (`Rep::Obj`, `Rep::Actor`) own nothing by themselves: ownership is what
//! the `Retain` and `Release` instructions say. Every instruction that can trap names its unwind block; unwind blocks
//! release what was live, innermost first, and end in `Resume`, or in a jump to a handler.

use abi::desc::Shapes;
use abi::symbols::Rep as AbiRep;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Local(pub u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);
/// Index into `Program::funcs`. `reach` renumbers: it must know every place that holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);
/// Index into `Program::texts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// What a local holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rep {
    /// Int, Bool, ordinal, row, tag, interior pointer.
    Int,
    Float,
    /// Counted object or null: Text, Bytes, Json, class, container, interface, payload union.
    Obj,
    /// Actor address or null; counted atomically through the runtime.
    Actor,
}

impl Rep {
    #[must_use]
    pub fn abi(self) -> AbiRep {
        match self {
            Rep::Float => AbiRep::F,
            Rep::Int | Rep::Obj | Rep::Actor => AbiRep::W,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub funcs: Vec<Func>,
    /// Text literals, each once; code generation makes one immortal object of each.
    pub texts: Vec<Vec<u8>>,
    pub shapes: Shapes,
    /// Interface dispatch: `tables[t].rows` maps a class to the function for table `t`. One table per interface method.
    pub tables: Vec<Table>,
    /// Called by the runtime as the first fiber: no parameters, one Int result.
    pub main: Option<FuncId>,
    /// Actor classes: `(class index, function of (self, msg) with the reply's words as results)`.
    pub receives: Vec<(u32, FuncId)>,
    /// The queries of the source, each once.
    pub plans: Vec<Plan>,
    /// Names of test blocks, and for each a function that may stand in for `main`: it runs the test and yields 0.
    pub tests: Vec<(String, FuncId)>,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub name: String,
    pub rows: Vec<(u32, FuncId)>,
}

/// How a query is evaluated, in words.
#[derive(Clone, Debug)]
pub struct Plan {
    pub file: u32,
    /// A byte offset until `resolve_lines`.
    pub line: u32,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Func {
    /// As stack traces print it: `name` or `Class.name`. Empty for functions that the compiler made (adapters, the
    /// entry with arguments, default objects): stack traces leave them out.
    pub display: String,
    /// Path of the source file as stack traces print it.
    pub file: u32,
    pub line: u32,
    /// The first locals, in order.
    pub params: u32,
    pub results: Vec<Rep>,
    pub locals: Vec<LocalDecl>,
    pub blocks: Vec<Block>,
    /// Where a trap at the entry (stack check, reduction) goes: releases the parameters that the callee owns. Reads
    /// parameters only. `None`: straight out of the function.
    pub entry_unwind: Option<BlockId>,
    /// On a cycle of the call graph: the entry costs a reduction, so that recursion without loops is preempted.
    pub recursive: bool,
}

#[derive(Clone, Debug)]
pub struct LocalDecl {
    pub rep: Rep,
    /// Source name, or empty for a temporary.
    pub name: String,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub insts: Vec<Inst>,
    pub term: Term,
    /// Not expected to run: unwind blocks and trap paths.
    pub cold: bool,
}

#[derive(Clone, Debug)]
pub struct Inst {
    pub kind: InstKind,
    /// Source line of the operation, for stack traces; a byte offset until `resolve_lines`.
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    /// Count known to be in 0..63.
    Shl,
    /// Arithmetic; count known to be in 0..63.
    Shr,
    /// Comparisons give 0 or 1.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Checked integer operations: trap as section 9.1 of the language specification says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedOp {
    Div,
    Rem,
    Shl,
    Shr,
}

#[derive(Clone, Debug)]
pub enum Callee {
    Func(FuncId),
    /// A runtime function, by its name in `abi::symbols`.
    Runtime(&'static str),
    /// Dispatch through `tables[_]` on the class of the first argument.
    Table(u32),
}

#[derive(Clone, Debug)]
pub enum InstKind {
    Int(Local, i64),
    Float(Local, f64),
    Text(Local, TextId),
    Null(Local),
    Copy(Local, Local),
    IntOp(Local, IntOp, Local, Local),
    FloatOp(Local, FloatOp, Local, Local),
    FloatNeg(Local, Local),
    /// Float to the Int with its bits, and back.
    ToBits(Local, Local),
    FromBits(Local, Local),
    Checked {
        dst: Local,
        op: CheckedOp,
        lhs: Local,
        rhs: Local,
        unwind: BlockId,
    },
    /// Word at `base + offset`, of the destination's rep.
    Load {
        dst: Local,
        base: Local,
        offset: i32,
    },
    Store {
        base: Local,
        offset: i32,
        src: Local,
    },
    /// Object's kind word (`u32`) as an Int.
    Kind(Local, Local),
    /// Address of element `index` of a multi whose elements have `words` words; traps `multi index out of range`.
    /// With `checked` false the index has been proved in range.
    Element {
        dst: Local,
        multi: Local,
        index: Local,
        words: u32,
        checked: bool,
        unwind: BlockId,
    },
    /// `multi.push` of an element of one word, or two with `second`; consumes it, also where it traps.
    Push {
        multi: Local,
        first: Local,
        second: Option<Local>,
        unwind: BlockId,
    },
    /// Push of element `at` into a multi that nothing else can see, that has `at` elements and was made with room for
    /// more. Cannot trap.
    Init {
        multi: Local,
        at: u32,
        first: Local,
        second: Option<Local>,
    },
    /// `Obj` and `Actor` locals; null is allowed unless `nonnull`.
    Retain {
        local: Local,
        nonnull: bool,
    },
    /// Gives one reference back; the local is dead afterwards.
    Release {
        local: Local,
        nonnull: bool,
    },
    /// Traps with this code and text when the local is null (or the Int zero).
    TrapIfNull {
        local: Local,
        code: i64,
        text: TextId,
        unwind: BlockId,
    },
    Call {
        dsts: Vec<Local>,
        callee: Callee,
        args: Vec<Local>,
        unwind: Option<BlockId>,
    },
    /// `text.concat` over parts (kind, local); with `into`, `text.append` to that text, which is consumed.
    Concat {
        dst: Local,
        into: Option<Local>,
        parts: Vec<(i64, Local)>,
        unwind: BlockId,
    },
    /// A loop's back-edge: costs exactly one reduction.
    Safepoint {
        unwind: BlockId,
    },
}

#[derive(Clone, Debug)]
pub enum Term {
    Jump(BlockId),
    /// On a nonzero Int.
    Branch {
        cond: Local,
        then: BlockId,
        otherwise: BlockId,
    },
    /// Dense or sparse cases on an Int.
    Switch {
        on: Local,
        cases: Vec<(i64, BlockId)>,
        default: BlockId,
    },
    Return(Vec<Local>),
    /// Leaves the function with the pending trap; results mean nothing.
    Resume,
    Unreachable,
}
