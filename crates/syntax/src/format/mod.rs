//! The canonical form of a source file (`woc fmt`, language specification 14): a formatter over the full token stream.
//!
//! It decides what stands between two tokens and nothing else: it keeps every token but optional `;` and `,` at line
//! ends, every comment and every line break. `items` makes the stream, `types` finds the brackets of `map<K, V>`,
//! `layout` indents and prints, `spacing` holds the rules between neighbours, `verify` proves the result harmless.

mod items;
mod layout;
mod spacing;
mod types;
mod verify;

use diagnostics::Diagnostic;
use diagnostics::span::FileId;

/// Longest result in bytes: what `woc` reads as one source file. Deep nesting makes indentation, so a hostile file of
/// short lines would grow without it.
const RESULT_MAX: usize = 256 << 20;

/// Why a file was left alone.
#[derive(Debug)]
pub enum Refusal {
    /// The source has syntax errors, in order of position.
    Errors(Vec<Diagnostic>),
    /// The result would be longer than a source file may be.
    TooLong,
    /// The formatter changed more than it may; a fault of the formatter, not of the source.
    Internal(&'static str),
}

/// `source` in canonical form; `flags` are the names given with `-D`, which decide what of it is checked for errors.
/// All sections are formatted. The result of a second run is the same.
///
/// # Errors
/// `Refusal`; the source must then stay as it is.
pub fn format(file: FileId, source: &[u8], flags: &[String]) -> Result<Vec<u8>, Refusal> {
    let before = crate::parse(file, source, flags);
    if !before.diagnostics.is_empty() {
        return Err(Refusal::Errors(before.diagnostics));
    }
    let lexed = crate::lex::lex_full(file, source);
    if !lexed.diagnostics.is_empty() {
        return Err(Refusal::Errors(lexed.diagnostics));
    }
    let items = items::items(source, &lexed.tokens);
    let result = layout::print(source, &items).ok_or(Refusal::TooLong)?;
    if result != source {
        verify::same_items(file, source, &items, &result).map_err(Refusal::Internal)?;
        let after = crate::parse(file, &result, flags);
        if !after.diagnostics.is_empty() || crate::dump_ast(&before.file) != crate::dump_ast(&after.file) {
            return Err(Refusal::Internal("the formatted text has another meaning"));
        }
    }
    Ok(result)
}
