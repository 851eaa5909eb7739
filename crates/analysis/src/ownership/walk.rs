//! The walk over one body: statements, branches, loops. Loops are walked until their head's state no longer grows,
//! which is twice where nothing is nested.

use super::classes::{Facts, Kind, kind};
use super::place::{Place, Proj, Source, Val};
use super::state::{Access, Broken, Delta, State, Var};
use super::value::{Operand, Use};
use crate::hir::{self, Block, ClassId, Expr, ExprKind, Func, LocalId, Program, Stmt, StmtKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use syntax::ast::Mode;

/// Where a value goes that leaves its place.
#[derive(Clone, Debug)]
pub(super) enum Dest {
    Return,
    Local(LocalId),
    Field(ClassId, u32),
    Variant(hir::UnionId, u32),
    List,
    /// `push`, `set` and element or entry stores.
    Container,
    /// The parameter's name and the callee's.
    Take(String, String),
    Message(&'static str),
}

/// A spawn or the message of a send, for the closure check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crossing {
    Spawn { class: ClassId, message: Ty, span: Span },
    Send { message: Ty, span: Span, builtin: &'static str },
}

impl Crossing {
    pub fn span(&self) -> Span {
        match self {
            Crossing::Spawn { span, .. } | Crossing::Send { span, .. } => *span,
        }
    }
}

struct Frame {
    /// Where it starts in the source.
    start: u32,
    mark: super::state::Mark,
    breaks: Vec<Delta>,
    continues: Vec<Delta>,
}

pub(super) struct Walk<'p> {
    pub program: &'p Program,
    pub facts: &'p Facts,
    pub writes_self: &'p [bool],
    pub func: &'p Func,
    pub state: State,
    /// Operands before the one that is being walked, of all calls around.
    pub held: Vec<Operand>,
    /// Variables of the loops around, by what they borrow.
    pub cursors: Vec<LocalId>,
    /// Locals that have borrowed from a local, by that local.
    borrowers: FxHashMap<LocalId, Vec<LocalId>>,
    known: FxHashSet<(LocalId, LocalId)>,
    loops: Vec<Frame>,
    /// What back edges added to the heads of loops, by the address of the body: survives repeated walks, so that a
    /// loop in a loop is not walked again for what is known.
    heads: FxHashMap<usize, Vec<(LocalId, Var)>>,
    again: u32,
    /// Changes recorded at `break` and `continue`.
    recorded: usize,
    /// The last place in the source that reads each local: filled by the inference, read by the reporting walk.
    pub last_use: Vec<u32>,
    /// Every move met, for handlers.
    moves: Vec<(LocalId, Span)>,
    /// Diagnostics are wanted; the inference only wants `demands`.
    pub reporting: bool,
    pub diags: Vec<Diagnostic>,
    pub reported: FxHashSet<(u16, Span, LocalId)>,
    /// Untraced classes that were asked for: the result depends on them.
    pub consulted: FxHashSet<ClassId>,
    pub demands: Vec<(ClassId, Span)>,
    pub crossings: Vec<Crossing>,
    pub writes: bool,
}

impl<'p> Walk<'p> {
    pub fn new(
        program: &'p Program,
        facts: &'p Facts,
        writes_self: &'p [bool],
        func: &'p Func,
        reporting: bool,
    ) -> Walk<'p> {
        Walk {
            program,
            facts,
            writes_self,
            func,
            state: State::new(func.locals.len()),
            held: Vec::new(),
            cursors: Vec::new(),
            borrowers: FxHashMap::default(),
            known: FxHashSet::default(),
            loops: Vec::new(),
            heads: FxHashMap::default(),
            again: 0,
            recorded: 0,
            last_use: vec![0; func.locals.len()],
            moves: Vec::new(),
            reporting,
            diags: Vec::new(),
            reported: FxHashSet::default(),
            consulted: FxHashSet::default(),
            demands: Vec::new(),
            crossings: Vec::new(),
            writes: false,
        }
    }

    pub fn run(&mut self) {
        for ((id, mode), local) in (0_u32..).zip(&self.func.params).zip(&self.func.locals) {
            let is_self = id == 0 && self.has_self();
            let borrowed = (is_self || !matches!(mode, Mode::Take)).then_some(local.span);
            self.state.set(LocalId(id), Var { borrowed, ..Var::live() });
        }
        let func = self.func;
        self.block(&func.body);
    }

    pub fn has_self(&self) -> bool {
        self.func.class.is_some() && !self.func.is_static
    }

    pub fn kind(&mut self, ty: Ty) -> Kind {
        let found = kind(self.program, self.facts, ty);
        if let Kind::Object(class) = found {
            let _ = self.consulted.insert(class);
        }
        found
    }

    /// Owned values have one owner: the rest of the pass is about them.
    pub fn is_owned(&mut self, ty: Ty) -> bool {
        matches!(self.kind(ty), Kind::Object(_) | Kind::Container)
    }

    pub fn local_ty(&self, local: LocalId) -> Ty {
        self.func.locals.get(local.0 as usize).map_or(Types::ERROR, |l| l.ty)
    }

    pub fn block(&mut self, block: &'p Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'p Stmt) {
        match &stmt.kind {
            StmtKind::Let(local, value) => {
                let val = self.value(value);
                self.bind(*local, &val);
            }
            StmtKind::Assign(place, value) => self.assign(place, value, stmt.span),
            StmtKind::OpAssign(place, _, value) => {
                let target = self.target(place);
                if let hir::Place::Local(local) = place {
                    self.use_local(*local, stmt.span);
                }
                let mark = self.hold(target.as_ref());
                let _ = self.value(value);
                self.held.truncate(mark);
                self.changed(place, target, stmt.span);
            }
            StmtKind::Expr(value) => {
                let _ = self.value(value);
            }
            StmtKind::If { arms, otherwise } => {
                let mut ends = Vec::with_capacity(arms.len() + 1);
                for (cond, body) in arms {
                    let _ = self.value(cond);
                    let mark = self.state.mark();
                    self.block(body);
                    ends.push(self.state.undo(mark));
                }
                match otherwise {
                    Some(body) => {
                        let mark = self.state.mark();
                        self.block(body);
                        ends.push(self.state.undo(mark));
                    }
                    None => ends.push(self.state.unchanged()),
                }
                self.state.merge(&ends);
            }
            StmtKind::While { cond, body } => self.looped(stmt.span.start, body, |walk, mark| {
                let _ = walk.value(cond);
                let mut exit = walk.state.snapshot(mark);
                exit.reachable &= !matches!(cond.kind, ExprKind::Bool(true));
                walk.block(body);
                walk.join_continues(mark);
                exit
            }),
            StmtKind::DoWhile { body, cond } => self.looped(stmt.span.start, body, |walk, mark| {
                walk.block(body);
                walk.join_continues(mark);
                let _ = walk.value(cond);
                let mut exit = walk.state.snapshot(mark);
                exit.reachable &= !matches!(cond.kind, ExprKind::Bool(true));
                exit
            }),
            StmtKind::ForMulti { var, iter, body } => self.for_each(&[], *var, iter, body),
            StmtKind::ForMap { key, value, iter, body } => self.for_each(&[*key], *value, iter, body),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    let val = self.value(value);
                    // The loops around end here, and their borrows with them.
                    let cursors = std::mem::take(&mut self.cursors);
                    self.consume(&val, &Dest::Return);
                    self.cursors = cursors;
                }
                self.state.reachable = false;
            }
            StmtKind::Break => self.leave(|frame| &mut frame.breaks),
            StmtKind::Continue => self.leave(|frame| &mut frame.continues),
        }
    }

    fn leave(&mut self, list: impl Fn(&mut Frame) -> &mut Vec<Delta>) {
        // Beyond this a function has hundreds of exits of one loop, each with hundreds of changes: some errors are
        // missed then, which is harmless at run time.
        const RECORDED_MAX: usize = 400_000;
        if let Some(frame) = self.loops.last_mut()
            && self.state.reachable
            && (self.recorded < RECORDED_MAX || list(frame).is_empty())
        {
            let delta = self.state.snapshot(frame.mark);
            self.recorded += delta.changes.len();
            list(frame).push(delta);
        }
        self.state.reachable = false;
    }

    /// The end of a loop's body: what `continue` brings joins what falls through.
    fn join_continues(&mut self, mark: super::state::Mark) {
        let continues = self.loops.last_mut().map(|f| std::mem::take(&mut f.continues)).unwrap_or_default();
        if !continues.is_empty() {
            let mut ends = continues;
            ends.push(self.state.undo(mark));
            self.state.merge(&ends);
        }
    }

    /// Walks a loop until the state at its head covers what its back edge brings. `walk` gives the state of the exit by
    /// the condition.
    fn looped(&mut self, start: u32, body: &'p Block, walk: impl Fn(&mut Walk<'p>, super::state::Mark) -> Delta) {
        const WALKS_OF_A_LOOP: u32 = 8;
        const WALKS_OF_DEEP_LOOPS: u32 = 256;
        const DEEP: usize = 3;
        let key = std::ptr::from_ref(body) as usize;
        if let Some(changes) = self.heads.get(&key).cloned() {
            let _ = self.state.widen(&Delta { reachable: self.state.reachable, changes });
        }
        let mut walks = 0;
        loop {
            let mark = self.state.mark();
            self.loops.push(Frame { start, mark, breaks: Vec::new(), continues: Vec::new() });
            let exit = walk(self, mark);
            let breaks = self.loops.pop().map(|f| f.breaks).unwrap_or_default();
            let back = self.state.undo(mark);
            walks += 1;
            let deep = self.loops.len() >= DEEP;
            if walks < WALKS_OF_A_LOOP && !(deep && self.again > WALKS_OF_DEEP_LOOPS) {
                let added = self.state.widen(&back);
                if !added.is_empty() {
                    self.again += u32::from(deep);
                    self.heads.entry(key).or_default().extend(added);
                    continue;
                }
            }
            let mut ends = breaks;
            ends.push(exit);
            self.state.merge(&ends);
            return;
        }
    }

    fn for_each(&mut self, keys: &[LocalId], var: LocalId, iter: &'p Expr, body: &'p Block) {
        let val = self.value(iter);
        let owned = self.is_owned(self.local_ty(var));
        let mut loans = Vec::new();
        if owned {
            for source in val.sources() {
                loans.extend(source.resolved().into_iter().map(|mut p| {
                    p.proj.push(Proj::Index(None));
                    p
                }));
            }
        }
        let cursor = Var { borrowed: Some(iter.span), loans: (!loans.is_empty()).then(|| loans.into()), ..Var::live() };
        self.looped(iter.span.start, body, |walk, mark| {
            let exit = walk.state.snapshot(mark);
            for key in keys {
                walk.state.set(*key, Var::live());
            }
            walk.declare_borrow(var, cursor.clone());
            if owned {
                walk.cursors.push(var);
            }
            walk.block(body);
            if owned {
                let _ = walk.cursors.pop();
            }
            walk.join_continues(mark);
            exit
        });
    }

    // -- places ------------------------------------------------------------------------------------------------

    /// A use of a local: reports what makes it wrong, once.
    pub fn use_local(&mut self, local: LocalId, span: Span) {
        if !self.reporting
            && let Some(last) = self.last_use.get_mut(local.0 as usize)
        {
            *last = span.start.max(*last);
        }
        let Some(var) = self.state.get(local) else { return };
        if var.moved.is_none() && var.broken.is_none() {
            return;
        }
        let mut var = var.clone();
        if let Some(moved) = var.moved.take() {
            self.report_moved(local, moved, span);
        }
        if let Some(broken) = var.broken.take() {
            self.report_broken(local, &var, &broken, span);
        }
        self.state.set(local, var);
    }

    pub fn source_of(&self, local: LocalId, span: Span) -> Source {
        let var = self.state.get(local);
        Source {
            place: Place { root: local, proj: Vec::new() },
            ty: self.local_ty(local),
            span,
            borrowed: var.and_then(|v| v.borrowed),
            loans: var.and_then(|v| v.loans.clone()),
        }
    }

    pub fn declare_borrow(&mut self, local: LocalId, var: Var) {
        for place in var.loans.iter().flat_map(|l| l.iter()) {
            if place.root != local && self.known.insert((place.root, local)) {
                self.borrowers.entry(place.root).or_default().push(local);
            }
        }
        self.state.set(local, var);
    }

    /// `let local = val`.
    pub fn bind(&mut self, local: LocalId, val: &Val) {
        let mut var = Var::live();
        let mut loans: Vec<Place> = Vec::new();
        for source in val.sources() {
            match self.kind(source.ty) {
                Kind::Copy => {}
                Kind::Traced(_) => {
                    let borrowed = if source.is_whole() { source.borrowed } else { Some(source.span) };
                    var.borrowed = var.borrowed.or(borrowed);
                }
                Kind::Object(_) | Kind::Container if source.is_whole() && source.borrowed.is_none() => {
                    self.move_out(source);
                }
                Kind::Object(_) | Kind::Container => {
                    var.borrowed = var.borrowed.or(Some(source.span));
                    loans.extend(source.resolved());
                }
            }
        }
        if !loans.is_empty() {
            var.loans = Some(loans.into());
        }
        self.declare_borrow(local, var);
    }

    fn assign(&mut self, place: &'p hir::Place, value: &'p Expr, span: Span) {
        let target = self.target(place);
        let mark = self.hold(target.as_ref());
        let val = self.value(value);
        let dest = match place {
            hir::Place::Local(local) => Dest::Local(*local),
            hir::Place::Field(_, class, field) => Dest::Field(*class, *field),
            hir::Place::Element(..) | hir::Place::Entry(..) => Dest::Container,
            // The store takes a copy.
            hir::Place::Column(..) => {
                self.held.truncate(mark);
                return;
            }
        };
        self.consume(&val, &dest);
        self.held.truncate(mark);
        self.changed(place, target, span);
    }

    /// A place that is written through a borrow is in use until the value is there. (Where its root is moved itself, the
    /// store finds that.) Gives the length of `held` before.
    fn hold(&mut self, target: Option<&Source>) -> usize {
        let mark = self.held.len();
        if let Some(source) = target.filter(|s| self.reporting && s.loans.is_some()) {
            self.held.push(Operand { how: Use::Exclusive, source: source.clone(), places: source.resolved() });
        }
        mark
    }

    /// The place an assignment writes; `None` if it lies in a temporary.
    fn target(&mut self, place: &'p hir::Place) -> Option<Source> {
        let val = match place {
            hir::Place::Local(_) => return None,
            hir::Place::Column(row, ..) => {
                let _ = self.value(row);
                return None;
            }
            hir::Place::Field(object, class, field) => {
                let base = self.value(object);
                let class = self.program.classes.get(class.0 as usize);
                let ty = class.and_then(|c| c.fields.get(*field as usize)).map_or(Types::ERROR, |f| f.ty);
                self.project(base, Proj::Field(*field), ty, object.span)
            }
            hir::Place::Element(base, index) | hir::Place::Entry(base, index) => {
                let val = self.value(base);
                let _ = self.value_beside(&val, index);
                let ty = match self.program.types.kind(base.ty) {
                    TyKind::Multi(element) | TyKind::Map(_, element) => element,
                    _ => Types::ERROR,
                };
                self.project(val, Proj::Index(super::value::literal(index)), ty, base.span)
            }
        };
        match val {
            Val::Place(source) => Some(source),
            _ => None,
        }
    }

    /// After the value was computed: the store.
    fn changed(&mut self, place: &hir::Place, target: Option<Source>, span: Span) {
        match (place, target) {
            (hir::Place::Local(local), _) => {
                let source = Source {
                    place: Place { root: *local, proj: Vec::new() },
                    ty: self.local_ty(*local),
                    span,
                    borrowed: None,
                    loans: None,
                };
                self.disturb(Access::Assign, &source);
                self.state.set(*local, Var::live());
            }
            (_, Some(target)) => {
                self.use_local(target.place.root, target.span);
                self.writes |= target.place.root == LocalId(0) && self.has_self();
                self.disturb(Access::Assign, &Source { span, ..target });
            }
            (_, None) => {}
        }
    }

    /// A whole local of an owned type leaves it.
    pub fn move_out(&mut self, source: &Source) {
        let places = source.resolved();
        let overlaps = |held: &&Operand| held.places.iter().any(|a| places.iter().any(|b| a.overlaps(b)));
        // That an operand was moved itself is reported where it is used again.
        let beside = self.held.iter().filter(|h| h.how != Use::Move).find(overlaps).cloned();
        if let Some(beside) = beside {
            self.report_operands("expression", &beside, &Operand { how: Use::Move, source: source.clone(), places });
        }
        self.disturb(Access::Move, source);
        self.mark_moved(source);
    }

    pub fn mark_moved(&mut self, source: &Source) {
        let local = source.place.root;
        let mut var = self.state.var(local);
        var.moved = Some(source.span);
        self.moves.push((local, source.span));
        self.state.set(local, var);
    }

    /// A place is assigned, exclusively borrowed or moved: what borrows of it are alive?
    pub fn disturb(&mut self, access: Access, source: &Source) {
        if !self.reporting || matches!(self.kind(source.ty), Kind::Traced(_)) {
            return;
        }
        let through = source.place.root;
        for place in source.resolved() {
            for at in 0..self.cursors.len() {
                let Some(cursor) = self.cursors.get(at).copied() else { break };
                if self.is_disturbed(cursor, &place, source) {
                    self.report_cursor(cursor, access, source);
                }
            }
            let Some(mut borrowers) = self.borrowers.remove(&place.root) else { continue };
            borrowers.retain(|b| {
                let alive = self.may_be_used(*b, source.span.start);
                if !alive {
                    let _ = self.known.remove(&(place.root, *b));
                }
                alive
            });
            let list = borrowers.clone();
            let _ = self.borrowers.insert(place.root, borrowers);
            for borrower in list {
                if borrower == through || self.cursors.contains(&borrower) {
                    continue;
                }
                if self.is_disturbed(borrower, &place, source) {
                    let mut var = self.state.var(borrower);
                    if var.broken.is_none() {
                        var.broken = Some(Rc::new(Broken { access, source: source.clone(), span: source.span }));
                        self.state.set(borrower, var);
                    }
                }
            }
        }
    }

    /// Whether a local may still be read after `at`: not if its last reading stands before `at`, and before every loop
    /// around `at` that the local was declared in front of.
    fn may_be_used(&self, local: LocalId, at: u32) -> bool {
        let declared = self.func.locals.get(local.0 as usize).map_or(0, |l| l.span.start);
        let again = self.loops.iter().map(|f| f.start).find(|start| *start > declared);
        let last = self.last_use.get(local.0 as usize).copied().unwrap_or(u32::MAX);
        last >= again.unwrap_or(at).min(at)
    }

    /// Whether a loop around this point starts behind `start`.
    pub fn is_in_loop_after(&self, start: u32) -> bool {
        self.loops.iter().any(|f| f.start > start)
    }

    /// A write through a borrow does not disturb that borrow, nor the one it was made from.
    fn is_disturbed(&self, borrower: LocalId, place: &Place, source: &Source) -> bool {
        let Some(loans) = self.state.get(borrower).and_then(|v| v.loans.as_ref()) else { return false };
        borrower != source.place.root
            && loans.iter().any(|loan| {
                let behind = source.loans.iter().flat_map(|l| l.iter()).any(|through| loan.contains(through));
                !behind && loan.overlaps(place)
            })
    }

    /// The value goes to `dest` for good.
    pub fn consume(&mut self, val: &Val, dest: &Dest) {
        for source in val.sources() {
            let owned = match self.kind(source.ty) {
                Kind::Copy | Kind::Traced(_) => continue,
                other => other,
            };
            let message = matches!(dest, Dest::Message(_));
            if source.borrowed.is_none() && source.is_whole() {
                self.move_out(source);
            } else if source.borrowed.is_none() && !message {
                self.report_projection(source, dest);
            } else if let Kind::Object(class) = owned {
                self.demands.push((class, source.span));
            } else {
                self.report_escape(source, dest);
            }
        }
    }

    // -- expressions with blocks -------------------------------------------------------------------------------

    pub fn switch(&mut self, switch: &'p hir::Switch) -> Val {
        let subject = self.value(&switch.subject);
        let mut var = Var::live();
        let mut loans: Vec<Place> = Vec::new();
        for source in subject.sources() {
            var.borrowed = var.borrowed.or(Some(switch.subject.span));
            if self.is_owned(source.ty) {
                loans.extend(source.resolved());
            }
        }
        if !loans.is_empty() {
            var.loans = Some(loans.into());
        }
        let is_union = matches!(self.program.types.kind(self.program.types.strip(switch.subject.ty)), TyKind::Union(_));
        self.state.set(switch.subject_local, var);
        let mut ends = Vec::with_capacity(switch.arms.len());
        let mut values = Vec::new();
        for arm in &switch.arms {
            let mut bindings: &[LocalId] = &[];
            if let hir::ArmTest::Any(tests) = &arm.test {
                for test in tests {
                    let _ = self.value(test);
                }
            }
            let mark = self.state.mark();
            if let hir::ArmTest::Variants(_, variants, locals) = &arm.test {
                bindings = locals;
                let variant = variants.first().copied().unwrap_or(0);
                for (at, local) in (0_u32..).zip(locals) {
                    self.bind_payload(switch.subject_local, Proj::Payload(variant, at), *local, is_union);
                }
            }
            self.block(&arm.body.block);
            if let Some(value) = &arm.body.value {
                let val = self.value(value);
                values.push(self.yielded(val, bindings));
            }
            ends.push(self.state.undo(mark));
        }
        self.state.merge(&ends);
        Val::join(values)
    }

    /// A payload stays valid when the subject is replaced in the arm: only `let` and `for` borrows are in the way of
    /// changes (7.4). What it borrows counts for what is borrowed from it.
    fn bind_payload(&mut self, subject: LocalId, proj: Proj, local: LocalId, is_union: bool) {
        let span = self.func.locals.get(local.0 as usize).map_or_else(Span::default, |l| l.span);
        let mut var = Var { borrowed: Some(span), ..Var::live() };
        if is_union && self.is_owned(self.local_ty(local)) {
            let mut source = self.source_of(subject, span);
            source.place.proj.push(proj);
            let loans = source.resolved();
            if !loans.is_empty() {
                var.loans = Some(loans.into());
            }
        }
        self.state.set(local, var);
    }

    /// The value of an arm. Its own payload bindings move out of the object; its own locals do not outlive it.
    fn yielded(&mut self, val: Val, bindings: &[LocalId]) -> Val {
        match val {
            Val::Place(source)
                if source.is_whole() && bindings.contains(&source.place.root) && self.is_owned(source.ty) =>
            {
                Val::Fresh
            }
            Val::Any(vals) => Val::join(vals.into_iter().map(|v| self.yielded(v, bindings)).collect()),
            other => other,
        }
    }

    pub fn try_catch(&mut self, body: &'p Expr, var: LocalId, handler: &'p hir::BlockExpr) -> Val {
        let mark = self.state.mark();
        let moves = self.moves.len();
        let first = self.value(body);
        let body_end = self.state.undo(mark);
        // The body may have been left anywhere: whatever it moves may be gone.
        let mark = self.state.mark();
        for at in moves..self.moves.len() {
            let Some((local, span)) = self.moves.get(at).copied() else { break };
            let mut var = self.state.var(local);
            if var.declared {
                var.moved = var.moved.or(Some(span));
                self.state.set(local, var);
            }
        }
        self.state.set(var, Var::live());
        self.block(&handler.block);
        let second = handler.value.as_ref().map_or(Val::Fresh, |v| self.value(v));
        let handler_end = self.state.undo(mark);
        let mut vals = Vec::with_capacity(2);
        if body_end.reachable {
            vals.push(first);
        }
        if handler_end.reachable {
            vals.push(second);
        }
        self.state.merge(&[body_end, handler_end]);
        Val::join(vals)
    }
}
