//! The safety net: the formatted text, read again, has the items of the original but for what the rules allow.

use diagnostics::span::FileId;

use super::items::{Item, What, items};
use crate::token::K;

/// `original` are the items of `source`.
pub(super) fn same_items(file: FileId, source: &[u8], original: &[Item], result: &[u8]) -> Result<(), &'static str> {
    let lexed = crate::lex::lex_full(file, result);
    if !lexed.diagnostics.is_empty() {
        return Err("the formatted text has lexical errors");
    }
    let formatted = items(result, &lexed.tokens);
    let mut left = Stream { items: original, at: 0, separators_until: 0 };
    let mut right = Stream { items: &formatted, at: 0, separators_until: 0 };
    let mut other = right.next();
    loop {
        let mine = left.next();
        let same = match (mine, other) {
            (None, None) => return Ok(()),
            (Some(a), Some(b)) => {
                a.breaks == b.breaks && kind(a.item) == kind(b.item) && a.item.text(source) == b.item.text(result)
            }
            _ => false,
        };
        if same {
            other = right.next();
            continue;
        }
        // What the original has more may only be a separator at the end of a line.
        match mine {
            Some(Entry { item, breaks: 0 }) if matches!(item.what, What::Token(K::Semi | K::Comma)) => {
                if !left.at_line_end() {
                    return Err("the formatted text lacks a separator");
                }
            }
            _ => return Err("the formatted text has other tokens, comments or line breaks"),
        }
    }
}

/// An item other than a line break, with the number of line breaks before it: 0, 1, or 2 for more.
#[derive(Clone, Copy)]
struct Entry {
    item: Item,
    breaks: usize,
}

struct Stream<'a> {
    items: &'a [Item],
    at: usize,
    /// Up to this index there are only separators in front of the end of a line.
    separators_until: usize,
}

impl Stream<'_> {
    fn next(&mut self) -> Option<Entry> {
        // An empty line at the start of the file takes one line break only.
        let most = if self.at == 0 { 1 } else { 2 };
        let mut breaks = 0;
        while let Some(item) = self.items.get(self.at) {
            self.at += 1;
            if item.what != What::Break {
                return Some(Entry { item: *item, breaks: breaks.min(most) });
            }
            breaks += 1;
        }
        None
    }

    /// Only separators stand between here and the end of the line.
    fn at_line_end(&mut self) -> bool {
        if self.at < self.separators_until {
            return true;
        }
        let rest = self.items.get(self.at..).unwrap_or_default();
        let is_separator = |i: &Item| matches!(i.what, What::Token(K::Semi | K::Comma));
        let count = rest.iter().position(|i| !is_separator(i)).unwrap_or(rest.len());
        let ends = rest.get(count).is_none_or(Item::ends_line);
        if ends {
            self.separators_until = self.at + count;
        }
        ends
    }
}

/// A `>` before another `>` or a `=` is the same token in a type, whether blanks follow or not.
fn kind(item: Item) -> What {
    match item.what {
        What::Token(K::GeHead | K::ShrHead) => What::Token(K::Gt),
        what => what,
    }
}
