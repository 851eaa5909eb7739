//! What machine code refers to, by number. Lowering names no address and no place: `link` decides the places within a
//! program, `load` the address of the whole.

use abi::trap;
use cranelift_codegen::ir::UserExternalName;

/// Something that code calls or takes the address of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    /// A function of the program or, behind those, of glue: see `Unit`.
    Function(u32),
    /// Index into `abi::symbols::SYMBOLS`.
    Runtime(u32),
    /// Index into `ir::Program::texts`.
    Text(u32),
    /// Index into `FIXED`.
    Fixed(u32),
    /// Index into `ir::Program::tables`.
    Table(u32),
}

/// Texts of the traps that generated code raises by itself.
pub(crate) const FIXED: [&str; 5] = [
    trap::DIVISION_BY_ZERO,
    trap::MIN_BY_MINUS_ONE,
    trap::SHIFT_COUNT,
    trap::MULTI_INDEX,
    "internal error at dispatch",
];

pub(crate) const DIVISION_BY_ZERO: Target = Target::Fixed(0);
pub(crate) const MIN_BY_MINUS_ONE: Target = Target::Fixed(1);
pub(crate) const SHIFT_COUNT: Target = Target::Fixed(2);
pub(crate) const MULTI_INDEX: Target = Target::Fixed(3);
pub(crate) const NO_METHOD: Target = Target::Fixed(4);

impl Target {
    /// How Cranelift calls it.
    pub(crate) fn name(self) -> UserExternalName {
        let (namespace, index) = match self {
            Target::Function(index) => (0, index),
            Target::Runtime(index) => (1, index),
            Target::Text(index) => (2, index),
            Target::Fixed(index) => (3, index),
            Target::Table(index) => (4, index),
        };
        UserExternalName { namespace, index }
    }

    pub(crate) fn named(name: &UserExternalName) -> Option<Target> {
        match name.namespace {
            0 => Some(Target::Function(name.index)),
            1 => Some(Target::Runtime(name.index)),
            2 => Some(Target::Text(name.index)),
            3 => Some(Target::Fixed(name.index)),
            4 => Some(Target::Table(name.index)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for target in [Target::Function(7), Target::Runtime(0), Target::Text(3), NO_METHOD, Target::Table(u32::MAX)] {
            assert_eq!(Target::named(&target.name()), Some(target));
        }
        assert_eq!(Target::named(&UserExternalName { namespace: 5, index: 0 }), None);
    }
}
