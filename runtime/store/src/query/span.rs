//! The keys of an index that a query goes through, by the conditions that its access guarantees.

use super::{Run, is_nan, operand};
use crate::key;
use crate::store::{Refusal, reference};
use crate::table::kind;
use crate::value::Cell;
use abi::tables::{Access, ColumnKind, CompareOp, Condition, PathEnd};

/// The keys of an index from `start` up to `end`, which is left out; an empty `end` is none.
pub(super) struct Span {
    pub index: usize,
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl<'q> Run<'q> {
    /// What the access binds a column to by `==`.
    pub(super) fn bound(&self, column: usize) -> Option<Cell<'q>> {
        let condition = self.binding(column).find(|c| c.op == CompareOp::Eq)?;
        Some(operand(self.operands, condition))
    }

    /// The conditions on a column that the access guarantees.
    fn binding(&self, column: usize) -> impl Iterator<Item = &'q Condition> + use<'q> {
        let end = PathEnd::Column(column as u32);
        self.query.conditions.iter().filter(move |c| c.binds && c.path.steps.is_empty() && c.path.end == end)
    }

    /// Whether the access binds all columns of the index by `==`.
    pub(super) fn all_equal(&self, index: usize) -> bool {
        let columns = self.desc.indexes.get(index).map_or(0, |index| index.columns.len());
        match self.query.access {
            Access::Index { equal, .. } => equal as usize == columns,
            Access::Backlink { .. } => columns == 1,
            Access::Scan | Access::List | Access::Walk { .. } => false,
        }
    }

    /// The keys that the access goes through; `None`: there can be none, or it goes through no index.
    pub(super) fn span(&self) -> Result<Option<Span>, Refusal> {
        match self.query.access {
            Access::Scan | Access::List => Ok(None),
            Access::Walk { index } => Ok(Some(Span { index: index as usize, start: Vec::new(), end: Vec::new() })),
            Access::Backlink { index } => {
                self.check_source()?;
                let start = reference(self.operands.row);
                Ok(Some(Span { index: index as usize, end: behind(start.clone()), start }))
            }
            Access::Index { index, equal, range } => Ok(self.index_span(index as usize, equal as usize, range)),
        }
    }

    /// The keys with the values that the first `equal` columns are bound to, and if `range`, with those of the next
    /// column that its bounds allow.
    fn index_span(&self, index: usize, equal: usize, range: bool) -> Option<Span> {
        let columns = self.desc.indexes.get(index).map_or(&[][..], |index| &index.columns);
        let mut prefix = Vec::with_capacity(40);
        for column in columns.iter().take(equal) {
            let kind = kind(self.desc, *column as usize);
            let value = self.bound(*column as usize)?;
            if is_nan(kind, value) {
                return None;
            }
            key::put(&mut prefix, kind, value);
        }
        let (start, end) = match columns.get(equal).filter(|_| range) {
            Some(column) => self.bounds(*column as usize, &prefix)?,
            None => (prefix.clone(), behind(prefix)),
        };
        Some(Span { index, start, end })
    }

    /// Where the keys start and end that begin with `prefix` and then have a value of a column within its bounds.
    fn bounds(&self, column: usize, prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let kind = kind(self.desc, column);
        let with = |value: Cell<'_>| {
            let mut key = prefix.to_vec();
            key::put(&mut key, kind, value);
            key
        };
        let (mut start, mut end) = (prefix.to_vec(), prefix.to_vec());
        key::put_first(&mut start);
        if kind == ColumnKind::Float {
            // No comparison with a NaN holds.
            key::put_nan(&mut end);
        } else {
            end = behind(start.clone());
        }
        for condition in self.binding(column).filter(|c| c.op != CompareOp::Eq) {
            let value = operand(self.operands, condition);
            if value == Cell::Nil || is_nan(kind, value) {
                return None;
            }
            match condition.op {
                CompareOp::Gt => start = start.max(behind(with(value))),
                CompareOp::Ge => start = start.max(with(value)),
                CompareOp::Lt => end = end.min(with(value)),
                CompareOp::Le => end = end.min(behind(with(value))),
                CompareOp::Eq | CompareOp::Ne => {}
            }
        }
        (start < end).then_some((start, end))
    }
}

/// The first key behind all that begin with `key`.
fn behind(mut key: Vec<u8>) -> Vec<u8> {
    key::step_over(&mut key);
    key
}
