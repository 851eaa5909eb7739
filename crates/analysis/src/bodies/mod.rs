//! Function bodies: trees in, typed HIR out. One `Cx` walks one body at a time, in one pass that resolves names, gives
//! types, inserts conversions and follows the flow of nil (`flow`). Diagnostics are kept per function, because a body
//! is walked again when a function that it calls turns out never to return.

mod actor;
mod builtin;
mod call;
mod coerce;
mod construct;
mod expr;
mod flow;
mod ops;
mod query;
mod site;
mod stmt;
mod switch;
#[cfg(test)]
mod tests;

use crate::env::{Builtins, Env};
use crate::hir::{self, ClassId, Expr, ExprKind, FuncId, Local, LocalId};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use flow::Flow;
use rustc_hash::{FxHashMap, FxHashSet};
use site::Site;
use std::cell::Cell;
use std::collections::VecDeque;
use syntax::ast::{self, Name};

/// Checks every body and fills `locals`, `body` and `never_returns` of its function.
///
/// A `main` without a result becomes one with result `Int`, so that `return e` can be the exit status (3.1).
pub fn check_bodies(env: &mut Env<'_>, diags: &mut Vec<Diagnostic>) {
    let builtins = std::mem::take(&mut env.builtins);
    let main = env.program.main.as_ref().map(|m| m.func);
    let mut main_is_void = false;
    if let Some(func) = main.and_then(|m| env.program.funcs.get_mut(m.0 as usize))
        && func.ret == Types::VOID
    {
        func.ret = Types::INT;
        main_is_void = true;
    }
    let count = env.bodies.len();
    let mut reports: Vec<Vec<Diagnostic>> = (0..count).map(|_| Vec::new()).collect();
    let mut callers: Vec<Vec<usize>> = (0..env.program.funcs.len()).map(|_| Vec::new()).collect();
    // Least fixed point of "never returns": a body is walked again when a function it calls joins the set.
    let mut queue: VecDeque<usize> = (0..count).collect();
    let mut cx = Cx::new(env, &builtins, main, main_is_void);
    while let Some(index) = queue.pop_front() {
        let never = cx.function(index);
        if let Some(report) = reports.get_mut(index) {
            *report = std::mem::take(&mut cx.diags);
        }
        for callee in cx.calls.drain(..) {
            if let Some(list) = callers.get_mut(callee.0 as usize)
                && list.last() != Some(&index)
            {
                list.push(index);
            }
        }
        let Some(func) = cx.env.program.funcs.get_mut(index) else { continue };
        if never && !func.never_returns {
            func.never_returns = true;
            if let Some(list) = callers.get(index) {
                queue.extend(list.iter().copied());
            }
        }
    }
    cx.warn_volatile();
    reports.push(std::mem::take(&mut cx.diags));
    env.builtins = builtins;
    diags.extend(reports.into_iter().flatten());
}

/// What the surroundings of an expression want of it.
#[derive(Clone, Copy)]
enum Want<'s> {
    /// A value of whatever type.
    Value,
    /// Nothing: the value is dropped.
    Stmt,
    /// A value that probably has this type; decides between variants of one name.
    Hint(Ty),
    /// A value for a slot of this type.
    Slot(Ty, &'s Site),
}

impl Want<'_> {
    fn ty(self) -> Option<Ty> {
        match self {
            Want::Hint(ty) | Want::Slot(ty, _) => Some(ty),
            Want::Value | Want::Stmt => None,
        }
    }
}

/// An enclosing loop: the states in which it is left or continued.
struct Loop {
    first_inner: LocalId,
    breaks: Flow,
    continues: Flow,
}

/// The body being checked.
struct Cx<'e, 'a> {
    env: &'e mut Env<'a>,
    builtins: &'e Builtins,
    main: Option<FuncId>,
    /// `main` was declared without a result: `return e` gives the exit status all the same.
    main_is_void: bool,
    diags: Vec<Diagnostic>,
    /// Functions called by the body, as met.
    calls: Vec<FuncId>,
    /// Classes without `@table` that are inserted anywhere, with the first place.
    inserted: FxHashMap<ClassId, Span>,
    file: FileId,
    func: FuncId,
    func_name: Name,
    class: Option<ClassId>,
    ret: Ty,
    /// The file has a `using`.
    has_extensions: bool,
    locals: Vec<Local>,
    names: FxHashMap<Name, LocalId>,
    /// What `names` said before each declaration of the open scopes.
    shadowed: Vec<(Name, Option<LocalId>)>,
    flow: Flow,
    /// The statement being checked cannot be reached.
    dead: bool,
    loops: Vec<Loop>,
    /// Queries around the expression being checked, whose clauses have no room for a `let`.
    queries: usize,
    /// A reachable `return` was met.
    returns: bool,
    /// Locals that were assigned something possibly nil, in order of the assignments.
    nil_log: Vec<LocalId>,
    /// Locals that a loop (by the address of its body) makes `T~` at its head; survives repeated walks.
    demoted: FxHashMap<usize, Vec<LocalId>>,
    /// Repeated walks of loops at depth in this body.
    deep_walks: u32,
    /// Something that could not be read is called: it may never return.
    may_end: bool,
    /// Names that broken statements of the body may have declared.
    unread: FxHashSet<Name>,
    /// Payload bindings that are read with a check (`declare_payload`).
    payloads: FxHashSet<LocalId>,
    /// Spelling suggestions looked for so far.
    suggestions: Cell<u32>,
}

impl<'e, 'a> Cx<'e, 'a> {
    fn new(env: &'e mut Env<'a>, builtins: &'e Builtins, main: Option<FuncId>, main_is_void: bool) -> Cx<'e, 'a> {
        Cx {
            env,
            builtins,
            main,
            main_is_void,
            diags: Vec::new(),
            calls: Vec::new(),
            inserted: FxHashMap::default(),
            file: FileId(0),
            func: FuncId(0),
            func_name: Name::default(),
            class: None,
            ret: Types::VOID,
            has_extensions: false,
            locals: Vec::new(),
            names: FxHashMap::default(),
            shadowed: Vec::new(),
            flow: Flow::start(),
            dead: false,
            loops: Vec::new(),
            queries: 0,
            returns: false,
            nil_log: Vec::new(),
            demoted: FxHashMap::default(),
            deep_walks: 0,
            may_end: false,
            unread: FxHashSet::default(),
            payloads: FxHashSet::default(),
            suggestions: Cell::new(0),
        }
    }

    /// Checks one body; whether the function never returns.
    fn function(&mut self, index: usize) -> bool {
        let Some(Some(body)) = self.env.bodies.get(index) else { return false };
        let (file, block) = (body.file, body.block);
        let Some(func) = self.env.program.funcs.get_mut(index) else { return false };
        self.file = file;
        self.func = FuncId(u32::try_from(index).unwrap_or(u32::MAX));
        self.func_name = func.display.clone();
        self.class = func.class;
        self.ret = func.ret;
        self.locals = std::mem::take(&mut func.locals);
        self.locals.truncate(func.params.len());
        self.names.clear();
        self.shadowed.clear();
        self.flow = Flow::start();
        self.dead = false;
        self.loops.clear();
        self.returns = false;
        self.nil_log.clear();
        self.demoted.clear();
        self.unread.clear();
        self.may_end = false;
        self.payloads.clear();
        self.deep_walks = 0;
        self.has_extensions = self.env.file(file).uses.iter().any(|u| u.extensions);
        for at in 0..self.locals.len() {
            if let Some(name) = self.locals.get(at).map(|l| l.name.clone()) {
                let _ = self.names.insert(name, LocalId(u32::try_from(at).unwrap_or(u32::MAX)));
            }
        }
        // Calls of the function itself read the parameters' types while the body is checked.
        if let Some(func) = self.env.program.funcs.get_mut(index) {
            func.locals = self.locals.clone();
        }
        if block.is_broken {
            let _ = self.env.incomplete.insert(self.func);
        }
        let mut hir = self.block(block);
        if self.flow.reachable {
            if Some(self.func) == self.main && self.main_is_void {
                let zero = Expr { kind: ExprKind::Int(0), ty: Types::INT, span: hir.end };
                hir.stmts.push(hir::Stmt { kind: hir::StmtKind::Return(Some(zero)), span: hir.end });
            } else if !self.may_fall_off(self.ret) && !block.is_broken && !self.may_end {
                let ret = self.show(self.ret);
                let help = if Some(self.func) == self.main {
                    "end with `return 0`, or leave the result of `main` out".to_owned()
                } else {
                    format!("end with `return …`, or make the result `?{ret}` so that the end yields nil")
                };
                self.report(
                    Diagnostic::error(
                        227,
                        hir.end,
                        format!("`{}` can end without a value of type `{ret}`", self.func_name),
                    )
                    .label("this end is reachable")
                    .note("a function with a result must return one on every path")
                    .help(help),
                );
            }
        }
        let never = !self.flow.reachable && !self.returns;
        let params = self.env.program.funcs.get(index).map_or(0, |f| f.params.len());
        for local in self.locals.iter_mut().skip(params) {
            // Only reachable from statements that were left out.
            if matches!(local.ty, Types::ERROR | Types::NEVER) {
                local.ty = Types::INT;
            }
        }
        if let Some(func) = self.env.program.funcs.get_mut(index) {
            func.locals = std::mem::take(&mut self.locals);
            func.body = hir;
        }
        never
    }

    fn may_fall_off(&self, ret: Ty) -> bool {
        matches!(self.kind(ret), TyKind::Void | TyKind::Error | TyKind::Nullable(_) | TyKind::Maybe { .. })
    }

    fn kind(&self, ty: Ty) -> TyKind {
        self.env.program.types.kind(ty)
    }

    fn intern(&mut self, kind: TyKind) -> Ty {
        self.env.program.types.intern(kind)
    }

    fn nullable(&mut self, inner: Ty) -> Ty {
        self.env.program.types.nullable(inner)
    }

    fn strip(&self, ty: Ty) -> Ty {
        self.env.program.types.strip(ty)
    }

    /// The type of a call that is declared to return `ret`: `?T` is a noisy `T~` (5.3).
    fn call_ty(&mut self, ret: Ty) -> Ty {
        match self.kind(ret) {
            TyKind::Nullable(inner) => self.intern(TyKind::Maybe { inner, noisy: true }),
            _ => ret,
        }
    }

    fn show(&self, ty: Ty) -> String {
        self.env.show(ty)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    fn error(&mut self, span: Span) -> Expr {
        let _ = self.env.incomplete.insert(self.func);
        Expr { kind: ExprKind::Nil, ty: Types::ERROR, span }
    }

    /// Reports and gives the erroneous expression.
    fn fail(&mut self, diagnostic: Diagnostic) -> Expr {
        let span = diagnostic.span;
        self.report(diagnostic);
        self.error(span)
    }

    /// A near spelling among `candidates`. Looking at all of them costs, so a program with hundreds of unknown names
    /// gets suggestions for the first ones only.
    fn near<'s>(&self, name: &str, candidates: impl Iterator<Item = &'s str>) -> Option<String> {
        const SUGGESTIONS: u32 = 200;
        let count = self.suggestions.get();
        self.suggestions.set(count.saturating_add(1));
        if count < SUGGESTIONS { self.env.near(name, candidates) } else { None }
    }

    fn local_ty(&self, local: LocalId) -> Ty {
        self.locals.get(local.0 as usize).map_or(Types::ERROR, |l| l.ty)
    }

    fn next_local(&self) -> LocalId {
        LocalId(u32::try_from(self.locals.len()).unwrap_or(u32::MAX))
    }

    /// A local without a name in the source's scopes.
    fn new_local(&mut self, name: Name, ty: Ty, span: Span) -> LocalId {
        let id = self.next_local();
        let _ = self.payloads.remove(&id);
        self.locals.push(Local { name, ty, span });
        id
    }

    fn declare(&mut self, name: &ast::Ident, ty: Ty) -> LocalId {
        let id = self.new_local(name.name.clone(), ty, name.span);
        let before = self.names.insert(name.name.clone(), id);
        self.shadowed.push((name.name.clone(), before));
        id
    }

    fn lookup(&self, name: &str) -> Option<LocalId> {
        self.names.get(name).copied()
    }

    /// Opens a scope; the mark goes to `close`.
    fn open(&self) -> (usize, LocalId) {
        (self.shadowed.len(), self.next_local())
    }

    fn close(&mut self, mark: (usize, LocalId)) {
        while self.shadowed.len() > mark.0 {
            let Some((name, before)) = self.shadowed.pop() else { break };
            let _ = match before {
                Some(id) => self.names.insert(name, id),
                None => self.names.remove(&name),
            };
        }
        self.flow.trim(mark.1);
    }
}

/// Source-like text of an expression for messages.
fn describe(e: &ast::Expr) -> String {
    fn write(e: &ast::Expr, depth: u32, out: &mut String) {
        if depth > 6 {
            out.push('…');
            return;
        }
        match &e.kind {
            ast::ExprKind::Name(name) => out.push_str(name),
            ast::ExprKind::Field(base, field) => {
                write(base, depth + 1, out);
                out.push('.');
                out.push_str(&field.name);
            }
            ast::ExprKind::Index(base, _) => {
                write(base, depth + 1, out);
                out.push_str("[…]");
            }
            ast::ExprKind::Call { callee, args } => {
                write(callee, depth + 1, out);
                out.push_str(if args.is_empty() { "()" } else { "(…)" });
            }
            ast::ExprKind::Nil => out.push_str("nil"),
            ast::ExprKind::Int(n) => out.push_str(&n.to_string()),
            ast::ExprKind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            ast::ExprKind::Text(_) | ast::ExprKind::Concat(_) => out.push_str("\"…\""),
            ast::ExprKind::Switch(_) => out.push_str("switch …"),
            ast::ExprKind::Try { .. } => out.push_str("try …"),
            ast::ExprKind::New { class, .. } => {
                out.push_str(&class.name);
                out.push_str(" {…}");
            }
            ast::ExprKind::List(_) => out.push_str("[…]"),
            ast::ExprKind::As(inner, _) => {
                write(inner, depth + 1, out);
                out.push_str(" as …");
            }
            _ => out.push('…'),
        }
    }
    let mut out = String::new();
    write(e, 0, &mut out);
    out
}

/// A title's name for an expression.
fn named(e: &ast::Expr) -> String {
    match describe(e) {
        text if text == "…" => "this expression".to_owned(),
        text => format!("`{text}`"),
    }
}

/// `WO-E217` for a `kind` of declaration that begins with `word`.
fn not_exported(name: &str, kind: &str, word: &str, module: &str, at: Span, declared: Span) -> Diagnostic {
    Diagnostic::error(217, at, format!("{kind} `{name}` of module `{module}` is not exported"))
        .label("not visible here")
        .related(declared, format!("`{name}` is declared here without `pub`"))
        .note("other modules see only what is `pub`")
        .help(format!("declare it `pub {word} {name}`"))
}
