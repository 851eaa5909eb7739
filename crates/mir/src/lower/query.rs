//! Queries. What the store can do, it does in one statement: conditions that compare a path from the row with a value
//! without it, order by paths, `skip`, `take`, values of paths. For other clauses the store reads the values of all
//! paths in them, in that same statement, and a loop evaluates the clauses over these lists. Clauses that run code of
//! the program, or touch tables in other ways, are evaluated row by row over the ids.

use super::FnLower;
use super::clause::{Conjunct, Operand, Parts, Select, backlink_source};
use super::value::{Own, Value};
use crate::effects::Effects;
use crate::ir::{BlockId, InstKind, IntOp, Local, Plan, Rep};
use crate::plan;
use crate::shapes::Shape;
use abi::desc::{TYPE_INT, TypeIdx};
use abi::layout;
use abi::tables::Access;
use analysis::hir::{Expr, LocalId, Query, Ty, Types};
use rustc_hash::FxHashMap;

/// Values that the store has read for the clauses of a query.
pub struct Gathered {
    /// The list of each expression's values.
    lists: FxHashMap<*const Expr, Local>,
    /// The row at hand.
    index: Local,
}

/// Operands of a query, evaluated: with the value of each field of their object.
#[derive(Default)]
struct Operands {
    fields: Vec<(TypeIdx, Value)>,
    skip: Option<Value>,
    take: Option<Value>,
}

impl Operands {
    /// Adds a field; its number.
    fn add(&mut self, ty: TypeIdx, value: Value) -> u32 {
        self.fields.push((ty, value));
        u32::try_from(self.fields.len() - 1).unwrap_or(u32::MAX)
    }
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
            found
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
                    let field = match operand {
                        Operand::Nil => None,
                        Operand::Word(word) => {
                            let value = self.int_value(*word);
                            Some(out.add(TYPE_INT, value))
                        }
                        Operand::Expr(e) => Some(self.query_operand(e, &mut out)),
                    };
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
            let field = out.add(TYPE_INT, value);
            *(if is_skip { &mut parts.desc.skip } else { &mut parts.desc.take }) = Some(field);
        }
        out
    }

    /// Evaluates an operand; the number of its field.
    fn query_operand(&mut self, e: &'a Expr, out: &mut Operands) -> u32 {
        let value = self.expr(e);
        let value = self.coerce(value, self.shape(e.ty));
        let value = self.protect(value, Effects { runs: true, blocks: true });
        let ty = self.cx.layouts.ty(e.ty);
        out.add(ty, value)
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
        if let Access::Backlink { index } = parts.desc.access {
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
        let ids = if parts.outputs.is_empty() { found.a } else { self.b.load(Rep::Obj, true, found.a, layout::FIELDS) };
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
            let position = f.list_item(order.a, at, Types::INT);
            f.b.copy(index, position.a);
            f.bind_row(parts.query.var, ids, index);
            f.project(parts, list, ids, index);
        });
        self.drop_value(order);
        self.drop_value(keys);
        Some(list)
    }

    fn bind_row(&mut self, var: LocalId, ids: Local, index: Local) {
        let id = self.list_item(ids, index, Types::INT);
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
            Select::Row | Select::Output | Select::Count => self.list_item(ids, index, Types::INT),
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
