//! The contract between generated code and the runtime, as plain data: object layouts, trap codes, the shapes of
//! classes and types, and the table of functions that generated code may call. The compiler half and the runtime half
//! both depend on this crate and on nothing of each other.

pub mod desc;
pub mod layout;
pub mod symbols;
pub mod tables;
pub mod trap;
