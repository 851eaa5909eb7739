//! Places `root(.field | [index])*` and when two of them overlap (language specification, section 7).

use crate::hir::LocalId;
use crate::types::Ty;
use diagnostics::span::Span;
use std::rc::Rc;

/// A literal index: two of them tell elements apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Int(i64),
    Bool(bool),
    Text(Rc<[u8]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proj {
    Field(u32),
    /// Field of a variant's payload.
    Payload(u32, u32),
    /// `None`: an index that is not a literal.
    Index(Option<Key>),
}

/// Longer places are not followed: only a loop that digs through payloads makes them.
pub(super) const PROJECTIONS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub root: LocalId,
    pub proj: Vec<Proj>,
}

impl Place {
    /// Same root, and one projection list is a prefix of the other. Two indices that are not both literals are
    /// undecided and count as apart.
    pub fn overlaps(&self, other: &Place) -> bool {
        self.root == other.root && self.proj.iter().zip(&other.proj).all(|(a, b)| same(a, b))
    }

    /// Whether `other` is this place or lies in it.
    pub fn contains(&self, other: &Place) -> bool {
        self.root == other.root && other.proj.starts_with(&self.proj)
    }
}

fn same(a: &Proj, b: &Proj) -> bool {
    match (a, b) {
        (Proj::Index(Some(a)), Proj::Index(Some(b))) => a == b,
        (Proj::Index(_), Proj::Index(_)) => false,
        _ => a == b,
    }
}

/// A place as it stands in the source.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub place: Place,
    /// Of the object or container itself, before any conversion to an interface.
    pub ty: Ty,
    pub span: Span,
    /// Where its root became a borrow, if it is one.
    pub borrowed: Option<Span>,
    /// What the root borrows, if that has a name.
    pub loans: Option<Rc<[Place]>>,
}

impl Source {
    /// A local, parameter or `catch` variable without projection.
    pub fn is_whole(&self) -> bool {
        self.place.proj.is_empty()
    }

    /// The place in terms of what it borrows from. Empty when that is longer than anything worth following.
    pub fn resolved(&self) -> Vec<Place> {
        let Some(loans) = &self.loans else { return vec![self.place.clone()] };
        loans
            .iter()
            .filter(|l| l.proj.len() + self.place.proj.len() <= PROJECTIONS_MAX)
            .map(|l| Place { root: l.root, proj: l.proj.iter().chain(&self.place.proj).cloned().collect() })
            .collect()
    }
}

/// What an expression gives.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// A value without owner: a result, a literal, a new object, anything taken out of a temporary.
    Fresh,
    Place(Source),
    /// The values of the arms of a `switch` or `try`.
    Any(Vec<Val>),
}

impl Val {
    pub fn join(mut vals: Vec<Val>) -> Val {
        vals.retain(|v| !matches!(v, Val::Fresh));
        match vals.len() {
            0 => Val::Fresh,
            1 => vals.pop().unwrap_or(Val::Fresh),
            _ => Val::Any(vals),
        }
    }

    /// All places it may be.
    pub fn sources(&self) -> Vec<&Source> {
        let mut out = Vec::new();
        let mut work = vec![self];
        while let Some(val) = work.pop() {
            match val {
                Val::Fresh => {}
                Val::Place(source) => out.push(source),
                Val::Any(vals) => work.extend(vals.iter().rev()),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Place, Proj};
    use crate::hir::LocalId;

    fn place(proj: &[Proj]) -> Place {
        Place { root: LocalId(0), proj: proj.to_vec() }
    }

    #[test]
    fn overlap_is_prefix_with_literals_told_apart() {
        let field = |n| Proj::Field(n);
        let at = |n| Proj::Index(Some(Key::Int(n)));
        let any = Proj::Index(None);
        assert!(place(&[]).overlaps(&place(&[field(1)])));
        assert!(!place(&[field(0)]).overlaps(&place(&[field(1)])));
        assert!(place(&[at(1)]).overlaps(&place(&[at(1), field(0)])));
        assert!(!place(&[at(1)]).overlaps(&place(&[at(2)])));
        assert!(!place(std::slice::from_ref(&any)).overlaps(&place(&[at(2)])));
        assert!(place(&[]).overlaps(&place(&[any])));
        assert!(!place(&[]).overlaps(&Place { root: LocalId(1), proj: Vec::new() }));
    }
}
