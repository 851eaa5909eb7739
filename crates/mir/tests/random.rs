//! Random programs over texts, objects, lists, maps, `switch` and `try`, run on the counting interpreter: no path, with
//! or without traps, leaks, releases twice or reads a freed object, and optimisation changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "support/machine.rs"]
mod machine;
mod support;

use analysis::hir::*;
use support::*;
use syntax::ast::Mode;

struct Gen {
    seed: u64,
    p: Program,
    class: ClassId,
    boxed: Ty,
    maybe_box: Ty,
    texts: Ty,
    boxes: Ty,
    map: Ty,
    maybe_text: Ty,
    error: Ty,
    locals: Vec<(String, Ty)>,
    /// Locals in scope.
    scope: Vec<u32>,
    /// Locals that are never assigned.
    fixed: Vec<u32>,
    loops: usize,
    funcs: Vec<(FuncId, Vec<Ty>, Ty)>,
    ret: Ty,
    budget: usize,
}

impl Gen {
    fn new(seed: u64) -> Gen {
        let mut p = program();
        let class = class(&mut p, "Box", &[("name", TEXT)]);
        let boxed = class_ty(&mut p, class);
        let maybe_box = p.types.nullable(boxed);
        let (texts, boxes) = (multi_ty(&mut p, TEXT), multi_ty(&mut p, boxed));
        for (name, ty) in [("next", maybe_box), ("items", texts)] {
            p.classes[class.0 as usize].fields.push(Field {
                name: name.into(),
                ty,
                span: Default::default(),
                read_only: false,
                default: Some(if ty == texts { Default_::EmptyMulti } else { Default_::Nil }),
            });
        }
        let map = map_ty(&mut p, TEXT, TEXT);
        let maybe_text = maybe(&mut p, TEXT);
        let error = class_ty(&mut p, ERROR);
        Gen {
            seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            p,
            class,
            boxed,
            maybe_box,
            texts,
            boxes,
            map,
            maybe_text,
            error,
            locals: Vec::new(),
            scope: Vec::new(),
            fixed: Vec::new(),
            loops: 0,
            funcs: Vec::new(),
            ret: VOID,
            budget: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed >> 33).unwrap() % n.max(1)
    }

    fn local(&mut self, ty: Ty) -> u32 {
        self.locals.push((format!("v{}", self.locals.len()), ty));
        u32::try_from(self.locals.len() - 1).unwrap()
    }

    fn pick(&mut self, ty: Ty) -> Option<Expr> {
        let all: Vec<u32> = self.scope.iter().copied().filter(|l| self.locals[*l as usize].1 == ty).collect();
        if all.is_empty() {
            return None;
        }
        let at = self.below(all.len());
        Some(var(all[at], ty))
    }

    fn value(&mut self, ty: Ty, depth: usize) -> Expr {
        let depth = if self.budget == 0 { 0 } else { depth };
        self.budget = self.budget.saturating_sub(1);
        if depth > 0 {
            match self.below(9) {
                0 => return self.block_value(ty, depth),
                1 => {
                    let fits: Vec<_> = self.funcs.iter().filter(|f| f.2 == ty).cloned().collect();
                    if !fits.is_empty() {
                        let at = self.below(fits.len());
                        let (id, params, ret) = fits[at].clone();
                        let args = self.arguments(&params, depth - 1);
                        return call(id, args, ret);
                    }
                }
                _ => {}
            }
        }
        match ty {
            INT => self.int(depth),
            TEXT => self.text(depth),
            t if t == self.boxed => self.boxed(depth),
            t if t == self.maybe_box => match self.below(3) {
                0 => ex(ExprKind::Nil, t),
                1 if depth > 0 => field(self.value(self.boxed, depth - 1), self.class, 1, t),
                _ => ex(ExprKind::Wrap(bx(self.value(self.boxed, depth.saturating_sub(1)))), t),
            },
            t if t == self.texts || t == self.boxes => {
                let elem = if t == self.texts { TEXT } else { self.boxed };
                match (self.below(3), self.pick(t)) {
                    (0 | 1, Some(v)) => v,
                    (1, None) if depth > 0 && t == self.texts => {
                        field(self.value(self.boxed, depth - 1), self.class, 2, t)
                    }
                    _ => {
                        let n = self.below(4);
                        list((0..n).map(|_| self.value(elem, depth.saturating_sub(1))).collect(), t)
                    }
                }
            }
            t if t == self.map => self.pick(t).unwrap_or(ex(ExprKind::EmptyMap, t)),
            t => ex(ExprKind::Nil, t),
        }
    }

    fn arguments(&mut self, params: &[Ty], depth: usize) -> Vec<Expr> {
        let mut args: Vec<Expr> = params.iter().map(|t| self.value(*t, depth)).collect();
        // Arguments that alias: a field, and the object whose field it is.
        if let (Some(b), true) = (self.pick(self.boxed), self.below(3) > 0) {
            for (arg, ty) in args.iter_mut().zip(params) {
                match *ty {
                    TEXT => *arg = field(b.clone(), self.class, 0, TEXT),
                    t if t == self.boxed => *arg = b.clone(),
                    t if t == self.texts => *arg = field(b.clone(), self.class, 2, t),
                    _ => {}
                }
            }
        }
        args
    }

    /// Mostly catches the traps of `e`, so that programs go on.
    fn guard(&mut self, e: Expr) -> Expr {
        if self.below(8) == 0 {
            return e;
        }
        let ty = e.ty;
        let error = self.local(self.error);
        let value = self.value(ty, 0);
        try_(e, error, vec![], Some(value), ty)
    }

    /// Mostly not a literal, so that it is counted.
    fn fresh_text(&mut self) -> Expr {
        if self.below(6) == 0 {
            return text(["a", "b", ""][self.below(3)]);
        }
        let n = i64::try_from(self.below(3)).unwrap();
        concat(vec![text("t"), bin(BinaryOp::IntAdd, int(n), int(1))])
    }

    fn int(&mut self, depth: usize) -> Expr {
        let d = depth.saturating_sub(1);
        match self.below(if depth == 0 { 2 } else { 6 }) {
            0 => int(i64::try_from(self.below(5)).unwrap()),
            1 => self.pick(INT).unwrap_or(int(1)),
            2 => bin(BinaryOp::IntAdd, self.value(INT, d), self.value(INT, d)),
            3 => {
                let e = bin(BinaryOp::IntDiv, self.value(INT, d), self.value(INT, d));
                self.guard(e)
            }
            4 => builtin(Builtin::LenMulti, vec![self.value(self.texts, d)], INT),
            _ => builtin(Builtin::LenText, vec![self.value(TEXT, d)], INT),
        }
    }

    fn text(&mut self, depth: usize) -> Expr {
        let d = depth.saturating_sub(1);
        match self.below(if depth == 0 { 3 } else { 10 }) {
            0 => self.fresh_text(),
            1 | 2 => self.pick(TEXT).unwrap_or(text("c")),
            3 | 4 => {
                let n = 1 + self.below(3);
                concat(
                    (0..n).map(|_| if self.below(4) == 0 { self.value(INT, d) } else { self.value(TEXT, d) }).collect(),
                )
            }
            5 => field(self.value(self.boxed, d), self.class, 0, TEXT),
            6 => {
                let e = ex(ExprKind::Element(bx(self.value(self.texts, d)), bx(self.value(INT, 0))), TEXT);
                self.guard(e)
            }
            7 => {
                let b = [Builtin::Pop, Builtin::Latest, Builtin::Shift][self.below(3)].clone();
                let e = builtin(b, vec![self.value(self.texts, d)], TEXT);
                self.guard(e)
            }
            8 => {
                let entry = ExprKind::Entry(bx(self.value(self.map, d)), bx(self.value(TEXT, d)));
                let e = ex(ExprKind::Unwrap(bx(ex(entry, self.maybe_text)), OnNil::TrapText), TEXT);
                self.guard(e)
            }
            _ => {
                let e = builtin(Builtin::GetMap, vec![self.value(self.map, d), self.value(TEXT, d)], TEXT);
                self.guard(e)
            }
        }
    }

    fn boxed(&mut self, depth: usize) -> Expr {
        let d = depth.saturating_sub(1);
        match (self.below(if depth == 0 { 2 } else { 5 }), self.pick(self.boxed)) {
            (0 | 1, Some(v)) => v,
            (2, _) => {
                let inner = self.value(self.maybe_box, d);
                let e = ex(ExprKind::Unwrap(bx(inner), OnNil::TrapReceiver), self.boxed);
                self.guard(e)
            }
            (3, _) => {
                let e = ex(ExprKind::Element(bx(self.value(self.boxes, d)), bx(int(0))), self.boxed);
                self.guard(e)
            }
            _ => {
                let name = if self.below(2) == 0 { self.fresh_text() } else { self.value(TEXT, d) };
                let fields = vec![(0, name)];
                ex(ExprKind::New { class: self.class, fields, defaults: vec![1, 2] }, self.boxed)
            }
        }
    }

    fn cond(&mut self, depth: usize) -> Expr {
        let d = depth.saturating_sub(1);
        match self.below(if depth == 0 { 2 } else { 5 }) {
            0 => bin(BinaryOp::IntLt, self.value(INT, d), self.value(INT, d)),
            1 => bin(BinaryOp::TextEq, self.value(TEXT, d), self.value(TEXT, d)),
            2 => ex(ExprKind::And(bx(self.cond(d)), bx(self.cond(d))), BOOL),
            3 => ex(ExprKind::Or(bx(self.cond(d)), bx(ex(ExprKind::Not(bx(self.cond(d))), BOOL))), BOOL),
            _ => ex(ExprKind::IsNil { operand: bx(self.value(self.maybe_box, d)), negated: false }, BOOL),
        }
    }

    /// A `switch` or `try` with blocks that assign and a value of type `ty`.
    fn block_value(&mut self, ty: Ty, depth: usize) -> Expr {
        let d = depth - 1;
        if self.below(2) == 0 {
            let subject = self.value(TEXT, d);
            let local = self.local(TEXT);
            let mark = self.scope.len();
            self.scope.push(local);
            self.fixed.push(local);
            let test = bin(BinaryOp::TextEq, var(local, TEXT), self.value(TEXT, 0));
            let mut arms = Vec::new();
            for test in [ArmTest::Any(vec![test]), ArmTest::Default] {
                let inner = self.scope.len();
                let stmts = self.stmts(d, 2);
                let value = if ty == VOID { None } else { Some(self.value(ty, d)) };
                self.scope.truncate(inner);
                arms.push(arm(test, stmts, value));
            }
            self.scope.truncate(mark);
            return switch(subject, local, arms, false, ty);
        }
        let body = if ty == VOID { plain("print", vec![self.value(TEXT, d)], VOID) } else { self.value(ty, d) };
        let error = self.local(self.error);
        let mark = self.scope.len();
        let stmts = self.stmts(d, 2);
        let value = if ty == VOID { None } else { Some(self.value(ty, d)) };
        self.scope.truncate(mark);
        try_(body, error, stmts, value, ty)
    }

    fn target(&mut self, ty: Ty) -> Option<u32> {
        let fixed = self.fixed.clone();
        let all: Vec<u32> =
            self.scope.iter().copied().filter(|l| self.locals[*l as usize].1 == ty && !fixed.contains(l)).collect();
        if all.is_empty() { None } else { Some(all[self.below(all.len())]) }
    }

    fn stmts(&mut self, depth: usize, most: usize) -> Vec<Stmt> {
        let n = self.below(most + 1);
        (0..n).map(|_| self.stmt(depth)).collect()
    }

    fn scoped(&mut self, depth: usize) -> Vec<Stmt> {
        let mark = self.scope.len();
        let out = self.stmts(depth, 3);
        self.scope.truncate(mark);
        out
    }

    fn any_ty(&mut self) -> Ty {
        [INT, TEXT, TEXT, self.boxed, self.maybe_box, self.texts, self.boxes, self.map][self.below(8)]
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        let d = depth.saturating_sub(1);
        let name = |g: &mut Gen| Place::Field(g.value(g.boxed, d), g.class, 0);
        match self.below(if depth == 0 || self.budget == 0 { 8 } else { 16 }) {
            0 => match (self.pick(self.boxed), self.pick(TEXT)) {
                // Replaces what a text that was read before may have come from.
                (Some(b), Some(t)) if self.below(2) == 0 => {
                    let name = set(Place::Field(b, self.class, 0), self.fresh_text());
                    if_(boolean(true), vec![name, print(t)])
                }
                _ => print(self.value(TEXT, d)),
            },
            1 | 2 => {
                let ty = self.any_ty();
                let value = self.value(ty, depth);
                let local = self.local(ty);
                self.scope.push(local);
                if self.below(2) == 0 {
                    self.fixed.push(local);
                }
                let_(local, value)
            }
            3 => {
                let ty = self.any_ty();
                match self.target(ty) {
                    Some(l) => set_var(l, self.value(ty, depth)),
                    None => print_int(self.value(INT, d)),
                }
            }
            4 => match self.target(TEXT) {
                Some(l) => set_var(l, concat(vec![var(l, TEXT), self.value(TEXT, d), self.value(TEXT, d)])),
                None => print(text("-")),
            },
            5 => {
                let place = match self.pick(self.boxed) {
                    Some(b) => Place::Field(b, self.class, 0),
                    None => name(self),
                };
                set(place, self.value(TEXT, depth))
            }
            6 => match self.pick(self.boxed) {
                Some(b) => {
                    let f = || field(b.clone(), self.class, 0, TEXT);
                    let first = f();
                    let place = Place::Field(b.clone(), self.class, 0);
                    let other = if self.seed.is_multiple_of(2) { f() } else { text("q") };
                    set(place, concat(vec![first, other, self.value(TEXT, d)]))
                }
                None => print(text("-")),
            },
            7 => run(builtin(Builtin::Push, vec![self.value(self.texts, d), self.value(TEXT, d)], VOID)),
            8 => {
                let (c, t, o) = (self.cond(d), self.scoped(d), self.scoped(d));
                if_else(c, t, o)
            }
            9 | 10 => {
                let iter = self.value(self.texts, d);
                let l = self.local(TEXT);
                let mark = self.scope.len();
                self.scope.push(l);
                self.loops += 1;
                let body = self.scoped(d);
                self.loops -= 1;
                self.scope.truncate(mark);
                for_in(l, iter, body)
            }
            11 => {
                let iter = self.value(self.map, d);
                let (k, v) = (self.local(TEXT), self.local(TEXT));
                let mark = self.scope.len();
                self.scope.extend([k, v]);
                self.loops += 1;
                let body = self.scoped(d);
                self.loops -= 1;
                self.scope.truncate(mark);
                stmt(StmtKind::ForMap { key: LocalId(k), value: LocalId(v), iter, body: block(body) })
            }
            12 => run(self.block_value(VOID, depth)),
            13 if self.loops > 0 => stmt(if self.below(2) == 0 { StmtKind::Break } else { StmtKind::Continue }),
            13 => {
                let value = if self.ret == VOID { None } else { Some(self.value(self.ret, d)) };
                let ret = stmt(StmtKind::Return(value));
                if_(self.cond(d), vec![ret])
            }
            14 => set(Place::Entry(self.value(self.map, d), self.value(TEXT, d)), self.value(TEXT, d)),
            _ => match self.below(3) {
                0 => set(Place::Field(self.value(self.boxed, d), self.class, 1), self.value(self.maybe_box, d)),
                1 => {
                    let l = self.local(self.error);
                    let (m, i, v) = (self.value(self.texts, d), self.value(INT, 0), self.value(TEXT, d));
                    let arms = vec![arm(ArmTest::Default, vec![set(Place::Element(m, i), v)], None)];
                    let subject = self.local(INT);
                    run(try_(switch(int(0), subject, arms, false, VOID), l, vec![], None, VOID))
                }
                _ => run(builtin(Builtin::RemoveMap, vec![self.value(self.map, d), self.value(TEXT, d)], BOOL)),
            },
        }
    }

    fn function(&mut self, name: &str, params: Vec<Ty>, ret: Ty) -> FuncId {
        self.locals.clear();
        self.fixed.clear();
        self.scope.clear();
        self.ret = ret;
        self.budget = 60;
        for ty in &params {
            let l = self.local(*ty);
            self.scope.push(l);
            if self.below(2) == 0 {
                self.fixed.push(l);
            }
        }
        let mut body = Vec::new();
        for _ in 0..5 {
            body.push(self.stmt(3));
        }
        if ret != VOID {
            body.push(stmt(StmtKind::Return(Some(self.value(ret, 2)))));
        }
        let locals: Vec<(String, Ty)> = self.locals.clone();
        let locals: Vec<(&str, Ty)> = locals.iter().map(|(n, t)| (n.as_str(), *t)).collect();
        let id = func(&mut self.p, name, params.len(), &locals, ret, body);
        for i in 0..params.len() {
            // Without drawing a number: the programs are those of before there were modes.
            if (self.seed >> (7 * i)).is_multiple_of(3) {
                self.p.funcs[id.0 as usize].params[i] = Mode::Take;
            }
        }
        self.funcs.push((id, params, ret));
        id
    }
}

impl Gen {
    /// `main`: every function in a `try` of its own, several times, so that a trap ends only a part.
    fn entry(&mut self) -> FuncId {
        self.locals.clear();
        self.fixed.clear();
        self.scope.clear();
        self.budget = 0;
        let mut body = Vec::new();
        for ty in [TEXT, TEXT, self.boxed, self.texts, self.map] {
            let l = self.local(ty);
            body.push(let_(l, self.value(ty, 0)));
            self.scope.push(l);
        }
        let error = self.local(self.error);
        for _ in 0..4 {
            for (id, params, ret) in self.funcs.clone() {
                let args = self.arguments(&params, 0);
                let e = match ret {
                    VOID => call(id, args, VOID),
                    TEXT => plain("print", vec![call(id, args, TEXT)], VOID),
                    _ => plain("print", vec![field(call(id, args, ret), self.class, 0, TEXT)], VOID),
                };
                body.push(run(try_(
                    e,
                    error,
                    vec![print_int(field(var(error, self.error), ERROR, 0, INT))],
                    None,
                    VOID,
                )));
            }
        }
        let locals: Vec<(String, Ty)> = self.locals.clone();
        let locals: Vec<(&str, Ty)> = locals.iter().map(|(n, t)| (n.as_str(), *t)).collect();
        func(&mut self.p, "main", 0, &locals, VOID, body)
    }
}

#[test]
fn random_programs() {
    let (mut complete, mut ended) = (0, 0);
    let seeds = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60u64);
    for seed in 1..=seeds {
        let mut g = Gen::new(seed);
        let _ = g.function("f", vec![TEXT, g.boxed], TEXT);
        let _ = g.function("g", vec![g.texts, TEXT, g.map], g.boxed);
        let _ = g.function("h", vec![g.boxed, TEXT], VOID);
        let main = g.entry();
        set_main(&mut g.p, main);
        let p = g.p;
        let out = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| machine::check_some(&p, 40)));
        match out {
            Ok(Some((_, status))) => {
                complete += 1;
                ended += u64::from(status.is_ok());
            }
            Ok(None) => {}
            Err(_) => panic!("seed {seed}"),
        }
    }
    assert!(complete > seeds * 8 / 10, "only {complete} programs were run to their end");
    assert!(ended > seeds / 3, "only {ended} programs ended without a trap");
}
