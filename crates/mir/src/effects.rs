//! What the evaluation of an expression may do to values that were read before it, and which locals a body assigns.

use analysis::hir::{ArmTest, Block, BlockExpr, Builtin, Expr, ExprKind, LocalId, Place, StmtKind};

/// Effects of an expression on operands that were evaluated before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// May run user code or change an object: a borrowed projection may lose its owner.
    pub runs: bool,
    /// Contains a block, which may assign locals of the function.
    pub blocks: bool,
}

impl Effects {
    pub fn or(self, other: Effects) -> Effects {
        Effects { runs: self.runs || other.runs, blocks: self.blocks || other.blocks }
    }
}

/// Effects of evaluating `e`.
pub fn effects(e: &Expr) -> Effects {
    let mut out = Effects::default();
    collect(e, &mut out);
    out
}

fn collect(e: &Expr, out: &mut Effects) {
    if out.runs && out.blocks {
        return;
    }
    match &e.kind {
        ExprKind::Call(..) | ExprKind::CallIface { .. } | ExprKind::Store(_) => out.runs = true,
        ExprKind::Builtin(builtin, _) => out.runs |= mutates(builtin),
        ExprKind::Switch(_) | ExprKind::Try { .. } => {
            out.runs = true;
            out.blocks = true;
            return;
        }
        _ => {}
    }
    e.each_operand(|operand| collect(operand, out));
}

/// Builtins that change an object of the caller, and with it may release something a projection was read from.
fn mutates(builtin: &Builtin) -> bool {
    matches!(
        builtin,
        Builtin::Push
            | Builtin::SetMap
            | Builtin::RemoveMap
            | Builtin::Pop
            | Builtin::Shift
            | Builtin::Sort
            | Builtin::Reverse
    )
}

/// How a body uses the locals of its function.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// Assigned after its declaration.
    pub assigned: Vec<bool>,
    /// Places in the source that read it; what a `switch` reads implicitly counts as several.
    pub reads: Vec<u32>,
}

/// The uses of all locals of a function.
pub fn uses(body: &Block, locals: usize) -> Uses {
    let mut walk = Walk { uses: Uses { assigned: vec![false; locals], reads: vec![0; locals] } };
    walk.block(body);
    walk.uses
}

/// Whether `e` reads `local`, in blocks too.
pub fn mentions(e: &Expr, local: LocalId) -> bool {
    let n = local.0 as usize + 1;
    let mut walk = Walk { uses: Uses { assigned: vec![false; n], reads: vec![0; n] } };
    walk.expr(e);
    walk.uses.reads.last().is_some_and(|reads| *reads > 0)
}

struct Walk {
    uses: Uses,
}

impl Walk {
    fn local(&mut self, local: LocalId) {
        if let Some(slot) = self.uses.assigned.get_mut(local.0 as usize) {
            *slot = true;
        }
    }

    fn read(&mut self, local: LocalId, times: u32) {
        if let Some(slot) = self.uses.reads.get_mut(local.0 as usize) {
            *slot = slot.saturating_add(times);
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Let(_, e) | StmtKind::Expr(e) => self.expr(e),
                StmtKind::Assign(place, e) | StmtKind::OpAssign(place, _, e) => {
                    match place {
                        Place::Local(l) => self.local(*l),
                        Place::Field(base, ..) | Place::Column(base, ..) => self.expr(base),
                        Place::Element(base, index) | Place::Entry(base, index) => {
                            self.expr(base);
                            self.expr(index);
                        }
                    }
                    self.expr(e);
                }
                StmtKind::If { arms, otherwise } => {
                    for (cond, block) in arms {
                        self.expr(cond);
                        self.block(block);
                    }
                    if let Some(block) = otherwise {
                        self.block(block);
                    }
                }
                StmtKind::While { cond, body } | StmtKind::DoWhile { body, cond } => {
                    self.expr(cond);
                    self.block(body);
                }
                StmtKind::ForMulti { iter, body, .. } | StmtKind::ForMap { iter, body, .. } => {
                    self.expr(iter);
                    self.block(body);
                }
                StmtKind::Return(e) => {
                    if let Some(e) = e {
                        self.expr(e);
                    }
                }
                StmtKind::Break | StmtKind::Continue => {}
            }
        }
    }

    fn block_expr(&mut self, b: &BlockExpr) {
        self.block(&b.block);
        if let Some(value) = &b.value {
            self.expr(value);
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Local(local) => self.read(*local, 1),
            ExprKind::Switch(switch) => {
                self.expr(&switch.subject);
                self.read(switch.subject_local, 2);
                for arm in &switch.arms {
                    if let ArmTest::Any(tests) = &arm.test {
                        tests.iter().for_each(|t| self.expr(t));
                    }
                    self.block_expr(&arm.body);
                }
            }
            ExprKind::Try { body, handler, .. } => {
                self.expr(body);
                self.block_expr(handler);
            }
            _ => e.each_operand(|operand| self.expr(operand)),
        }
    }
}
