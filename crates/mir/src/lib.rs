//! HIR to MIR: control flow made explicit, and with it every retain, release, unwind path and safepoint.

pub mod ir;
