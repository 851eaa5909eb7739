//! Statements on single rows: `insert`, `delete`, columns, backlinks.

use super::FnLower;
use super::value::{Own, Value};
use crate::ir::{Local, Rep};
use crate::shapes::Shape;
use abi::tables as numbers;
use analysis::hir::{BinaryOp, Builtin, ClassId, Expr, ExprKind, StoreOp, Ty, TyKind, Types};

impl<'a> FnLower<'_, 'a> {
    pub fn store_op(&mut self, op: &'a StoreOp, ty: Ty) -> Value {
        match op {
            StoreOp::Column(row, class, field) => {
                let row = self.row(row);
                let (table, column) = self.column_number(*class, *field);
                let shape = self.shape(ty);
                let out = self.two_words("table.get", vec![table, row, column], shape, ty);
                self.owned(out)
            }
            StoreOp::Backlink(row, class, field) => self.backlink("table.backlink", row, *class, *field, Rep::Obj),
            StoreOp::Insert { class, fields, defaults } => {
                let object = self.new_object(*class, fields, defaults);
                let table = self.table_number(*class);
                let id = self.b.runtime1("table.insert", vec![table, object.a], Rep::Int);
                self.drop_value(object);
                Value::int(id)
            }
            StoreOp::Delete(row) => {
                let TyKind::Row(class) = self.kind(row.ty) else { return self.int_value(0) };
                let row = self.row(row);
                let table = self.table_number(class);
                Value::int(self.b.runtime1("table.delete", vec![table, row], Rep::Int))
            }
            StoreOp::Query(query) => self.query(query, ty),
        }
    }

    /// `count` and `len` of a query or a backlink, which make no list.
    pub fn counted_rows(&mut self, args: &'a [Expr]) -> Option<Value> {
        let rows = args.first()?;
        let ExprKind::Store(op) = &rows.kind else { return None };
        match &**op {
            StoreOp::Query(query) => {
                self.b.line = rows.span.start;
                Some(self.count_query(query))
            }
            StoreOp::Backlink(row, class, field) => {
                Some(self.backlink("table.backlink_len", row, *class, *field, Rep::Int))
            }
            StoreOp::Column(..) | StoreOp::Insert { .. } | StoreOp::Delete(_) => None,
        }
    }

    /// The number of rows of a backlink, where `e` asks for it: the row, the class, the field.
    pub fn backlink_length(e: &Expr) -> Option<(&Expr, ClassId, u32)> {
        let ExprKind::Builtin(Builtin::LenMulti, args) = &e.kind else { return None };
        match &args.first()?.kind {
            ExprKind::Store(op) => match &**op {
                StoreOp::Backlink(row, class, field) => Some((row, *class, *field)),
                _ => None,
            },
            _ => None,
        }
    }

    fn row(&mut self, row: &'a Expr) -> Local {
        let row = self.expr(row);
        self.coerce(row, Shape::One(Rep::Int)).a
    }

    pub fn table_number(&mut self, class: ClassId) -> Local {
        let table = self.cx.layouts.table(class);
        self.b.int(i64::from(table))
    }

    fn column_number(&mut self, class: ClassId, field: u32) -> (Local, Local) {
        let table = self.table_number(class);
        let column = self.cx.layouts.column(class, field);
        (table, self.b.int(i64::from(column)))
    }

    fn backlink(&mut self, name: &str, row: &'a Expr, class: ClassId, field: u32, rep: Rep) -> Value {
        let row = self.row(row);
        let TyKind::Backlink(class, field) = self.kind(self.field_type(class, field)) else { return Value::none() };
        let (table, index) = self.cx.layouts.ref_index(class, field);
        let (table, index) = (self.b.int(i64::from(table)), self.b.int(i64::from(index)));
        let dst = self.b.runtime1(name, vec![table, index, row], rep);
        self.owned(Value::one(rep, dst, Own::Owned))
    }

    /// `row.f = value`.
    pub fn set_column(&mut self, row: &'a Expr, class: ClassId, field: u32, value: &'a Expr) {
        let values = self.operands(&[row, value]);
        let [row, value] = values.as_slice() else { return };
        let value = self.coerce(*value, self.shape(self.field_type(class, field)));
        let (table, column) = self.column_number(class, field);
        let (first, second) = self.words(value);
        self.b.runtime("table.set", vec![table, row.a, column, first, second], Vec::new());
        self.drop_value(value);
    }

    /// `row.f op= value`: the store computes.
    pub fn update_column(&mut self, row: &'a Expr, class: ClassId, field: u32, op: BinaryOp, value: &'a Expr) {
        let ty = self.field_type(class, field);
        let values = self.operands(&[row, value]);
        let [row, value] = values.as_slice() else { return };
        let value = self.coerce(*value, self.shape(ty));
        let (table, column) = self.column_number(class, field);
        let op = self.b.int(update_op(op, ty));
        let (operand, _) = self.words(value);
        self.b.runtime("table.update", vec![table, row.a, column, op, operand], Vec::new());
    }
}

/// The store's number for an operation of Int or Float.
fn update_op(op: BinaryOp, ty: Ty) -> i64 {
    match op {
        BinaryOp::IntAdd => numbers::UPDATE_ADD,
        BinaryOp::IntSub => numbers::UPDATE_SUB,
        BinaryOp::IntMul => numbers::UPDATE_MUL,
        BinaryOp::IntDiv => numbers::UPDATE_DIV,
        BinaryOp::IntRem => numbers::UPDATE_REM,
        BinaryOp::FloatAdd => numbers::UPDATE_FLOAT_ADD,
        BinaryOp::FloatSub => numbers::UPDATE_FLOAT_SUB,
        BinaryOp::FloatMul => numbers::UPDATE_FLOAT_MUL,
        BinaryOp::FloatDiv => numbers::UPDATE_FLOAT_DIV,
        // The checker lets arithmetic through only; a number that the runtime refuses keeps a wrong proof harmless.
        _ => {
            debug_assert!(false, "{op:?} on a column of type {ty:?}, like {:?}", Types::INT);
            -1
        }
    }
}
