//! Names, types and ownership: trees in, a typed program out. Pure: no file, clock or network access.

pub mod hir;
pub mod types;
