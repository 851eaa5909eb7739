//! Queries. What the store can do, it does in one statement: conditions that compare a path from the row with a value
//! without it, order by paths, `skip`, `take`, values of paths. For other clauses the store reads the values of all
//! paths in them, in that same statement, and a loop evaluates the clauses over these lists. Clauses that run code of
//! the program, or touch tables in other ways, are evaluated row by row over the ids.

use super::FnLower;
use super::value::{Own, Value};
use crate::effects::{Effects, mentions};
use crate::ir::{BlockId, InstKind, IntOp, Local, Plan, Rep};
use crate::plan;
use crate::shapes::Shape;
use abi::desc::{TYPE_INT, TypeIdx};
use abi::layout;
use abi::tables::{CompareOp, Condition, Path, PathEnd, QueryDesc, TableIdx};
use analysis::hir::{BinaryOp, Builtin, Expr, ExprKind, LocalId, Query, StoreOp, Ty, TyKind};
use rustc_hash::FxHashMap;

/// Values that the store has read for the clauses of a query.
pub struct Gathered {
    /// The list of each expression's values.
    lists: FxHashMap<*const Expr, Local>,
    /// The row at hand.
    index: Local,
}

/// A condition of a `where`, split at `and`.
enum Conjunct<'a> {
    /// Does not mention the row.
    Guard(&'a Expr),
    /// The store compares; `None`: with nil.
    Native(Path, CompareOp, Option<&'a Expr>),
    Rest(&'a Expr),
}

/// A query taken apart.
struct Parts<'a> {
    query: &'a Query,
    table: TableIdx,
    conjuncts: Vec<Conjunct<'a>>,
    rest: Vec<&'a Expr>,
    /// Keys that are evaluated in the loop; empty: there is no order, or the store takes care of it.
    computed: Vec<(&'a Expr, bool)>,
    select: Select<'a>,
    /// Paths whose values the store reads, and the expressions that they stand for.
    outputs: Vec<Path>,
    output_types: Vec<Ty>,
    gathered: Vec<(*const Expr, usize)>,
    desc: QueryDesc,
}

enum Select<'a> {
    /// Nothing but the number of rows.
    Count,
    Row,
    /// The first output.
    Output,
    Computed(&'a Expr),
}

impl Parts<'_> {
    /// Whether clauses are evaluated in a loop, `skip` and `take` with them.
    fn filters(&self) -> bool {
        !self.rest.is_empty() || !self.computed.is_empty()
    }

    fn loops(&self) -> bool {
        self.filters() || matches!(self.select, Select::Computed(_))
    }
}

/// Operands of a query, evaluated: with the value of each field of their object.
#[derive(Default)]
struct Operands {
    fields: Vec<(TypeIdx, Value)>,
    skip: Option<Value>,
    take: Option<Value>,
}

impl<'a> FnLower<'_, 'a> {
    /// A value that the store has read for the clause at hand.
    pub fn gathered_value(&mut self, e: &'a Expr) -> Option<Value> {
        let gathered = self.gathered.as_ref()?;
        let (list, index) = (*gathered.lists.get(&std::ptr::from_ref(e))?, gathered.index);
        Some(self.list_item(list, index, e.ty))
    }

    /// The list of a query's results.
    pub fn query(&mut self, query: &'a Query, ty: Ty) -> Value {
        let mut parts = self.take_apart(query, false);
        let depth = self.b.depth();
        let (empty, join) = (self.b.block(), self.b.block());
        let out = self.fresh(Shape::One(Rep::Obj), ty);
        let operands = self.query_operands(&mut parts, depth, empty);
        let (number, object) = self.finish_desc(&mut parts, &operands);
        let argument = object.map_or_else(|| self.null(), |o| o.a);
        let found = self.b.runtime1("query.run", vec![number, argument], Rep::Obj);
        let found = self.owned(Value::one(Rep::Obj, found, Own::Owned));
        if let Some(object) = object {
            self.drop_value(object);
        }
        let list = if parts.loops() {
            let list = self.run_clauses(&parts, &operands, number, found, Some(ty));
            self.drop_value(found);
            list.unwrap_or_else(Value::none)
        } else {
            let list = self.b.load(Rep::Obj, true, found.a, layout::FIELDS);
            self.out_of(found, Value::one(Rep::Obj, list, Own::Proj))
        };
        self.consume(list);
        self.b.copy(out.a, list.a);
        self.b.jump(join);
        self.b.start(empty);
        let none = self.new_multi(ty, 0);
        self.consume(none);
        self.b.copy(out.a, none.a);
        self.b.jump(join);
        self.b.start(join);
        self.owned(out)
    }

    /// The number of a query's results, without a list.
    pub fn count_query(&mut self, query: &'a Query) -> Value {
        let mut parts = self.take_apart(query, true);
        let depth = self.b.depth();
        let (empty, join) = (self.b.block(), self.b.block());
        let out = self.b.temp(Rep::Int);
        let operands = self.query_operands(&mut parts, depth, empty);
        let (number, object) = self.finish_desc(&mut parts, &operands);
        let argument = object.map_or_else(|| self.null(), |o| o.a);
        if parts.loops() {
            let found = self.b.runtime1("query.run", vec![number, argument], Rep::Obj);
            let found = self.owned(Value::one(Rep::Obj, found, Own::Owned));
            if let Some(object) = object {
                self.drop_value(object);
            }
            let count = self.run_clauses(&parts, &operands, number, found, None);
            self.b.copy(out, count.unwrap_or_else(Value::none).a);
            self.drop_value(found);
        } else {
            self.b.runtime("query.count", vec![number, argument], vec![out]);
            if let Some(object) = object {
                self.drop_value(object);
            }
        }
        self.b.jump(join);
        self.b.start(empty);
        self.b.emit(InstKind::Int(out, 0));
        self.b.jump(join);
        self.b.start(join);
        Value::int(out)
    }

    fn null(&mut self) -> Local {
        let dst = self.b.temp(Rep::Obj);
        self.b.emit(InstKind::Null(dst));
        dst
    }

    // -- what the store does, and what is left ---------------------------------------------------------------------

    fn take_apart(&mut self, query: &'a Query, count: bool) -> Parts<'a> {
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
        let yielded = matches!(ordering, abi::tables::Ordering::Index { .. });
        // Rows are put in order by the store if it knows which ones there are.
        let by_store = keys.is_empty() || yielded || (order.is_some() && rest.is_empty());
        let computed: Vec<(&'a Expr, bool)> =
            if by_store { Vec::new() } else { keys.iter().map(|(key, desc)| (key, *desc)).collect() };
        let ordering = if by_store || yielded { ordering } else { abi::tables::Ordering::None };
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
    ) -> (abi::tables::Access, abi::tables::Ordering) {
        let backlink = query.source.as_ref().map(|source| self.backlink_column(source));
        let Some(desc) = self.cx.layouts.shapes.tables.get(table as usize) else {
            return (abi::tables::Access::Scan, abi::tables::Ordering::None);
        };
        match backlink {
            Some(Some(column)) => plan::backlink(desc, column, order, take),
            Some(None) => (abi::tables::Access::List, plan::unordered(order.unwrap_or_default(), take)),
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
    fn comparison(&mut self, e: &'a Expr, var: LocalId) -> Option<(Path, CompareOp, Option<&'a Expr>)> {
        let (op, lhs, rhs) = match &e.kind {
            ExprKind::Binary(op, lhs, rhs) => (compare_op(*op)?, lhs, rhs),
            ExprKind::NullableEq { eq, negated, lhs, rhs } => {
                let op = compare_op(*eq)?;
                (if *negated { CompareOp::Ne } else { op }, lhs, rhs)
            }
            ExprKind::IsNil { operand, negated } => {
                let op = if *negated { CompareOp::Ne } else { CompareOp::Eq };
                return Some((self.path(operand, var)?, op, None));
            }
            _ => return None,
        };
        if let Some(path) = self.path(lhs, var)
            && !mentions(rhs, var)
        {
            return Some((path, op, Some(rhs)));
        }
        let path = self.path(rhs, var)?;
        let turned = match op {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            CompareOp::Eq | CompareOp::Ne => op,
        };
        (!mentions(lhs, var)).then_some((path, turned, Some(lhs)))
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

    // -- operands --------------------------------------------------------------------------------------------------

    /// Evaluates what the query needs from outside, in the order of the source. A guard that does not hold leads to
    /// `empty`, with the live stack as high as `depth`.
    fn query_operands(&mut self, parts: &mut Parts<'a>, depth: usize, empty: BlockId) -> Operands {
        let mut out = Operands::default();
        let query = parts.query;
        if let Some(source) = &query.source {
            let row = backlink_source(source).map(|(row, ..)| row);
            parts.desc.source = Some(self.query_operand(row.unwrap_or(source), &mut out));
        }
        let mut native = 0;
        for conjunct in &parts.conjuncts {
            match conjunct {
                Conjunct::Rest(_) => {}
                Conjunct::Guard(guard) => {
                    let (next, fails) = (self.b.block(), self.b.block());
                    self.cond(guard, next, fails);
                    self.b.start(fails);
                    self.b.leave(depth, empty);
                    self.b.start(next);
                }
                Conjunct::Native(_, _, operand) => {
                    let field = operand.map(|e| self.query_operand(e, &mut out));
                    if let Some(condition) = parts.desc.conditions.get_mut(native) {
                        condition.operand = field;
                    }
                    native += 1;
                }
            }
        }
        for (clause, is_skip) in query.skip.iter().map(|e| (e, true)).chain(query.take.iter().map(|e| (e, false))) {
            let value = self.expr(clause);
            let value = self.coerce(value, Shape::One(Rep::Int));
            let value = self.protect(value, Effects { runs: true, blocks: true });
            if parts.filters() {
                let clamped = Value::int(self.clamp(value.a));
                *(if is_skip { &mut out.skip } else { &mut out.take }) = Some(clamped);
                continue;
            }
            out.fields.push((TYPE_INT, value));
            let field = u32::try_from(out.fields.len() - 1).ok();
            *(if is_skip { &mut parts.desc.skip } else { &mut parts.desc.take }) = field;
        }
        out
    }

    /// Evaluates an operand; the number of its field.
    fn query_operand(&mut self, e: &'a Expr, out: &mut Operands) -> u32 {
        let value = self.expr(e);
        let value = self.coerce(value, self.shape(e.ty));
        let value = self.protect(value, Effects { runs: true, blocks: true });
        let ty = self.cx.layouts.ty(e.ty);
        out.fields.push((ty, value));
        u32::try_from(out.fields.len() - 1).unwrap_or(u32::MAX)
    }

    /// Negative numbers count as 0.
    fn clamp(&mut self, n: Local) -> Local {
        let zero = self.b.int(0);
        let negative = self.b.int_op(IntOp::Lt, n, zero);
        let one = self.b.int(1);
        let mask = self.b.int_op(IntOp::Sub, negative, one);
        self.b.int_op(IntOp::And, n, mask)
    }

    /// Completes the description, adds it to the program's, and makes the object of the operands.
    fn finish_desc(&mut self, parts: &mut Parts<'a>, operands: &Operands) -> (Local, Option<Value>) {
        let row = self.cx.layouts.shapes.tables.get(parts.table as usize).map(|t| t.class).unwrap_or(0);
        let mut fields = Vec::new();
        if parts.desc.ids {
            let row = self.cx.layouts.row_type(row);
            fields.push(self.cx.layouts.list_of(row));
        }
        for ty in &parts.output_types {
            let element = self.cx.layouts.ty(*ty);
            fields.push(self.cx.layouts.list_of(element));
        }
        parts.desc.result = self.cx.layouts.made_class(fields);
        parts.desc.outputs.clone_from(&parts.outputs);
        let mut tables = vec![parts.table];
        let paths = parts.desc.conditions.iter().map(|c| &c.path);
        for path in paths.chain(parts.desc.order.iter().map(|(path, _)| path)).chain(&parts.outputs) {
            self.cx.layouts.tables_of(parts.table, path, &mut tables);
        }
        if let abi::tables::Access::Backlink { index } = parts.desc.access {
            tables.extend(self.cx.layouts.index_target(parts.table, index));
        }
        tables.sort_unstable();
        tables.dedup();
        parts.desc.tables = tables;
        let object = if operands.fields.is_empty() {
            None
        } else {
            let class = self.cx.layouts.made_class(operands.fields.iter().map(|(ty, _)| *ty).collect());
            parts.desc.operands = Some(class);
            let stores: Vec<(i32, Value)> = operands
                .fields
                .iter()
                .enumerate()
                .map(|(i, (_, value))| (self.cx.layouts.offset(class, i), *value))
                .collect();
            Some(self.allocate(class, &stores))
        };
        if let Some(table) = self.cx.layouts.shapes.tables.get(parts.table as usize) {
            let text = plan::describe(table, &parts.desc, !parts.rest.is_empty(), parts.query.take.is_some());
            self.cx.plans.push(Plan { file: self.cx.file, line: self.b.line, text });
        }
        let queries = &mut self.cx.layouts.shapes.queries;
        let number = queries.iter().position(|known| *known == parts.desc).unwrap_or_else(|| {
            queries.push(parts.desc.clone());
            queries.len() - 1
        });
        (self.b.int(i64::try_from(number).unwrap_or(0)), object)
    }

    // -- clauses in loops ------------------------------------------------------------------------------------------

    /// Evaluates the clauses over what the store found: the list of type `ty`, or the number of rows.
    fn run_clauses(
        &mut self,
        parts: &Parts<'a>,
        operands: &Operands,
        number: Local,
        found: Value,
        ty: Option<Ty>,
    ) -> Option<Value> {
        let ids = self.b.load(Rep::Obj, true, found.a, layout::FIELDS);
        let mut lists = Vec::with_capacity(parts.outputs.len());
        for i in 0..parts.outputs.len() {
            let offset = self.cx.layouts.offset(parts.desc.result, i + 1);
            lists.push(self.b.load(Rep::Obj, true, found.a, offset));
        }
        let index = self.b.temp(Rep::Int);
        let of = |(e, at): &(*const Expr, usize)| Some((*e, *lists.get(*at)?));
        let gathered = Gathered { lists: parts.gathered.iter().filter_map(of).collect(), index };
        // Within clauses that run row by row, queries have lists of their own.
        let outer = self.gathered.replace(gathered);
        let length = self.b.load(Rep::Int, false, ids, layout::MULTI_LEN);
        let out = if parts.computed.is_empty() {
            self.clauses_in_order(parts, operands, ids, length, index, ty)
        } else {
            self.clauses_then_order(parts, operands, number, (ids, length, index), ty)
        };
        self.gathered = outer;
        out
    }

    /// Filters, skips, takes and projects in one pass.
    fn clauses_in_order(
        &mut self,
        parts: &Parts<'a>,
        operands: &Operands,
        ids: Local,
        length: Local,
        index: Local,
        ty: Option<Ty>,
    ) -> Option<Value> {
        let list = ty.map(|ty| self.new_multi(ty, 0));
        let count = self.counter(0);
        let skip = operands.skip.map(|v| self.counter_from(v.a));
        let take = operands.take.map(|v| self.counter_from(v.a));
        self.each_index(index, length, |f, exit, latch| {
            if let Some(take) = take {
                let go = f.b.block();
                f.b.branch(take, go, exit);
                f.b.start(go);
            }
            f.bind_row(parts.query.var, ids, index);
            f.filter(parts, latch);
            if let Some(skip) = skip {
                let (skipped, go) = (f.b.block(), f.b.block());
                f.b.branch(skip, skipped, go);
                f.b.start(skipped);
                f.step(skip, IntOp::Sub);
                f.b.jump(latch);
                f.b.start(go);
            }
            match list {
                Some(list) => f.project(parts, list, ids, index),
                None => f.step(count, IntOp::Add),
            }
            if let Some(take) = take {
                f.step(take, IntOp::Sub);
            }
        });
        Some(list.unwrap_or_else(|| Value::int(count)))
    }

    /// Filters and computes the keys, has the positions put in order, then projects.
    fn clauses_then_order(
        &mut self,
        parts: &Parts<'a>,
        operands: &Operands,
        number: Local,
        (ids, length, index): (Local, Local, Local),
        ty: Option<Ty>,
    ) -> Option<Value> {
        let ty = ty?;
        let mut types = vec![TYPE_INT];
        for (key, _) in &parts.computed {
            types.push(self.cx.layouts.ty(key.ty));
        }
        let lists: Vec<Value> = types.iter().map(|ty| self.new_list(*ty)).collect();
        self.each_index(index, length, |f, _, latch| {
            f.bind_row(parts.query.var, ids, index);
            f.filter(parts, latch);
            if let Some(positions) = lists.first() {
                f.push_value(positions.a, Value::int(index));
            }
            for ((key, _), list) in parts.computed.iter().zip(lists.iter().skip(1)) {
                let value = f.expr(key);
                let value = f.coerce(value, f.shape(key.ty));
                f.push_value(list.a, value);
            }
        });
        let fields = types.iter().map(|ty| self.cx.layouts.list_of(*ty)).collect();
        let class = self.cx.layouts.made_class(fields);
        let stores: Vec<(i32, Value)> =
            lists.iter().enumerate().map(|(i, list)| (self.cx.layouts.offset(class, i), *list)).collect();
        let keys = self.allocate(class, &stores);
        let skip = operands.skip.map_or_else(|| self.b.int(0), |v| v.a);
        let take = operands.take.map_or_else(|| self.b.int(-1), |v| v.a);
        let order = self.b.runtime1("query.order", vec![number, keys.a, skip, take], Rep::Obj);
        let order = self.owned(Value::one(Rep::Obj, order, Own::Owned));
        let list = self.new_multi(ty, 0);
        let length = self.b.load(Rep::Int, false, order.a, layout::MULTI_LEN);
        let at = self.b.temp(Rep::Int);
        self.each_index(at, length, |f, _, _| {
            let position = f.list_item(order.a, at, analysis::hir::Types::INT);
            f.b.copy(index, position.a);
            f.bind_row(parts.query.var, ids, index);
            f.project(parts, list, ids, index);
        });
        self.drop_value(order);
        self.drop_value(keys);
        Some(list)
    }

    fn bind_row(&mut self, var: LocalId, ids: Local, index: Local) {
        let id = self.list_item(ids, index, analysis::hir::Types::INT);
        let var = self.var(var);
        self.b.copy(var.a, id.a);
    }

    fn filter(&mut self, parts: &Parts<'a>, latch: BlockId) {
        for clause in &parts.rest {
            let passed = self.b.block();
            self.cond(clause, passed, latch);
            self.b.start(passed);
        }
    }

    fn project(&mut self, parts: &Parts<'a>, list: Value, ids: Local, index: Local) {
        let value = match parts.select {
            Select::Computed(e) => {
                let value = self.expr(e);
                self.coerce(value, self.element_shape(e.ty))
            }
            Select::Row | Select::Output | Select::Count => self.list_item(ids, index, analysis::hir::Types::INT),
        };
        self.push_value(list.a, value);
    }

    /// A projection without a value counts as the Int 0.
    fn element_shape(&self, ty: Ty) -> Shape {
        match self.shape(ty) {
            Shape::None => Shape::One(Rep::Int),
            shape => shape,
        }
    }

    /// Runs `body` with `index` from 0 up to `length`; it gets the loop's exit and its latch. It costs no reduction: a
    /// query is one statement.
    fn each_index(&mut self, index: Local, length: Local, body: impl FnOnce(&mut Self, BlockId, BlockId)) {
        let (head, inner, latch, exit) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        self.b.emit(InstKind::Int(index, 0));
        let at = self.b.temp(Rep::Int);
        self.b.emit(InstKind::Int(at, 0));
        self.b.jump(head);
        self.b.start(head);
        let more = self.b.int_op(IntOp::Lt, at, length);
        self.b.branch(more, inner, exit);
        self.b.start(inner);
        self.b.copy(index, at);
        self.nesting += 1;
        body(self, exit, latch);
        self.nesting -= 1;
        self.b.jump(latch);
        self.b.start(latch);
        self.step(at, IntOp::Add);
        self.b.jump(head);
        self.b.start(exit);
    }

    fn step(&mut self, counter: Local, op: IntOp) {
        let one = self.b.int(1);
        self.b.emit(InstKind::IntOp(counter, op, counter, one));
    }

    fn counter(&mut self, from: i64) -> Local {
        let counter = self.b.temp(Rep::Int);
        self.b.emit(InstKind::Int(counter, from));
        counter
    }

    fn counter_from(&mut self, from: Local) -> Local {
        let counter = self.b.temp(Rep::Int);
        self.b.copy(counter, from);
        counter
    }

    /// Element `index` of a list that is at least as long.
    fn list_item(&mut self, list: Local, index: Local, ty: Ty) -> Value {
        let dst = self.b.temp(Rep::Int);
        let words = self.shape(ty).words();
        let unwind = self.b.unwind();
        self.b.emit(InstKind::Element { dst, multi: list, index, words, checked: false, unwind });
        self.load_value(ty, dst, 0)
    }

    fn new_list(&mut self, element: TypeIdx) -> Value {
        let (element, capacity) = (self.b.int(i64::from(element)), self.b.int(0));
        let dst = self.b.runtime1("multi.new", vec![element, capacity], Rep::Obj);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }
}

fn is_local(e: &Expr, local: LocalId) -> bool {
    matches!(e.kind, ExprKind::Local(l) if l == local)
}

/// The row, class and field of a backlink as a source.
fn backlink_source(source: &Expr) -> Option<(&Expr, analysis::hir::ClassId, u32)> {
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
