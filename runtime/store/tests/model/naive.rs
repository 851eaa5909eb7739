//! A store that does everything the slow way: rows in a map, no index, checks by looking at every row. What it says is
//! right by reading it beside the specification.

use abi::tables::{ColumnKind, CompareOp, TableDesc};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use store::{Refusal, Value};

pub type Row = Vec<Value>;

#[derive(Clone)]
pub struct Naive {
    pub tables: Vec<TableDesc>,
    pub rows: Vec<BTreeMap<u64, Row>>,
    /// For each table the id that the next row gets.
    pub next: Vec<u64>,
}

impl Naive {
    pub fn new(tables: Vec<TableDesc>) -> Naive {
        let rows = tables.iter().map(|_| BTreeMap::new()).collect();
        let next = tables.iter().map(|_| 1).collect();
        Naive { tables, rows, next }
    }

    fn check(&self, table: usize, column: usize, value: &Value, own: u64) -> [Result<(), Refusal>; 2] {
        let desc = &self.tables[table].columns[column];
        let target = match (desc.refers, value) {
            (Some(target), Value::Word(id)) if !self.rows[target as usize].contains_key(id) => Err(Refusal::NoTarget),
            _ => Ok(()),
        };
        let unique = self.tables[table].indexes.iter().any(|i| i.unique && i.columns == [column as u32]);
        let taken = |(id, row): (&u64, &Row)| {
            *id != own && *value != Value::Nil && order(desc.kind, &row[column], value) == Ordering::Equal
        };
        let taken = unique && self.rows[table].iter().any(taken);
        [target, if taken { Err(Refusal::Unique) } else { Ok(()) }]
    }

    pub fn insert(&mut self, table: usize, row: Row) -> Result<u64, Refusal> {
        let checks: Vec<_> = row.iter().enumerate().map(|(c, value)| self.check(table, c, value, 0)).collect();
        for kind in 0..2 {
            for check in &checks {
                check[kind]?;
            }
        }
        let id = self.next[table];
        self.next[table] += 1;
        let _ = self.rows[table].insert(id, row);
        Ok(id)
    }

    pub fn set(&mut self, table: usize, id: u64, column: usize, value: Value) -> Result<(), Refusal> {
        if !self.rows[table].contains_key(&id) {
            return Err(Refusal::NoRow);
        }
        for check in self.check(table, column, &value, id) {
            check?;
        }
        self.rows[table].get_mut(&id).unwrap()[column] = value;
        Ok(())
    }

    pub fn delete(&mut self, table: usize, id: u64) -> Result<(), Refusal> {
        if !self.rows[table].contains_key(&id) {
            return Err(Refusal::NoRow);
        }
        for (t, desc) in self.tables.iter().enumerate() {
            for (c, _) in desc.columns.iter().enumerate().filter(|(_, c)| c.refers == Some(table as u32)) {
                let refers = |(own, row): (&u64, &Row)| row[c] == Value::Word(id) && (t, *own) != (table, id);
                if self.rows[t].iter().any(refers) {
                    return Err(Refusal::Referenced);
                }
            }
        }
        let _ = self.rows[table].remove(&id);
        Ok(())
    }

    pub fn referrers(&self, table: usize, column: usize, id: u64) -> Vec<u64> {
        let rows = self.rows[table].iter();
        rows.filter(|(_, row)| row[column] == Value::Word(id)).map(|(id, _)| *id).collect()
    }
}

/// The order of keys: nil first, one zero, one NaN, which is last.
pub fn order(kind: ColumnKind, left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Nil, Value::Nil) => Ordering::Equal,
        (Value::Nil, _) => Ordering::Less,
        (_, Value::Nil) => Ordering::Greater,
        (Value::Word(l), Value::Word(r)) if kind == ColumnKind::Float => {
            let (l, r) = (f64::from_bits(*l), f64::from_bits(*r));
            l.partial_cmp(&r).unwrap_or_else(|| l.is_nan().cmp(&r.is_nan()))
        }
        (Value::Word(l), Value::Word(r)) => (*l as i64).cmp(&(*r as i64)),
        (Value::Bytes(l), Value::Bytes(r)) => l.cmp(r),
        _ => unreachable!("values of two kinds"),
    }
}

/// A comparison of the language: nil equals nil alone, a NaN nothing.
pub fn holds(kind: ColumnKind, left: &Value, op: CompareOp, right: &Value) -> bool {
    let nan = |v: &Value| kind == ColumnKind::Float && matches!(v, Value::Word(b) if f64::from_bits(*b).is_nan());
    let nils = (*left == Value::Nil, *right == Value::Nil);
    let order = match nils {
        (true, true) => return op == CompareOp::Eq,
        (false, false) if !nan(left) && !nan(right) => order(kind, left, right),
        _ => return op == CompareOp::Ne,
    };
    match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    }
}
