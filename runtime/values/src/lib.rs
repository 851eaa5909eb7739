//! Values of running programs: objects, texts, containers; their release, copy, comparison and JSON; the fiber context.
#![allow(unsafe_code, reason = "object layouts are raw memory shared with generated code")]

pub mod ctx;
pub mod object;
pub mod text;
