//! Where a value goes: decides which code a nil or a wrong type gets (language 5.4, 6.1) and how messages call the place.

use super::Cx;
use crate::types::{Ty, TyKind, Types};
use syntax::ast::Name;

#[derive(Clone, Debug)]
pub(super) enum Site {
    /// Annotated `let`.
    Let(Name),
    /// Assignment to a local.
    Assign(Name),
    /// Class, field: assignment or literal.
    Field(Name, Name),
    /// `c[i] =`, `m[k] =`, list item; the container's element or value.
    Element,
    /// Function.
    Return(Name),
    /// Callee, position from 1, parameter.
    Param(Name, usize, Name),
    /// Message of `send` and its kin.
    Message(Name),
    /// Builtin (`ns.` included), position from 1, whether it is free of a namespace.
    Builtin(Name, usize, bool),
    /// Value stored by `push` and `set`.
    Store(Name, usize),
    /// Operator.
    Operand(&'static str),
    /// Operand of `..`.
    Concat,
    Hole,
    /// `if`, `while`.
    Condition(&'static str),
    Iterable,
    /// Index of a `multi`.
    Index,
    /// Key of a map.
    Key,
    /// Base of `.member` or `[index]`.
    Base(Name),
    /// Subject of a `switch`.
    Subject,
    /// `switch` arm or `try` part.
    Part,
}

impl Site {
    /// Code for a strict `?T` where a value is needed; `None`: accepted with `WO-W204`.
    pub fn null_code(&self) -> Option<u16> {
        match self {
            Site::Let(_) | Site::Assign(_) | Site::Field(..) | Site::Element | Site::Store(..) => Some(212),
            Site::Base(_) => Some(213),
            Site::Builtin(..) | Site::Concat => None,
            Site::Return(_)
            | Site::Param(..)
            | Site::Message(_)
            | Site::Operand(_)
            | Site::Hole
            | Site::Condition(_)
            | Site::Iterable
            | Site::Index
            | Site::Key
            | Site::Subject
            | Site::Part => Some(211),
        }
    }

    /// Code for a literal nil.
    pub fn nil_code(&self) -> u16 {
        match self {
            Site::Return(_)
            | Site::Operand(_)
            | Site::Concat
            | Site::Hole
            | Site::Condition(_)
            | Site::Iterable
            | Site::Index
            | Site::Subject => 211,
            Site::Base(_) => 213,
            _ => 212,
        }
    }

    /// Code for a type that does not fit.
    pub fn mismatch_code(&self) -> u16 {
        match self {
            Site::Builtin(..) | Site::Store(..) => 209,
            _ => 201,
        }
    }

    /// Whether a nil Text is `null receiver` here instead of `null text` (5.3).
    pub fn is_free_builtin(&self) -> bool {
        matches!(self, Site::Builtin(_, _, true) | Site::Store(..))
    }

    /// Whether the type of the place is not the program's to declare.
    pub fn is_fixed(&self) -> bool {
        matches!(
            self,
            Site::Builtin(..) | Site::Store(..) | Site::Index | Site::Key | Site::Operand(_) | Site::Message(_)
        )
    }

    /// The place in words.
    pub fn text(&self) -> String {
        match self {
            Site::Let(name) | Site::Assign(name) => format!("local `{name}`"),
            Site::Field(class, field) => format!("field `{class}.{field}`"),
            Site::Element => "an element".to_owned(),
            Site::Return(func) => format!("the result of `{func}`"),
            Site::Param(callee, at, name) => format!("argument {at} (`{name}`) of `{callee}`"),
            Site::Message(builtin) => format!("the message of `{builtin}`"),
            Site::Builtin(name, at, _) | Site::Store(name, at) => format!("argument {at} of `{name}`"),
            Site::Operand(op) => format!("an operand of `{op}`"),
            Site::Concat => "an operand of `..`".to_owned(),
            Site::Hole => "an interpolation".to_owned(),
            Site::Condition(word) => format!("the condition of `{word}`"),
            Site::Iterable => "the iterable of `for`".to_owned(),
            Site::Index => "an index".to_owned(),
            Site::Key => "a map key".to_owned(),
            Site::Base(member) => format!("the base of `{member}`"),
            Site::Subject => "the subject of `switch`".to_owned(),
            Site::Part => "a branch".to_owned(),
        }
    }
}

impl Cx<'_, '_> {
    /// Values that are one word without a pointer to an object, and actor addresses.
    pub(super) fn is_scalar(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Int | TyKind::Bool | TyKind::Float | TyKind::Row(_) | TyKind::Actor(_) => true,
            TyKind::Union(id) => self.env.program.unions.get(id.0 as usize).is_some_and(|u| !u.has_payload),
            _ => false,
        }
    }

    pub(super) fn is_text(ty: Ty) -> bool {
        ty == Types::TEXT || ty == Types::JSON
    }
}
