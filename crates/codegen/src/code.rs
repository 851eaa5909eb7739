//! A compiled program as plain data: no address of any process is in it, so it can be loaded at once or written to a
//! file and loaded elsewhere.
//!
//! In memory it is one piece, each part at the start of a page: the text, which is only run; words for the addresses
//! of the runtime's functions and the entries of the dispatch tables, which are only read once they are filled in; the
//! literals, whose hashes the runtime notes in them.

use std::borrow::Cow;

use abi::desc::Shapes;
use serde::{Deserialize, Serialize};

/// What protection of memory is counted in.
pub(crate) const PAGE: usize = 4096;

/// Offsets count from the start of the text.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Code<'a> {
    #[serde(borrow)]
    pub(crate) text: Cow<'a, [u8]>,
    /// Names of the runtime functions whose addresses the first words hold.
    #[serde(borrow)]
    pub(crate) runtime: Vec<Cow<'a, str>>,
    /// What the other words point at: per dispatch table and class, a function's offset.
    pub(crate) entries: Vec<u32>,
    #[serde(borrow)]
    pub(crate) literals: Cow<'a, [u8]>,
    pub(crate) main: Option<u32>,
    /// Per class: the entry of its `receive`.
    pub(crate) receives: Vec<Option<u32>>,
    /// Return addresses of calls, ascending: offset, function, line.
    pub(crate) sites: Vec<(u32, u32, u32)>,
    pub(crate) shapes: Shapes,
    /// Paths as stack traces print them.
    pub(crate) files: Vec<String>,
    /// Per function of the program: its name in stack traces and its file.
    pub(crate) functions: Vec<(String, u32)>,
}

impl Code<'_> {
    /// As bytes; the same for equal code.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        postcard::to_allocvec(self).map_err(|e| format!("code to bytes: {e}"))
    }
}

impl<'a> Code<'a> {
    /// The code in `bytes`; none if they are not exactly one. That it is code of `encode` the caller must know: it is
    /// going to be run.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Code<'a>> {
        let (code, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(code)
    }
}
