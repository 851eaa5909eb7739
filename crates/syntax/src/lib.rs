//! Source text to tokens (logos) to tree (chumsky). No I/O, no failure: `parse` returns a tree of what could be read
//! and the diagnostics of what could not.
//!
//! Layers: `token` and `lex` make one flat stream of small tokens, holes of text literals included; `decl` and `class`
//! read declarations; `stmt`, `expr`, `query`, `types` and `texts` what is inside; `state` holds what they share.
//! `format` writes a file in canonical form from its tokens.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]

mod advice;
pub mod ast;
mod class;
mod decl;
mod dump;
mod expr;
pub mod format;
mod lex;
mod literal;
mod query;
mod state;
mod stmt;
mod texts;
mod token;
mod types;
mod words;

use chumsky::Parser as _;
use chumsky::inspector::SimpleState;
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use logos::Logos as _;

pub use dump::dump_ast;
pub use format::format;

/// Diagnostics reported per file; once a file has that many failures the rest of it is not read, so that garbage of any
/// size costs bounded memory.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// Levels that expressions, types and blocks may nest.
pub const MAX_NESTING: u32 = 500;

/// Length of one operand's chain of `.f`, `(…)`, `[…]` and of `as`. Later stages may recurse along it.
pub const MAX_POSTFIX: usize = 5000;

/// What could be read of a file, and what could not.
#[derive(Debug)]
pub struct Parsed {
    pub file: ast::File,
    /// In order of position; all of them are errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether `text` can name something in a program: it is one word, and not a reserved one.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let mut lexer = token::K::lexer(text.as_bytes());
    lexer.next().is_some_and(|kind| kind.is_ok_and(token::K::is_name)) && lexer.remainder().is_empty()
}

/// Reads one source file. `flags` are the names given with `-D`. Takes linear time and never fails; at most
/// `MAX_DIAGNOSTICS` problems are reported.
#[must_use]
pub fn parse(file: FileId, source: &[u8], flags: &[String]) -> Parsed {
    if u32::try_from(source.len()).is_err() {
        let diagnostic = Diagnostic::error(101, Span::new(file, 0, 0), "the file is too large")
            .label("4 GiB or more")
            .note("positions in a file are 32 bits wide")
            .help("split the file");
        return Parsed { file: ast::File::default(), diagnostics: vec![diagnostic] };
    }
    let lexed = lex::lex(file, source, flags);
    let eof = lexed.tokens.last().copied().unwrap_or(token::Token { kind: token::K::Eof, start: 0, end: 0 });
    let mut state = SimpleState(state::State {
        source,
        file,
        eof,
        diagnostics: lexed.diagnostics,
        lexical: &lexed.errors,
        lexical_seen: 0,
        depth: 0,
        anchor: 0,
        head: 0,
        column: 0,
        last_failure: u32::MAX,
        failures: 0,
        braces_doubtful: false,
        open: state::Open::default(),
    });
    let tree = decl::file().parse_with_state(lexed.tokens.as_slice(), &mut state).into_output();
    let mut diagnostics = state.0.diagnostics;
    diagnostics.sort_by_key(|d| (d.span.start, d.span.end));
    let file = ast::File { is_broken: !diagnostics.is_empty(), ..tree.unwrap_or_default() };
    Parsed { file, diagnostics }
}

/// The tokens of a file, one a line: position, kind, text. For `woc dump tokens`.
#[must_use]
pub fn dump_tokens(source: &[u8], flags: &[String]) -> String {
    dump::tokens(source, flags)
}
