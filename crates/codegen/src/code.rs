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
    /// Per function of the program: its name in stack traces, its file and its line.
    pub(crate) functions: Vec<(String, u32, u32)>,
    /// Where functions begin, ascending: those of the program in their order, then glue, then the stubs of `runtime`
    /// as one.
    pub(crate) starts: Vec<u32>,
}

/// A stretch of the text and what a profiler calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// From the start of the text.
    pub offset: u32,
    pub size: u32,
    pub name: String,
}

impl Code<'_> {
    /// All of the text by function, ascending: `Class.method (file:line)`; what the compiler made has names in brackets.
    /// A function's stretch holds what was inlined into it.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        let ends = self.starts.iter().skip(1).copied().chain([end]);
        let symbol = |(index, (offset, end)): (usize, (u32, u32))| Symbol {
            offset,
            size: end.saturating_sub(offset),
            name: self.name(index, offset),
        };
        self.starts.iter().copied().zip(ends).enumerate().map(symbol).filter(|symbol| symbol.size > 0).collect()
    }

    /// Name of function `index`, which begins at `offset`.
    fn name(&self, index: usize, offset: u32) -> String {
        let Some((display, file, line)) = self.functions.get(index) else {
            let class = self.receives.iter().position(|receive| *receive == Some(offset));
            let class = class.and_then(|class| self.shapes.classes.get(class));
            return match class {
                Some(class) => format!("[receive of {}]", class.name),
                None if index + 1 == self.starts.len() => "[calls of the runtime]".to_string(),
                None if self.main == Some(offset) => "[main]".to_string(),
                None => "[glue]".to_string(),
            };
        };
        let file = self.files.get(*file as usize).map_or("", String::as_str);
        let display = if display.is_empty() { "[made by the compiler]" } else { display };
        format!("{display} ({file}:{line})")
    }

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
