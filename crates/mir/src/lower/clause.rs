//! What becomes of the clauses of a query: the plan, what the store compares and reads, what is left for a loop.

use super::FnLower;
use crate::effects::mentions;
use crate::plan;
use abi::tables::{Access, CompareOp, Condition, Ordering, Path, PathEnd, QueryDesc, TableIdx};
use analysis::hir::{BinaryOp, Builtin, ClassId, Expr, ExprKind, LocalId, Query, StoreOp, Ty, TyKind, Types};

/// A condition of a `where`, split at `and`.
pub enum Conjunct<'a> {
    /// Does not mention the row.
    Guard(&'a Expr),
    /// The store compares.
    Native(Path, CompareOp, Operand<'a>),
    Rest(&'a Expr),
}

/// What a path is compared with.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    Nil,
    Word(i64),
    Expr(&'a Expr),
}

/// A query taken apart.
pub struct Parts<'a> {
    pub query: &'a Query,
    pub table: TableIdx,
    pub conjuncts: Vec<Conjunct<'a>>,
    pub rest: Vec<&'a Expr>,
    /// Keys that are evaluated in the loop; empty: there is no order, or the store takes care of it.
    pub computed: Vec<(&'a Expr, bool)>,
    pub select: Select<'a>,
    /// Paths whose values the store reads, and the expressions that they stand for.
    pub outputs: Vec<Path>,
    pub output_types: Vec<Ty>,
    pub gathered: Vec<(*const Expr, usize)>,
    pub desc: QueryDesc,
}

pub enum Select<'a> {
    /// Nothing but the number of rows.
    Count,
    Row,
    /// The first output.
    Output,
    Computed(&'a Expr),
}

impl Parts<'_> {
    /// Whether clauses are evaluated in a loop, `skip` and `take` with them.
    pub fn filters(&self) -> bool {
        !self.rest.is_empty() || !self.computed.is_empty()
    }

    pub fn loops(&self) -> bool {
        self.filters() || matches!(self.select, Select::Computed(_))
    }
}

impl<'a> FnLower<'_, 'a> {
    /// Plans a query; `count`: only the number of its rows is wanted.
    pub fn take_apart(&mut self, query: &'a Query, count: bool) -> Parts<'a> {
        let table = self.cx.layouts.table(query.class);
        let mut conjuncts = Vec::new();
        for filter in &query.filters {
            self.split(filter, query.var, &mut conjuncts);
        }
        let rest: Vec<&'a Expr> = conjuncts
            .iter()
            .filter_map(|c| match c {
                Conjunct::Rest(e) => Some(*e),
                Conjunct::Guard(_) | Conjunct::Native(..) => None,
            })
            .collect();
        let mut conditions: Vec<Condition> = conjuncts
            .iter()
            .filter_map(|c| match c {
                Conjunct::Native(path, op, _) => {
                    Some(Condition { path: path.clone(), op: *op, operand: None, binds: false })
                }
                Conjunct::Guard(_) | Conjunct::Rest(_) => None,
            })
            .collect();
        // Counting needs no order.
        let keys: &[(Expr, bool)] = if count { &[] } else { &query.order };
        let order: Option<Vec<(Path, bool)>> =
            keys.iter().map(|(key, desc)| Some((self.path(key, query.var)?, *desc))).collect();
        let take = query.take.is_some();
        let (access, ordering) = self.access(query, table, &mut conditions, order.as_deref(), take);
        let yielded = matches!(ordering, Ordering::Index { .. });
        // Rows are put in order by the store if it knows which ones there are.
        let by_store = keys.is_empty() || yielded || (order.is_some() && rest.is_empty());
        let computed: Vec<(&'a Expr, bool)> =
            if by_store { Vec::new() } else { keys.iter().map(|(key, desc)| (key, *desc)).collect() };
        let ordering = if by_store || yielded { ordering } else { Ordering::None };
        let select = match self.path(&query.select, query.var) {
            _ if count => Select::Count,
            Some(Path { steps, end: PathEnd::Id }) if steps.is_empty() && is_local(&query.select, query.var) => {
                Select::Row
            }
            Some(_) if rest.is_empty() && computed.is_empty() && self.exact(&query.select, query.var).is_some() => {
                Select::Output
            }
            _ => Select::Computed(&query.select),
        };
        let desc = QueryDesc {
            table,
            access,
            conditions,
            order: if by_store { order.unwrap_or_default() } else { Vec::new() },
            ordering,
            outputs: Vec::new(),
            tables: Vec::new(),
            operands: None,
            source: None,
            skip: None,
            take: None,
            result: 0,
            ids: false,
            computed: computed.iter().map(|(_, desc)| *desc).collect(),
        };
        let mut parts = Parts {
            query,
            table,
            conjuncts,
            rest,
            computed,
            select,
            outputs: Vec::new(),
            output_types: Vec::new(),
            gathered: Vec::new(),
            desc,
        };
        self.gather_outputs(&mut parts);
        parts
    }

    /// Decides which paths the store reads for the clauses that it does not evaluate.
    fn gather_outputs(&mut self, parts: &mut Parts<'a>) {
        let query = parts.query;
        let mut clauses: Vec<&'a Expr> = parts.rest.clone();
        clauses.extend(parts.computed.iter().map(|(key, _)| *key));
        match parts.select {
            Select::Computed(e) => clauses.push(e),
            Select::Output => {
                if let Some(path) = self.exact(&query.select, query.var) {
                    parts.outputs.push(path);
                    parts.output_types.push(query.select.ty);
                }
            }
            Select::Count | Select::Row => {}
        }
        parts.desc.ids = !matches!(parts.select, Select::Output);
        let mut found = Vec::new();
        if !clauses.iter().all(|e| self.gather(e, query.var, &mut found)) {
            return;
        }
        for (e, path) in found {
            let at = parts.outputs.iter().position(|known| *known == path).unwrap_or_else(|| {
                parts.outputs.push(path);
                parts.output_types.push(e.ty);
                parts.outputs.len() - 1
            });
            parts.gathered.push((std::ptr::from_ref(e), at));
        }
    }

    fn access(
        &mut self,
        query: &'a Query,
        table: TableIdx,
        conditions: &mut [Condition],
        order: Option<&[(Path, bool)]>,
        take: bool,
    ) -> (Access, Ordering) {
        let backlink = query.source.as_ref().map(|source| self.backlink_column(source));
        let Some(desc) = self.cx.layouts.shapes.tables.get(table as usize) else {
            return (Access::Scan, Ordering::None);
        };
        match backlink {
            Some(Some(column)) => plan::backlink(desc, column, order, take),
            Some(None) => (Access::List, plan::unordered(order.unwrap_or_default(), take)),
            None => plan::choose(desc, conditions, order, take),
        }
    }

    /// The `ref` column that a backlink as a source stands for.
    fn backlink_column(&self, source: &Expr) -> Option<u32> {
        let (_, class, field) = backlink_source(source)?;
        match self.kind(self.field_type(class, field)) {
            TyKind::Backlink(class, field) => Some(self.cx.layouts.column(class, field)),
            _ => None,
        }
    }

    fn split(&mut self, e: &'a Expr, var: LocalId, out: &mut Vec<Conjunct<'a>>) {
        if let ExprKind::And(lhs, rhs) = &e.kind {
            self.split(lhs, var, out);
            self.split(rhs, var, out);
        } else if !mentions(e, var) {
            out.push(Conjunct::Guard(e));
        } else if let Some((path, op, operand)) = self.comparison(e, var) {
            out.push(Conjunct::Native(path, op, operand));
        } else {
            out.push(Conjunct::Rest(e));
        }
    }

    /// A comparison of a path with something that does not mention the row.
    fn comparison(&mut self, e: &'a Expr, var: LocalId) -> Option<(Path, CompareOp, Operand<'a>)> {
        let (op, lhs, rhs) = match &e.kind {
            ExprKind::Binary(op, lhs, rhs) => (compare_op(*op)?, lhs, rhs),
            ExprKind::NullableEq { eq, negated, lhs, rhs } => {
                let op = compare_op(*eq)?;
                (if *negated { CompareOp::Ne } else { op }, lhs, rhs)
            }
            ExprKind::IsNil { operand, negated } => {
                let op = if *negated { CompareOp::Ne } else { CompareOp::Eq };
                return Some((self.path(operand, var)?, op, Operand::Nil));
            }
            // Not by `==`, which an index could be asked for: that is for conditions that say so.
            ExprKind::Not(inner) if inner.ty == Types::BOOL => {
                return Some((self.exact(inner, var)?, CompareOp::Ne, Operand::Word(1)));
            }
            _ if e.ty == Types::BOOL => return Some((self.exact(e, var)?, CompareOp::Ne, Operand::Word(0))),
            _ => return None,
        };
        if let Some(path) = self.path(lhs, var)
            && !mentions(rhs, var)
        {
            return Some((path, op, Operand::Expr(rhs)));
        }
        let path = self.path(rhs, var)?;
        let turned = match op {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            CompareOp::Eq | CompareOp::Ne => op,
        };
        (!mentions(lhs, var)).then_some((path, turned, Operand::Expr(lhs)))
    }

    /// The path that an expression stands for, whatever it is converted to.
    fn path(&mut self, e: &Expr, var: LocalId) -> Option<Path> {
        match &e.kind {
            ExprKind::Convert(inner) | ExprKind::Wrap(inner) => self.path(inner, var),
            ExprKind::Local(local) if *local == var => Some(Path { steps: Vec::new(), end: PathEnd::Id }),
            _ => self.exact(e, var),
        }
    }

    /// The path of a column or the length of a backlink.
    fn exact(&mut self, e: &Expr, var: LocalId) -> Option<Path> {
        if let Some((row, class, field)) = Self::backlink_length(e) {
            let steps = self.steps(row, var)?;
            let TyKind::Backlink(class, field) = self.kind(self.field_type(class, field)) else { return None };
            let (table, index) = self.cx.layouts.ref_index(class, field);
            return Some(Path { steps, end: PathEnd::Referrers { table, index } });
        }
        let ExprKind::Store(op) = &e.kind else { return None };
        let StoreOp::Column(row, class, field) = &**op else { return None };
        let steps = self.steps(row, var)?;
        let _ = self.cx.layouts.table(*class);
        Some(Path { steps, end: PathEnd::Column(self.cx.layouts.column(*class, *field)) })
    }

    /// The `ref` columns that lead from the query's row to `row`.
    fn steps(&mut self, row: &Expr, var: LocalId) -> Option<Vec<u32>> {
        match &row.kind {
            ExprKind::Local(local) if *local == var => Some(Vec::new()),
            ExprKind::Store(op) => match &**op {
                StoreOp::Column(inner, class, field) if matches!(self.kind(row.ty), TyKind::Row(_)) => {
                    let mut steps = self.steps(inner, var)?;
                    steps.push(self.cx.layouts.column(*class, *field));
                    Some(steps)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Finds the paths in a clause. False: something in it runs code of the program, waits, or touches tables otherwise.
    fn gather(&mut self, e: &'a Expr, var: LocalId, out: &mut Vec<(&'a Expr, Path)>) -> bool {
        if let Some(path) = self.exact(e, var) {
            out.push((e, path));
            return true;
        }
        let computes = match &e.kind {
            ExprKind::Store(_)
            | ExprKind::Call(..)
            | ExprKind::CallIface { .. }
            | ExprKind::Spawn { .. }
            | ExprKind::Switch(_)
            | ExprKind::Try { .. } => false,
            ExprKind::Builtin(builtin, _) => only_computes(builtin),
            _ => true,
        };
        let mut all = computes;
        e.each_operand(|operand| all = all && self.gather(operand, var, out));
        all
    }
}

fn is_local(e: &Expr, local: LocalId) -> bool {
    matches!(e.kind, ExprKind::Local(l) if l == local)
}

/// The row, class and field of a backlink as a source.
pub fn backlink_source(source: &Expr) -> Option<(&Expr, ClassId, u32)> {
    match &source.kind {
        ExprKind::Store(op) => match &**op {
            StoreOp::Backlink(row, class, field) => Some((row, *class, *field)),
            _ => None,
        },
        _ => None,
    }
}

fn compare_op(op: BinaryOp) -> Option<CompareOp> {
    match op {
        BinaryOp::WordEq | BinaryOp::FloatEq | BinaryOp::TextEq => Some(CompareOp::Eq),
        BinaryOp::WordNe | BinaryOp::FloatNe | BinaryOp::TextNe => Some(CompareOp::Ne),
        BinaryOp::IntLt | BinaryOp::FloatLt | BinaryOp::TextLt => Some(CompareOp::Lt),
        BinaryOp::IntLe | BinaryOp::FloatLe | BinaryOp::TextLe => Some(CompareOp::Le),
        BinaryOp::IntGt | BinaryOp::FloatGt | BinaryOp::TextGt => Some(CompareOp::Gt),
        BinaryOp::IntGe | BinaryOp::FloatGe | BinaryOp::TextGe => Some(CompareOp::Ge),
        _ => None,
    }
}

/// Builtins that neither wait nor touch tables.
fn only_computes(builtin: &Builtin) -> bool {
    match builtin {
        Builtin::Plain(name) => {
            !["net.", "fs.", "time.sleep", "proc.", "signal.", "term."].iter().any(|waits| name.starts_with(waits))
        }
        // A row's JSON is read from its table.
        Builtin::JsonEncode => false,
        Builtin::Send | Builtin::Call | Builtin::CallDl | Builtin::Monitor | Builtin::After => false,
        _ => true,
    }
}
