//! Source text to tokens (logos) to tree (chumsky). No I/O, no failure: `parse` returns a tree of what could be read
//! and the diagnostics of what could not.

pub mod ast;
