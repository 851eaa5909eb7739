//! HIR built by hand: a program with the predeclared records, and short names for expressions and statements.

#![allow(dead_code, reason = "each test file uses a part")]

use analysis::hir::*;
use syntax::ast::Mode;

pub const ERROR: ClassId = ClassId(0);
pub const STAT: ClassId = ClassId(1);
pub const PARTS: ClassId = ClassId(2);

pub const INT: Ty = Types::INT;
pub const BOOL: Ty = Types::BOOL;
pub const FLOAT: Ty = Types::FLOAT;
pub const TEXT: Ty = Types::TEXT;
pub const VOID: Ty = Types::VOID;

pub fn program() -> Program {
    let mut p = Program::default();
    let _ = class(&mut p, "Error", &[("code", INT), ("line", INT), ("method", TEXT), ("msg", TEXT)]);
    let _ = class(&mut p, "Stat", &[("size", INT), ("mtime", INT), ("inode", INT), ("dir", BOOL)]);
    let _ = class(&mut p, "TimeParts", &[("year", INT)]);
    p.well_known = WellKnown { error: ERROR, stat: STAT, time_parts: PARTS, ..WellKnown::default() };
    p
}

pub fn class(p: &mut Program, name: &str, fields: &[(&str, Ty)]) -> ClassId {
    let fields = fields
        .iter()
        .map(|(name, ty)| Field {
            name: (*name).into(),
            ty: *ty,
            span: Default::default(),
            read_only: false,
            default: None,
        })
        .collect();
    p.classes.push(Class {
        name: name.into(),
        package: None,
        span: Default::default(),
        is_record: false,
        is_table: false,
        storage: Storage::default(),
        fields,
        methods: Vec::new(),
        receive: None,
    });
    ClassId(u32::try_from(p.classes.len() - 1).unwrap())
}

pub fn class_ty(p: &mut Program, class: ClassId) -> Ty {
    p.types.intern(TyKind::Class(class))
}

pub fn multi_ty(p: &mut Program, elem: Ty) -> Ty {
    p.types.intern(TyKind::Multi(elem))
}

pub fn map_ty(p: &mut Program, key: Ty, value: Ty) -> Ty {
    p.types.intern(TyKind::Map(key, value))
}

pub fn maybe(p: &mut Program, inner: Ty) -> Ty {
    p.types.intern(TyKind::Maybe { inner, noisy: false })
}

/// Adds a function; the first `params` locals are parameters.
pub fn func(p: &mut Program, name: &str, params: usize, locals: &[(&str, Ty)], ret: Ty, body: Vec<Stmt>) -> FuncId {
    let locals = locals.iter().map(|(n, ty)| Local { name: (*n).into(), ty: *ty, span: Default::default() }).collect();
    p.funcs.push(Func {
        name: name.into(),
        display: name.into(),
        span: Default::default(),
        class: None,
        is_static: false,
        params: vec![Mode::Borrow; params],
        locals,
        ret,
        body: block(body),
        never_returns: false,
    });
    FuncId(u32::try_from(p.funcs.len() - 1).unwrap())
}

pub fn block(stmts: Vec<Stmt>) -> Block {
    Block { stmts, end: Default::default() }
}

pub fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: Default::default() }
}

pub fn ex(kind: ExprKind, ty: Ty) -> Expr {
    Expr { kind, ty, span: Default::default() }
}

pub fn bx(e: Expr) -> Box<Expr> {
    Box::new(e)
}

pub fn int(v: i64) -> Expr {
    ex(ExprKind::Int(v), INT)
}

pub fn boolean(v: bool) -> Expr {
    ex(ExprKind::Bool(v), BOOL)
}

pub fn text(v: &str) -> Expr {
    ex(ExprKind::Text(v.as_bytes().to_vec()), TEXT)
}

pub fn var(id: u32, ty: Ty) -> Expr {
    ex(ExprKind::Local(LocalId(id)), ty)
}

pub fn bin(op: BinaryOp, l: Expr, r: Expr) -> Expr {
    let ty = match op {
        BinaryOp::IntAdd
        | BinaryOp::IntSub
        | BinaryOp::IntMul
        | BinaryOp::IntDiv
        | BinaryOp::IntRem
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::BitAnd => INT,
        BinaryOp::FloatAdd | BinaryOp::FloatMul => FLOAT,
        _ => BOOL,
    };
    ex(ExprKind::Binary(op, bx(l), bx(r)), ty)
}

pub fn concat(parts: Vec<Expr>) -> Expr {
    ex(ExprKind::Concat(parts), TEXT)
}

pub fn call(f: FuncId, args: Vec<Expr>, ty: Ty) -> Expr {
    ex(ExprKind::Call(f, args), ty)
}

pub fn builtin(b: Builtin, args: Vec<Expr>, ty: Ty) -> Expr {
    ex(ExprKind::Builtin(b, args), ty)
}

pub fn plain(name: &str, args: Vec<Expr>, ty: Ty) -> Expr {
    builtin(Builtin::Plain(name.into()), args, ty)
}

pub fn print(e: Expr) -> Stmt {
    run(plain("print", vec![e], VOID))
}

pub fn print_int(e: Expr) -> Stmt {
    run(plain("print_int", vec![e], VOID))
}

pub fn field(base: Expr, class: ClassId, f: u32, ty: Ty) -> Expr {
    ex(ExprKind::Field(bx(base), class, f), ty)
}

pub fn new(class: ClassId, ty: Ty, fields: Vec<Expr>) -> Expr {
    let fields = fields.into_iter().enumerate().map(|(i, e)| (u32::try_from(i).unwrap(), e)).collect();
    ex(ExprKind::New { class, fields, defaults: Vec::new() }, ty)
}

pub fn list(items: Vec<Expr>, ty: Ty) -> Expr {
    ex(ExprKind::List(items), ty)
}

pub fn let_(id: u32, e: Expr) -> Stmt {
    stmt(StmtKind::Let(LocalId(id), e))
}

pub fn set(place: Place, e: Expr) -> Stmt {
    stmt(StmtKind::Assign(place, e))
}

pub fn set_var(id: u32, e: Expr) -> Stmt {
    set(Place::Local(LocalId(id)), e)
}

pub fn run(e: Expr) -> Stmt {
    stmt(StmtKind::Expr(e))
}

pub fn ret(e: Expr) -> Stmt {
    stmt(StmtKind::Return(Some(e)))
}

pub fn if_(cond: Expr, then: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::If { arms: vec![(cond, block(then))], otherwise: None })
}

pub fn if_else(cond: Expr, then: Vec<Stmt>, other: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::If { arms: vec![(cond, block(then))], otherwise: Some(block(other)) })
}

pub fn while_(cond: Expr, body: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::While { cond, body: block(body) })
}

pub fn for_in(v: u32, iter: Expr, body: Vec<Stmt>) -> Stmt {
    stmt(StmtKind::ForMulti { var: LocalId(v), iter, body: block(body) })
}

pub fn try_(body: Expr, var: u32, stmts: Vec<Stmt>, value: Option<Expr>, ty: Ty) -> Expr {
    let handler = Box::new(BlockExpr { block: block(stmts), value });
    ex(ExprKind::Try { body: bx(body), var: LocalId(var), handler }, ty)
}

pub fn arm(test: ArmTest, stmts: Vec<Stmt>, value: Option<Expr>) -> Arm {
    Arm { test, body: BlockExpr { block: block(stmts), value }, span: Default::default() }
}

pub fn switch(subject: Expr, local: u32, arms: Vec<Arm>, exhaustive: bool, ty: Ty) -> Expr {
    ex(ExprKind::Switch(Box::new(Switch { subject, subject_local: LocalId(local), arms, exhaustive })), ty)
}

pub fn set_main(p: &mut Program, f: FuncId) {
    p.main = Some(Main { func: f, takes_args: false });
}
