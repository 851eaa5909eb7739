//! Whether code leaves every object in its place: while it runs, no object that is reachable from a variable can lose
//! a reference that such a place holds. A variable may then borrow what it was read from a place.

use analysis::hir::{ArmTest, Block, BlockExpr, Builtin, Expr, ExprKind, Place, Stmt, StmtKind};

/// What is looked at: looking further costs more than a count.
const BUDGET: u32 = 400;

/// True for statements that run no code of others and overwrite no place with a reference, and so does `value` after
/// them.
pub fn quiet(stmts: &[Stmt], value: Option<&Expr>) -> bool {
    let mut walk = Walk { left: BUDGET };
    walk.stmts(stmts) && value.is_none_or(|e| walk.expr(e))
}

struct Walk {
    left: u32,
}

impl Walk {
    fn block(&mut self, block: &Block) -> bool {
        self.stmts(&block.stmts)
    }

    fn block_expr(&mut self, b: &BlockExpr) -> bool {
        self.block(&b.block) && b.value.as_ref().is_none_or(|e| self.expr(e))
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Let(_, e) | StmtKind::Expr(e) => self.expr(e),
            StmtKind::Assign(place, e) | StmtKind::OpAssign(place, _, e) => {
                let base = match place {
                    Place::Local(_) => true,
                    Place::Field(base, ..) => self.expr(base),
                    Place::Element(base, index) => self.expr(base) && self.expr(index),
                    // May make an entry, which moves the others; what is borrowed from one is not the entry itself.
                    Place::Entry(base, key) => self.expr(base) && self.expr(key),
                    Place::Column(..) => false,
                };
                base && is_scalar(e) && self.expr(e)
            }
            StmtKind::If { arms, otherwise } => {
                arms.iter().all(|(cond, block)| self.expr(cond) && self.block(block))
                    && otherwise.as_ref().is_none_or(|block| self.block(block))
            }
            StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => self.expr(cond) && self.block(body),
            StmtKind::ForMulti { iter, body, .. } | StmtKind::ForMap { iter, body, .. } => {
                self.expr(iter) && self.block(body)
            }
            StmtKind::Return(value) => value.as_ref().is_none_or(|e| self.expr(e)),
            StmtKind::Break | StmtKind::Continue => true,
        }
    }

    fn all(&mut self, exprs: &[Expr]) -> bool {
        exprs.iter().all(|e| self.expr(e))
    }

    fn expr(&mut self, e: &Expr) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        match &e.kind {
            ExprKind::Call(..) | ExprKind::CallIface { .. } | ExprKind::Spawn { .. } | ExprKind::Store(_) => false,
            ExprKind::Builtin(builtin, args) => only_reads(builtin) && self.all(args),
            ExprKind::Switch(switch) => {
                let tests = |walk: &mut Walk, test: &ArmTest| match test {
                    ArmTest::Any(tests) => walk.all(tests),
                    // A payload that is yielded leaves its object.
                    ArmTest::Variants(..) => false,
                    ArmTest::Default | ArmTest::Ordinals(_) => true,
                };
                self.expr(&switch.subject)
                    && switch.arms.iter().all(|arm| tests(self, &arm.test) && self.block_expr(&arm.body))
            }
            ExprKind::Try { body, handler, .. } => self.expr(body) && self.block_expr(handler),
            _ => {
                let mut quiet = true;
                e.each_operand(|operand| quiet = quiet && self.expr(operand));
                quiet
            }
        }
    }
}

/// An assigned value that holds no reference, by its form: what a number is made of.
fn is_scalar(e: &Expr) -> bool {
    use analysis::hir::Types;
    [Types::INT, Types::FLOAT, Types::BOOL].contains(&e.ty)
}

/// Builtins that read, or make something new.
fn only_reads(builtin: &Builtin) -> bool {
    match builtin {
        Builtin::Plain(name) => matches!(
            name.as_str(),
            "sqrt" | "float" | "trunc" | "float_cmp" | "byte_at" | "print" | "print_int" | "parse_int" | "parse_float"
        ),
        Builtin::LenText
        | Builtin::LenMulti
        | Builtin::LenMap
        | Builtin::MultiNew
        | Builtin::MapNew
        | Builtin::GetMulti
        | Builtin::GetMap
        | Builtin::HasMap
        | Builtin::Latest
        | Builtin::KeyAt
        | Builtin::ValAt
        | Builtin::Assert
        | Builtin::AssertEq
        | Builtin::Trap => true,
        _ => false,
    }
}
