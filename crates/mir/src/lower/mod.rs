//! The lowering proper: one MIR function for each HIR function, then the functions that only the machine needs
//! (interface adapters, the program's entry, actors whose reply cannot be sent).

mod builtin;
mod call;
mod clause;
mod construct;
mod expr;
mod module;
mod operator;
mod place;
mod query;
mod stmt;
mod switch;
mod table;
mod value;

use crate::builder::Builder;
use crate::effects::{self, Uses};
use crate::ir::{BlockId, Func, FuncId, InstKind, Local, Plan, Rep, Term, TextId};
use crate::passes::{Pass, Passes};
use crate::shapes::{Layouts, Shape, never_null, shape};
use abi::trap;
use analysis::hir::{self, ClassId, LocalId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use syntax::ast::Mode;
use value::{Own, Value};

pub use module::{callee_signature, lower_program};
pub use operator::fold;

/// What all functions share while they are lowered.
pub struct Cx<'a> {
    program: &'a hir::Program,
    passes: Passes,
    layouts: Layouts<'a>,
    texts: Vec<Vec<u8>>,
    text_index: FxHashMap<Vec<u8>, TextId>,
    /// First dispatch table of each interface.
    tables: Vec<u32>,
    /// Classes that occur as `Name {}` in a default: each has a function that makes one, numbered after the HIR's.
    default_classes: Vec<ClassId>,
    /// The file of the function at hand.
    file: u32,
    plans: Vec<Plan>,
}

impl Cx<'_> {
    fn text(&mut self, bytes: &[u8]) -> TextId {
        if let Some(id) = self.text_index.get(bytes) {
            return *id;
        }
        let id = TextId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(bytes.to_vec());
        let _ = self.text_index.insert(bytes.to_vec(), id);
        id
    }

    /// The function that makes an object of `class` from its defaults.
    fn default_func(&mut self, class: ClassId) -> FuncId {
        let at = self.default_classes.iter().position(|c| *c == class).unwrap_or_else(|| {
            self.default_classes.push(class);
            self.default_classes.len() - 1
        });
        FuncId(u32::try_from(self.program.funcs.len() + at).unwrap_or(u32::MAX))
    }

    /// Result shape of a function. The entry of the program gives an exit status even where it declares no result.
    fn result(&self, id: hir::FuncId) -> Shape {
        let Some(func) = self.program.funcs.get(id.0 as usize) else { return Shape::None };
        match shape(self.program, func.ret) {
            Shape::None if self.program.main.is_some_and(|m| m.func == id) => Shape::One(Rep::Int),
            other => other,
        }
    }
}

/// Where a HIR local lives.
#[derive(Clone, Copy, Debug)]
struct Var {
    shape: Shape,
    /// The value; of a pair, the tag.
    a: Local,
    /// The value of a pair, else `a`.
    b: Local,
}

/// Targets of `break` and `continue`.
#[derive(Clone, Copy)]
struct Loop {
    exit: BlockId,
    latch: BlockId,
    /// What lies above this on the stack of references is released on the way out.
    depth: usize,
}

/// One function while it is lowered.
struct FnLower<'c, 'a> {
    cx: &'c mut Cx<'a>,
    program: &'a hir::Program,
    b: Builder,
    vars: Vec<Var>,
    uses: Uses,
    loops: Vec<Loop>,
    /// Loops around the current code, their conditions included.
    nesting: u32,
    /// `nesting` where each local was bound last.
    bound_at: Vec<u32>,
    params: &'a [Mode],
    result: Shape,
    is_main: bool,
    /// Where the clauses of the query at hand find the values that the store has read for them.
    gathered: Option<query::Gathered>,
}

/// Lowers the function `id`.
fn lower_func<'a>(cx: &mut Cx<'a>, id: hir::FuncId, func: &'a hir::Func) -> Func {
    let program = cx.program;
    let result = cx.result(id);
    let is_main = program.main.is_some_and(|m| m.func == id);
    cx.file = func.span.file.0;
    let mut f = FnLower {
        cx,
        program,
        b: Builder::new(),
        vars: Vec::new(),
        uses: effects::uses(&func.body, func.locals.len()),
        loops: Vec::new(),
        nesting: 0,
        bound_at: vec![0; func.locals.len()],
        params: &func.params,
        result,
        is_main,
        gathered: None,
    };
    f.b.line = func.span.start;
    for (i, local) in func.locals.iter().enumerate().take(func.params.len()) {
        let moves = f.read_once(LocalId(u32::try_from(i).unwrap_or(u32::MAX)));
        let var = f.declare(local, moves);
        f.vars.push(var);
    }
    let params = u32::try_from(f.b.locals.len()).unwrap_or(u32::MAX);
    for (i, local) in func.locals.iter().enumerate().skip(func.params.len()) {
        let moves = f.read_once(LocalId(u32::try_from(i).unwrap_or(u32::MAX)));
        let var = f.declare(local, moves);
        f.vars.push(var);
    }
    for (i, mode) in func.params.iter().enumerate() {
        let var = f.var(LocalId(u32::try_from(i).unwrap_or(u32::MAX)));
        if *mode == Mode::Take && var.shape.is_managed() {
            f.b.own(var.a);
        }
    }
    let entry_unwind = if f.b.depth() > 0 { Some(f.b.unwind()) } else { None };
    // Other parameters are borrowed from the caller; one that the body assigns becomes a variable that owns its value.
    for (i, mode) in func.params.iter().enumerate() {
        let var = f.var(LocalId(u32::try_from(i).unwrap_or(u32::MAX)));
        if *mode != Mode::Take && var.shape.is_managed() && f.uses.assigned.get(i).copied().unwrap_or(false) {
            let rep = f.b.rep(var.a);
            let nonnull = func.locals.get(i).is_some_and(|l| never_null(program, l.ty));
            let own = f.b.local(rep, func.locals.get(i).map_or("", |l| l.name.as_str()), nonnull);
            f.b.retain(var.a);
            f.b.copy(own, var.a);
            f.b.own(own);
            if let Some(slot) = f.vars.get_mut(i) {
                *slot = Var { shape: var.shape, a: own, b: own };
            }
        }
    }
    f.block(&func.body);
    f.b.line = func.body.end.start;
    f.fall_off(func.ret);
    Func {
        display: func.display.to_string(),
        file: func.span.file.0,
        line: func.span.start,
        params,
        results: result.reps(),
        locals: f.b.locals,
        blocks: f.b.blocks,
        entry_unwind,
        recursive: false,
    }
}

/// The function that makes an object of `class` from its defaults.
fn lower_default(cx: &mut Cx<'_>, class: ClassId) -> Func {
    let program = cx.program;
    let span = program.classes.get(class.0 as usize).map(|c| c.span).unwrap_or_default();
    let result = Shape::One(Rep::Obj);
    let mut f = FnLower {
        cx,
        program,
        b: Builder::new(),
        vars: Vec::new(),
        uses: Uses::default(),
        loops: Vec::new(),
        nesting: 0,
        bound_at: Vec::new(),
        params: &[],
        result,
        is_main: false,
        gathered: None,
    };
    f.b.line = span.start;
    let object = f.default_object(class);
    f.consume(object);
    f.b.end(Term::Return(object.locals()));
    Func {
        display: String::new(),
        file: span.file.0,
        line: span.start,
        params: 0,
        results: result.reps(),
        locals: f.b.locals,
        blocks: f.b.blocks,
        entry_unwind: None,
        recursive: false,
    }
}

impl<'a> FnLower<'_, 'a> {
    /// `moves`: the value may be moved out, which leaves null.
    fn declare(&mut self, local: &hir::Local, moves: bool) -> Var {
        let shape = shape(self.program, local.ty);
        let nonnull = never_null(self.program, local.ty) && !moves;
        match shape {
            Shape::None => {
                let a = self.b.local(Rep::Int, &local.name, false);
                Var { shape: Shape::One(Rep::Int), a, b: a }
            }
            Shape::One(rep) => {
                let a = self.b.local(rep, &local.name, nonnull);
                Var { shape, a, b: a }
            }
            Shape::Pair(rep) => {
                let a = self.b.local(Rep::Int, &format!("{}?", local.name), false);
                let b = self.b.local(rep, &local.name, false);
                Var { shape, a, b }
            }
        }
    }

    fn var(&self, local: LocalId) -> Var {
        let none = Var { shape: Shape::None, a: Local(0), b: Local(0) };
        self.vars.get(local.0 as usize).copied().unwrap_or(none)
    }

    /// A variable that owns its value and has a single read: that read may move the value, unless a loop repeats it.
    fn read_once(&self, local: LocalId) -> bool {
        self.cx.passes.has(Pass::Borrow)
            && self.params.get(local.0 as usize).is_none_or(|mode| *mode == Mode::Take)
            && self.uses.reads.get(local.0 as usize).is_some_and(|n| *n == 1)
    }

    fn is_assigned(&self, local: LocalId) -> bool {
        self.uses.assigned.get(local.0 as usize).copied().unwrap_or(true)
    }

    fn shape(&self, ty: Ty) -> Shape {
        shape(self.program, ty)
    }

    fn kind(&self, ty: Ty) -> TyKind {
        self.program.types.kind(ty)
    }

    /// `T` of `multi T`, through `?` and `~`.
    fn elem(&self, ty: Ty) -> Ty {
        match self.kind(self.program.types.strip(ty)) {
            TyKind::Multi(elem) => elem,
            _ => Types::INT,
        }
    }

    /// `K, V` of `map<K, V>`, through `?` and `~`.
    fn entry_types(&self, ty: Ty) -> (Ty, Ty) {
        match self.kind(self.program.types.strip(ty)) {
            TyKind::Map(key, value) => (key, value),
            _ => (Types::TEXT, Types::INT),
        }
    }

    fn text_id(&mut self, text: &str) -> TextId {
        self.cx.text(text.as_bytes())
    }

    /// The end of the body is reached: nil or the zero value, where the checker lets it happen.
    fn fall_off(&mut self, ret: Ty) {
        if self.b.dead() {
            return;
        }
        match self.result {
            Shape::One(Rep::Obj | Rep::Actor) if never_null(self.program, ret) => {
                // The checker has proved that this is not reached; a trap keeps a wrong proof harmless.
                let text = self.text_id("internal error: end of a function without a result");
                self.raise(trap::EXPLICIT, text);
            }
            shape => {
                let value = self.zero(shape);
                self.b.ret(value.locals(), None);
            }
        }
    }

    /// Raises a trap and ends the block.
    fn raise(&mut self, code: i64, text: TextId) {
        let msg = self.b.text(text);
        self.raise_value(code, msg);
    }

    fn raise_value(&mut self, code: i64, msg: Local) {
        let code = self.b.int(code);
        self.b.runtime("trap.raise", vec![code, msg], Vec::new());
        self.b.end(Term::Unreachable);
    }

    /// The value that stands for "nothing yet": 0, 0.0, nil.
    fn zero(&mut self, shape: Shape) -> Value {
        match shape {
            Shape::None => Value::none(),
            Shape::One(rep) => {
                let a = self.zero_word(rep);
                Value { shape, a, b: a, own: Own::Literal, cst: None }
            }
            Shape::Pair(rep) => {
                let a = self.b.int(0);
                let b = self.zero_word(rep);
                Value { shape, a, b, own: Own::Literal, cst: None }
            }
        }
    }

    fn zero_word(&mut self, rep: Rep) -> Local {
        let dst = self.b.temp(rep);
        self.b.emit(match rep {
            Rep::Int => InstKind::Int(dst, 0),
            Rep::Float => InstKind::Float(dst, 0.0),
            Rep::Obj | Rep::Actor => InstKind::Null(dst),
        });
        dst
    }
}
