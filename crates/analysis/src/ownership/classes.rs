//! Classes of values (language specification 7.1): copy, owned, traced.

use crate::hir::{ClassId, Program};
use crate::types::{Ty, TyKind};
use diagnostics::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Copy,
    /// A class or record that is not traced.
    Object(ClassId),
    /// A container or a payload union: never traced.
    Container,
    Traced(ClassId),
}

/// Why a class is traced (7.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It lies on a cycle of fields.
    Cycle,
    /// A borrowed object of it escapes there.
    Demand(Span),
}

/// What the ownership pass found, for later stages.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// In step with `Program::classes`; `None` for owned ones.
    pub traced: Vec<Option<Why>>,
}

impl Facts {
    /// Why objects of this class are traced; `None` if they have one owner.
    #[must_use]
    pub fn why(&self, class: ClassId) -> Option<&Why> {
        self.traced.get(class.0 as usize).and_then(Option::as_ref)
    }
}

/// Nullability does not change the class.
pub(super) fn kind(program: &Program, facts: &Facts, ty: Ty) -> Kind {
    match program.types.kind(program.types.strip(ty)) {
        TyKind::Class(class) if facts.why(class).is_some() => Kind::Traced(class),
        TyKind::Class(class) => Kind::Object(class),
        TyKind::Multi(_) | TyKind::Map(..) | TyKind::EmptyMulti | TyKind::EmptyMap => Kind::Container,
        TyKind::Union(union) if program.unions.get(union.0 as usize).is_some_and(|u| u.has_payload) => Kind::Container,
        _ => Kind::Copy,
    }
}
