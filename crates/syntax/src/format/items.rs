//! The stream the formatter works on: tokens, with literals that have holes as one piece, comments, and line breaks.

use crate::token::{K, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Token(K),
    /// From `--` on, without blanks at its end.
    Comment,
    /// One line feed.
    Break,
}

/// A piece of the source, byte range `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub what: What,
    pub start: u32,
    pub end: u32,
}

impl Item {
    pub fn text<'s>(&self, source: &'s [u8]) -> &'s [u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Ends a line: a line break, or the comment before one.
    pub fn ends_line(&self) -> bool {
        !matches!(self.what, What::Token(_))
    }
}

/// `tokens` is the full stream of `source`, without errors.
pub(super) fn items(source: &[u8], tokens: &[Token]) -> Vec<Item> {
    let mut out = Vec::with_capacity(tokens.len() + tokens.len() / 8);
    let mut end = if source.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    // Open literals with holes; the outermost one starts at `literal`.
    let mut depth = 0usize;
    let mut literal = (K::Str, 0);
    for token in tokens {
        if depth == 0 {
            out.extend(comment(source, end, token.start));
        }
        end = token.end;
        match token.kind {
            K::StrOpen | K::RawOpen => {
                if depth == 0 {
                    let kind = if token.kind == K::RawOpen { K::Raw } else { K::Str };
                    literal = (kind, token.start);
                }
                depth += 1;
            }
            K::StrClose => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let (kind, start) = literal;
                    out.push(Item { what: What::Token(kind), start, end });
                }
            }
            K::Eof => break,
            _ if depth > 0 => {}
            K::Nl => out.push(Item { what: What::Break, start: token.start, end }),
            kind => out.push(Item { what: What::Token(kind), start: token.start, end }),
        }
    }
    out
}

/// The comment between two tokens, if there is one.
fn comment(source: &[u8], from: u32, to: u32) -> Option<Item> {
    let gap = source.get(from as usize..to as usize)?;
    let at = gap.windows(2).position(|w| w == b"--")?;
    let text = gap.get(at..)?;
    let length = text.iter().rposition(|b| !matches!(b, b' ' | b'\t' | b'\r'))? + 1;
    let start = from + u32::try_from(at).ok()?;
    Some(Item { what: What::Comment, start, end: start + u32::try_from(length).ok()? })
}
