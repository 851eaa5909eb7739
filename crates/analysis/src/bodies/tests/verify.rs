//! Whether HIR keeps its promises: every node typed, every conversion explicit. Used over all error-free programs.

use crate::hir::{ArmTest, BinaryOp, Block, BlockExpr, Expr, ExprKind, Func, LocalId, Place, Program, Stmt, StmtKind};
use crate::types::{Ty, TyKind, Types};
use std::collections::BTreeSet;

pub(super) fn verify(program: &Program) {
    for func in &program.funcs {
        Verify { program, func }.block(&func.body);
    }
}

struct Verify<'p> {
    program: &'p Program,
    func: &'p Func,
}

impl Verify<'_> {
    fn kind(&self, ty: Ty) -> TyKind {
        self.program.types.kind(ty)
    }

    fn show(&self, ty: Ty) -> String {
        format!("{} {:?}", crate::show::show(self.program, ty), self.kind(ty))
    }

    #[track_caller]
    fn same(&self, a: Ty, b: Ty, what: &str) {
        if a == Types::NEVER || b == Types::NEVER {
            return;
        }
        assert_eq!(a, b, "{what} in {}: {} and {}", self.func.display, self.show(a), self.show(b));
    }

    fn local(&self, id: LocalId) -> Ty {
        self.func.locals[id.0 as usize].ty
    }

    fn nullable_of(&self, ty: Ty) -> Option<Ty> {
        match self.kind(ty) {
            TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } => Some(inner),
            _ => None,
        }
    }

    fn block(&self, block: &Block) {
        block.stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let(local, value) => {
                self.expr(value);
                self.same(self.local(*local), value.ty, "let");
            }
            StmtKind::Assign(place, value) => {
                let ty = self.place(place);
                self.expr(value);
                self.same(ty, value.ty, "assign");
            }
            StmtKind::OpAssign(place, op, value) => {
                let ty = self.place(place);
                self.expr(value);
                self.same(ty, value.ty, "op assign");
                assert!(matches!(ty, Types::INT | Types::FLOAT));
                let is_float =
                    matches!(op, BinaryOp::FloatAdd | BinaryOp::FloatSub | BinaryOp::FloatMul | BinaryOp::FloatDiv);
                assert_eq!(is_float, ty == Types::FLOAT);
            }
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    self.condition(cond);
                    self.block(body);
                }
                otherwise.iter().for_each(|b| self.block(b));
            }
            StmtKind::While { cond, body } | StmtKind::DoWhile { cond, body } => {
                self.condition(cond);
                self.block(body);
            }
            StmtKind::ForMulti { var, iter, body } => {
                self.expr(iter);
                assert_eq!(self.kind(iter.ty), TyKind::Multi(self.local(*var)));
                self.block(body);
            }
            StmtKind::ForMap { key, value, iter, body } => {
                self.expr(iter);
                assert_eq!(self.kind(iter.ty), TyKind::Map(self.local(*key), self.local(*value)));
                self.block(body);
            }
            StmtKind::Return(Some(value)) => {
                self.expr(value);
                self.same(self.func.ret, value.ty, "return");
            }
            StmtKind::Return(None) => {
                assert!(self.func.ret == Types::VOID || self.nullable_of(self.func.ret).is_some());
            }
            StmtKind::Break | StmtKind::Continue => {}
        }
    }

    fn condition(&self, e: &Expr) {
        self.expr(e);
        self.same(e.ty, Types::BOOL, "condition");
    }

    fn place(&self, place: &Place) -> Ty {
        match place {
            Place::Local(local) => self.local(*local),
            Place::Field(base, class, index) => {
                self.expr(base);
                assert_eq!(self.kind(base.ty), TyKind::Class(*class));
                self.program.classes[class.0 as usize].fields[*index as usize].ty
            }
            Place::Element(base, index) => {
                self.expr(base);
                self.expr(index);
                self.same(index.ty, Types::INT, "index");
                let TyKind::Multi(element) = self.kind(base.ty) else { panic!("{}", self.show(base.ty)) };
                element
            }
            Place::Entry(base, key) => {
                self.expr(base);
                self.expr(key);
                let TyKind::Map(k, v) = self.kind(base.ty) else { panic!("{}", self.show(base.ty)) };
                self.same(key.ty, k, "key");
                v
            }
            Place::Column(row, class, index) => {
                self.expr(row);
                assert_eq!(self.kind(row.ty), TyKind::Row(*class));
                self.program.classes[class.0 as usize].fields[*index as usize].ty
            }
        }
    }

    fn block_expr(&self, body: &BlockExpr, ty: Ty) {
        self.block(&body.block);
        if let Some(value) = &body.value {
            self.expr(value);
            self.same(value.ty, ty, "value of a block");
        }
    }

    fn args(&self, args: &[Expr], wanted: impl Iterator<Item = Ty>) {
        let wanted: Vec<Ty> = wanted.collect();
        assert_eq!(args.len(), wanted.len());
        for (arg, ty) in args.iter().zip(wanted) {
            self.expr(arg);
            self.same(arg.ty, ty, "argument");
        }
    }

    fn object(&self, class: crate::hir::ClassId, fields: &[(u32, Expr)], defaults: &[u32]) {
        let decl = &self.program.classes[class.0 as usize];
        let mut seen = BTreeSet::new();
        for (index, value) in fields {
            self.expr(value);
            self.same(value.ty, decl.fields[*index as usize].ty, "field");
            assert!(seen.insert(*index), "field twice");
        }
        for index in defaults {
            assert!(decl.fields[*index as usize].default.is_some());
            assert!(seen.insert(*index), "field twice");
        }
        assert_eq!(seen.len(), decl.fields.len(), "fields of {}", decl.name);
    }

    fn expr(&self, e: &Expr) {
        let bad = matches!(
            self.kind(e.ty),
            TyKind::Error | TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap | TyKind::Backlink(..)
        );
        assert!(!bad, "{} in {}: {:?}", self.show(e.ty), self.func.display, e.kind);
        match &e.kind {
            ExprKind::Int(_) => self.same(e.ty, Types::INT, "Int"),
            ExprKind::Float(_) => self.same(e.ty, Types::FLOAT, "Float"),
            ExprKind::Bool(_) => self.same(e.ty, Types::BOOL, "Bool"),
            ExprKind::Text(_) => self.same(e.ty, Types::TEXT, "Text"),
            ExprKind::Nil => assert!(self.nullable_of(e.ty).is_some(), "nil of {}", self.show(e.ty)),
            ExprKind::Local(local) => {
                let ty = self.local(*local);
                if self.nullable_of(ty).is_none() {
                    self.same(ty, e.ty, "local");
                } else {
                    assert_eq!(self.nullable_of(ty), self.nullable_of(e.ty));
                }
            }
            ExprKind::IntNeg(v) => {
                self.expr(v);
                self.same(v.ty, Types::INT, "negation");
            }
            ExprKind::FloatNeg(v) => {
                self.expr(v);
                self.same(v.ty, Types::FLOAT, "negation");
            }
            ExprKind::Not(v) => self.condition(v),
            ExprKind::Binary(op, a, b) => {
                self.expr(a);
                self.expr(b);
                let (operand, result) = self.operator(*op, a.ty);
                if let Some(operand) = operand {
                    self.same(a.ty, operand, "operand");
                }
                self.same(a.ty, b.ty, "operands");
                self.same(e.ty, result, "result");
            }
            ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                self.condition(a);
                self.condition(b);
            }
            ExprKind::NullableEq { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
                assert!(self.nullable_of(lhs.ty).is_some());
                self.same(lhs.ty, rhs.ty, "nullable operands");
            }
            ExprKind::IsNil { operand, .. } => {
                self.expr(operand);
                assert!(self.nullable_of(operand.ty).is_some());
            }
            ExprKind::Concat(parts) => {
                for part in parts {
                    self.expr(part);
                    let fits = matches!(
                        self.kind(part.ty),
                        TyKind::Text
                            | TyKind::Json
                            | TyKind::Int
                            | TyKind::Bool
                            | TyKind::Float
                            | TyKind::Row(_)
                            | TyKind::Never
                    );
                    assert!(fits, "{}", self.show(part.ty));
                }
            }
            ExprKind::Wrap(v) => {
                self.expr(v);
                assert_eq!(self.nullable_of(e.ty), Some(v.ty));
            }
            ExprKind::Unwrap(v, _) => {
                self.expr(v);
                assert_eq!(self.nullable_of(v.ty), Some(e.ty));
            }
            ExprKind::Convert(v) => {
                self.expr(v);
                assert_eq!(self.nullable_of(v.ty).is_some(), self.nullable_of(e.ty).is_some());
                let (from, to) = (self.nullable_of(v.ty).unwrap_or(v.ty), self.nullable_of(e.ty).unwrap_or(e.ty));
                let fits = from == to
                    || matches!(
                        (self.kind(from), self.kind(to)),
                        (TyKind::Bool | TyKind::Row(_), TyKind::Int)
                            | (TyKind::Int, TyKind::Row(_))
                            | (TyKind::Text, TyKind::Json)
                            | (TyKind::Json, TyKind::Text)
                            | (TyKind::Class(_) | TyKind::Iface(_), TyKind::Iface(_))
                    );
                assert!(fits, "{} to {}", self.show(from), self.show(to));
            }
            ExprKind::VoidAsInt(v) => {
                self.expr(v);
                self.same(v.ty, Types::VOID, "void");
                self.same(e.ty, Types::INT, "void");
            }
            ExprKind::Field(base, class, index) => {
                let ty = self.place(&Place::Field((**base).clone(), *class, *index));
                self.same(ty, e.ty, "field");
            }
            ExprKind::Element(base, index) => {
                let ty = self.place(&Place::Element((**base).clone(), (**index).clone()));
                self.same(ty, e.ty, "element");
            }
            ExprKind::Entry(base, key) => {
                let ty = self.place(&Place::Entry((**base).clone(), (**key).clone()));
                assert_eq!(Some(self.nullable_of(ty).unwrap_or(ty)), self.nullable_of(e.ty));
            }
            ExprKind::New { class, fields, defaults } => {
                self.object(*class, fields, defaults);
                assert_eq!(self.kind(e.ty), TyKind::Class(*class));
            }
            ExprKind::Spawn { class, fields, defaults } => {
                self.object(*class, fields, defaults);
                assert!(self.program.classes[class.0 as usize].receive.is_some());
            }
            ExprKind::NewVariant { union, variant, args } => {
                let decl = &self.program.unions[union.0 as usize];
                assert!(decl.has_payload);
                self.args(args, decl.variants[*variant as usize].fields.iter().map(|f| f.1));
            }
            ExprKind::Ordinal { union, .. } => assert!(!self.program.unions[union.0 as usize].has_payload),
            ExprKind::List(items) => {
                let TyKind::Multi(element) = self.kind(e.ty) else { panic!("{}", self.show(e.ty)) };
                for item in items {
                    self.expr(item);
                    self.same(item.ty, element, "item");
                }
            }
            ExprKind::EmptyMap => assert!(matches!(self.kind(e.ty), TyKind::Map(..))),
            ExprKind::Call(func, args) => {
                let decl = &self.program.funcs[func.0 as usize];
                self.args(args, decl.locals.iter().take(decl.params.len()).map(|l| l.ty));
                assert_eq!(self.nullable_of(decl.ret).unwrap_or(decl.ret), self.nullable_of(e.ty).unwrap_or(e.ty));
            }
            ExprKind::CallIface { iface, slot, recv, args } => {
                self.expr(recv);
                assert_eq!(self.kind(recv.ty), TyKind::Iface(*iface));
                self.args(
                    args,
                    self.program.interfaces[iface.0 as usize].sigs[*slot as usize].params.iter().map(|p| p.1),
                );
            }
            ExprKind::Builtin(_, args) => args.iter().for_each(|a| self.expr(a)),
            ExprKind::Store(op) => op.operands().into_iter().for_each(|o| self.expr(o)),
            ExprKind::JsonDecode(v) => {
                self.expr(v);
                assert_eq!(self.kind(v.ty), TyKind::Nullable(Types::TEXT));
            }
            ExprKind::Switch(switch) => {
                self.expr(&switch.subject);
                self.same(switch.subject.ty, self.local(switch.subject_local), "subject");
                for (at, arm) in switch.arms.iter().enumerate() {
                    match &arm.test {
                        ArmTest::Default => assert_eq!(at + 1, switch.arms.len()),
                        ArmTest::Any(tests) => tests.iter().for_each(|t| self.condition(t)),
                        ArmTest::Ordinals(_) => assert!(matches!(self.kind(switch.subject.ty), TyKind::Union(_))),
                        ArmTest::Variants(union, variants, bindings) => {
                            assert_eq!(self.kind(switch.subject.ty), TyKind::Union(*union));
                            if let [variant] = variants.as_slice()
                                && !bindings.is_empty()
                            {
                                let fields = &self.program.unions[union.0 as usize].variants[*variant as usize].fields;
                                assert_eq!(fields.len(), bindings.len());
                                for (field, local) in fields.iter().zip(bindings) {
                                    self.same(field.1, self.local(*local), "binding");
                                }
                            } else {
                                assert!(bindings.is_empty());
                            }
                        }
                    }
                    self.block_expr(&arm.body, e.ty);
                }
            }
            ExprKind::Try { body, handler, .. } => {
                self.expr(body);
                if e.ty != Types::VOID && !self.ends(body) {
                    self.same(body.ty, e.ty, "body of try");
                }
                self.block_expr(handler, e.ty);
            }
        }
    }

    /// Calls that never return have whatever type they declare.
    fn ends(&self, e: &Expr) -> bool {
        matches!(&e.kind, ExprKind::Call(func, _) if self.program.funcs[func.0 as usize].never_returns)
    }

    fn operator(&self, op: BinaryOp, given: Ty) -> (Option<Ty>, Ty) {
        use BinaryOp as B;
        match op {
            B::IntAdd
            | B::IntSub
            | B::IntMul
            | B::IntDiv
            | B::IntRem
            | B::BitAnd
            | B::BitOr
            | B::BitXor
            | B::Shl
            | B::Shr => (Some(Types::INT), Types::INT),
            B::IntLt | B::IntLe | B::IntGt | B::IntGe => (Some(Types::INT), Types::BOOL),
            B::FloatAdd | B::FloatSub | B::FloatMul | B::FloatDiv => (Some(Types::FLOAT), Types::FLOAT),
            B::FloatLt | B::FloatLe | B::FloatGt | B::FloatGe | B::FloatEq | B::FloatNe => {
                (Some(Types::FLOAT), Types::BOOL)
            }
            B::TextLt | B::TextLe | B::TextGt | B::TextGe | B::TextEq | B::TextNe => {
                assert!(matches!(given, Types::TEXT | Types::BYTES | Types::JSON | Types::NEVER));
                (None, Types::BOOL)
            }
            B::WordEq | B::WordNe | B::RefEq | B::RefNe => {
                assert!(self.nullable_of(given).is_none());
                (None, Types::BOOL)
            }
        }
    }
}
