//! From one schema to another: which changes there are, which of them rows in the store forbid, and how rows are
//! converted.

use super::matching::{Malformed, Matcher, Mismatch, StepNumber};
use super::{ClassName, Column, Refusal, Schema, Table, Type, TypeNumber, is_volatile};
use crate::value::{Cell, Value};
use abi::desc::Shapes;
use std::collections::HashMap;

/// What is different in `new`, and how the rows of `old` become rows of it.
///
/// Conversion never refuses: that rows fit the new schema is found out before.
#[derive(Debug)]
pub struct Migration<'a> {
    old: &'a Schema,
    new: &'a Schema,
    matcher: Matcher<'a>,
    /// In step with the old tables.
    tables: Vec<Moved>,
}

/// What becomes of a table.
#[derive(Debug, Default)]
struct Moved {
    /// Its new number; none if the new schema has forgotten the table.
    target: Option<usize>,
    /// For each old column its new number, and what becomes of its values.
    kept: Vec<Option<(usize, How)>>,
    /// Old columns whose values are dropped, new ones that are filled. A column whose kind has changed is both.
    dropped: Vec<usize>,
    added: Vec<usize>,
    /// Old and new number of columns whose kind has changed.
    mismatches: Vec<(usize, usize, Mismatch)>,
    /// Rows stay as they are.
    same: bool,
}

/// What becomes of a value that is not nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Same,
    Word(StepNumber),
    Encoded(StepNumber),
}

/// What must hold of the rows, or the change is refused. Tables and columns are those of the new schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// No row has nil in the column.
    NotNil { table: usize, column: usize },
    /// No two rows have the same value in the column, nil aside.
    Unique { table: usize, column: usize },
    /// There is a row that the values of the column, a new one, name.
    Target { table: usize, column: usize },
}

impl<'a> Migration<'a> {
    #[must_use]
    pub fn between(old: &'a Schema, new: &'a Schema) -> Migration<'a> {
        let numbers: HashMap<&ClassName, usize> = new.tables.iter().enumerate().map(|(i, t)| (&t.name, i)).collect();
        let mut matcher = Matcher::new(old, new);
        let mut tables = Vec::with_capacity(old.tables.len());
        for table in &old.tables {
            tables.push(moved(&mut matcher, old, new, table, numbers.get(&table.name).copied()));
        }
        Migration { old, new, matcher, tables }
    }

    /// Whether the new schema has all tables of the old one: that of a store always does (`Schema::remembering`).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.tables.iter().all(|moved| moved.target.is_some())
    }

    /// Whether records of the new schema need a segment of their own: they do unless nothing but fills is different.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        let (old, new) = (self.old, self.new);
        let same = |(a, b): (&Table, &Table)| {
            a.name == b.name
                && a.label == b.label
                && a.retired == b.retired
                && a.indexes == b.indexes
                && a.columns.iter().map(declared).eq(b.columns.iter().map(declared))
        };
        old.types != new.types || old.tables.len() != new.tables.len() || !old.tables.iter().zip(&new.tables).all(same)
    }

    /// The new number of an old table.
    #[must_use]
    pub fn table(&self, table: usize) -> Option<usize> {
        self.tables.get(table)?.target
    }

    /// A row of an old table, which has a value for every column, as one of its new table.
    pub fn row(&self, table: usize, values: Vec<Value>) -> Result<Vec<Value>, Malformed> {
        let moved = self.tables.get(table).filter(|moved| moved.kept.len() == values.len()).ok_or(Malformed)?;
        if moved.same {
            return Ok(values);
        }
        let columns = self.target(moved).map_or(&[][..], |table| &table.columns);
        let mut row = vec![Value::Nil; columns.len()];
        for added in &moved.added {
            if let (Some(slot), Some(column)) = (row.get_mut(*added), columns.get(*added)) {
                *slot = column.fill.clone().unwrap_or(Value::Nil);
            }
        }
        for (kept, value) in moved.kept.iter().zip(values) {
            let Some((column, how)) = kept else { continue };
            if let Some(slot) = row.get_mut(*column) {
                *slot = self.converted(*how, value)?;
            }
        }
        Ok(row)
    }

    /// A value of an old column as one of its new column, whose number comes first; `None` where the column is dropped.
    pub fn value(&self, table: usize, column: usize, value: Value) -> Result<Option<(usize, Value)>, Malformed> {
        let kept = self.tables.get(table).and_then(|moved| moved.kept.get(column)).ok_or(Malformed)?;
        kept.map(|(column, how)| Ok((column, self.converted(how, value)?))).transpose()
    }

    fn target(&self, moved: &Moved) -> Option<&'a Table> {
        self.new.tables.get(moved.target?)
    }

    fn converted(&self, how: How, value: Value) -> Result<Value, Malformed> {
        match (how, value) {
            (How::Word(step), Value::Word(word)) => self.matcher.word(step, word),
            (How::Encoded(step), Value::Bytes(bytes)) => Ok(Value::Bytes(self.matcher.rewrite(step, &bytes)?.into())),
            (_, value) => Ok(value),
        }
    }

    /// Why a program may not have the store, as far as the numbers of rows decide that. `rows` counts those of an old
    /// table.
    #[must_use]
    pub fn refusal(&self, program: &Shapes, rows: impl Fn(usize) -> u64) -> Option<Refusal> {
        self.old.tables.iter().zip(&self.tables).enumerate().find_map(|(number, (old, moved))| {
            let rows = Some(rows(number)).filter(|rows| *rows > 0)?;
            self.table_refusal(program, old, moved, rows)
        })
    }

    /// Whether rows keep a store from having the new schema: where they are of a table that is retired, or have a column
    /// that has got another kind or one that nothing is known to fill. `rows` as above.
    #[must_use]
    pub fn is_barred(&self, rows: impl Fn(usize) -> u64) -> bool {
        self.tables.iter().enumerate().any(|(number, moved)| {
            let Some(new) = self.target(moved) else { return rows(number) > 0 };
            let barred = new.retired || !moved.mismatches.is_empty() || unfilled(moved, new).is_some();
            barred && rows(number) > 0
        })
    }

    fn table_refusal(&self, program: &Shapes, old: &Table, moved: &Moved, rows: u64) -> Option<Refusal> {
        let class = || old.name.to_string();
        let Some(new) = self.target(moved).filter(|new| !new.retired) else {
            return Some(if is_volatile(program, &old.name) {
                Refusal::Volatile { class: class(), rows }
            } else {
                Refusal::Gone { class: class(), rows }
            });
        };
        if let Some((from, to, mismatch)) = moved.mismatches.first() {
            let (from, to) = (old.columns.get(*from)?, new.columns.get(*to)?);
            let column = from.name.clone();
            return Some(match mismatch.clone() {
                Mismatch::Kind => {
                    Refusal::Kind { class: class(), column, old: self.old.show(from.ty), new: self.new.show(to.ty) }
                }
                Mismatch::Variant { union, variant } => Refusal::Variant { class: class(), column, union, variant },
                Mismatch::Fields { of } => Refusal::Fields { class: class(), column, of },
            });
        }
        let mut matcher = Matcher::new(self.old, self.new);
        for from in moved.dropped.iter().filter_map(|i| old.columns.get(*i)) {
            for to in moved.added.iter().filter_map(|i| new.columns.get(*i)) {
                if matcher.matching(self.old.strip(from.ty), self.new.strip(to.ty)).is_ok() {
                    return Some(Refusal::Renamed {
                        class: class(),
                        dropped: from.name.clone(),
                        added: to.name.clone(),
                        kind: self.new.show(to.ty),
                    });
                }
            }
        }
        let without = unfilled(moved, new)?;
        Some(Refusal::NoFill {
            class: class(),
            column: without.name.clone(),
            kind: self.new.show(without.ty),
            rows,
            is_union: matches!(self.new.ty(without.ty), Type::Union { .. }),
        })
    }

    /// The columns that may not be nil any longer, by the numbers of the old table and column; with the checks.
    #[must_use]
    pub fn not_nil(&self) -> Vec<((usize, usize), Check)> {
        let mut checks = Vec::new();
        for (number, (old, moved)) in self.old.tables.iter().zip(&self.tables).enumerate() {
            let (Some(table), Some(new)) = (moved.target, self.target(moved)) else { continue };
            for (old_number, (from, kept)) in old.columns.iter().zip(&moved.kept).enumerate() {
                let Some((column, _)) = *kept else { continue };
                if from.nullable && new.columns.get(column).is_some_and(|to| !to.nullable) {
                    checks.push(((number, old_number), Check::NotNil { table, column }));
                }
            }
        }
        checks
    }

    /// What the values of the converted rows have to decide.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for (old, moved) in self.old.tables.iter().zip(&self.tables) {
            let (Some(table), Some(new)) = (moved.target, self.target(moved)) else { continue };
            let was_unique: Vec<usize> =
                old.unique().filter_map(|column| (*moved.kept.get(column)?).map(|(column, _)| column)).collect();
            checks
                .extend(new.unique().filter(|c| !was_unique.contains(c)).map(|column| Check::Unique { table, column }));
            for column in moved.added.iter().copied() {
                let Some(added) = new.columns.get(column) else { continue };
                if self.new.target(added).is_some() && matches!(added.fill, Some(Value::Word(_))) {
                    checks.push(Check::Target { table, column });
                }
            }
        }
        checks
    }

    /// The refusal for a row that breaks a check by this value.
    #[must_use]
    pub fn broken(&self, check: Check, value: Cell<'_>) -> Option<Refusal> {
        let (Check::NotNil { table, column } | Check::Unique { table, column } | Check::Target { table, column }) =
            check;
        let table = self.new.tables.get(table)?;
        let desc = table.columns.get(column)?;
        let (class, column, kind) = (table.name.to_string(), desc.name.clone(), self.new.show(desc.ty));
        let value = self.new.show_value(desc, value);
        Some(match check {
            Check::NotNil { .. } => Refusal::Nil { class, column, kind },
            Check::Unique { .. } => Refusal::NotUnique { class, column, value },
            Check::Target { .. } => Refusal::NoTarget { class, column, kind, value },
        })
    }

    /// What to tell of the migration: for each class whose columns have changed its name, `-` and the name of each
    /// dropped column, `+` and the name of each added one.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for (old, moved) in self.old.tables.iter().zip(&self.tables) {
            let Some(new) = self.target(moved) else { continue };
            if old.retired || new.retired || (moved.dropped.is_empty() && moved.added.is_empty()) {
                continue;
            }
            let dropped = moved.dropped.iter().filter_map(|i| old.columns.get(*i)).map(|c| format!(" -{}", c.name));
            let added = moved.added.iter().filter_map(|i| new.columns.get(*i)).map(|c| format!(" +{}", c.name));
            notices.push(dropped.chain(added).fold(old.name.to_string(), |line, column| line + &column));
        }
        notices
    }
}

fn moved(matcher: &mut Matcher<'_>, old: &Schema, new: &Schema, table: &Table, target: Option<usize>) -> Moved {
    let mut moved = Moved { target, ..Moved::default() };
    let columns = target.and_then(|target| new.tables.get(target)).map_or(&[][..], |table| &table.columns);
    for (number, from) in table.columns.iter().enumerate() {
        let same_name = columns.iter().enumerate().find(|(_, to)| to.name == from.name);
        let kept = same_name.and_then(|(to, column)| match kept(matcher, old, new, from, column) {
            Ok(how) => Some((to, how)),
            Err(mismatch) => {
                moved.mismatches.push((number, to, mismatch));
                None
            }
        });
        if kept.is_none() {
            moved.dropped.push(number);
        }
        moved.kept.push(kept);
    }
    let is_kept = |column: &usize| moved.kept.iter().flatten().any(|(to, _)| to == column);
    moved.added = (0..columns.len()).filter(|column| !is_kept(column)).collect();
    moved.same =
        columns.len() == moved.kept.len() && (0..).zip(&moved.kept).all(|(i, kept)| *kept == Some((i, How::Same)));
    moved
}

/// What becomes of the values of a column that has kept its name.
fn kept(matcher: &mut Matcher<'_>, old: &Schema, new: &Schema, from: &Column, to: &Column) -> Result<How, Mismatch> {
    let (a, b) = (old.strip(from.ty), new.strip(to.ty));
    if (old.ty(a), new.ty(b)) == (&Type::Bool, &Type::Int) {
        return Ok(How::Same);
    }
    let step = matcher.matching(a, b)?;
    Ok(match matcher.changes(step) {
        false => How::Same,
        true if old.ty(a).is_bare() => How::Word(step),
        true => How::Encoded(step),
    })
}

/// A new column that there is no value for.
fn unfilled<'t>(moved: &Moved, new: &'t Table) -> Option<&'t Column> {
    moved.added.iter().filter_map(|number| new.columns.get(*number)).find(|column| column.fill.is_none())
}

/// A column without its fill.
fn declared(column: &Column) -> (&str, TypeNumber) {
    (&column.name, column.ty)
}
