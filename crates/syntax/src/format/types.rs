//! Finds the angle brackets of `map<K, V>`, which are written without blanks, unlike comparisons and shifts. Works on
//! tokens, so that discarded sections are covered too; where it is wrong only blanks differ.

use super::items::{Item, What};
use crate::MAX_NESTING;
use crate::token::K;

fn kind(items: &[Item], at: usize) -> Option<K> {
    match items.get(at)?.what {
        What::Token(kind) => Some(kind),
        _ => None,
    }
}

/// For every item, whether it is an angle bracket of a type.
pub(super) fn angles(items: &[Item]) -> Vec<bool> {
    let mut marks = vec![false; items.len()];
    let mut found = Vec::new();
    for at in 1..items.len() {
        let starts = kind(items, at) == Some(K::Map)
            && kind(items, at + 1) == Some(K::Lt)
            // Elsewhere `map` is a name. After `:` of a constructor field or a `case` no complete map type fits.
            && matches!(kind(items, at - 1), Some(K::Colon | K::Arrow | K::As | K::Question | K::Multi));
        if !starts {
            continue;
        }
        found.clear();
        if type_at(items, at, 0, &mut found).is_some() {
            for index in &found {
                if let Some(mark) = marks.get_mut(*index) {
                    *mark = true;
                }
            }
        }
    }
    marks
}

/// Index behind the type at `at`; its angle brackets go to `found`.
fn type_at(items: &[Item], mut at: usize, depth: u32, found: &mut Vec<usize>) -> Option<usize> {
    if depth >= MAX_NESTING {
        return None;
    }
    while matches!(kind(items, at), Some(K::Question | K::Multi)) {
        at += 1;
    }
    match kind(items, at)? {
        K::Map if kind(items, at + 1) == Some(K::Lt) => {
            found.push(at + 1);
            let comma = type_at(items, at + 2, depth + 1, found)?;
            if kind(items, comma) != Some(K::Comma) {
                return None;
            }
            let close = type_at(items, comma + 1, depth + 1, found)?;
            if !matches!(kind(items, close), Some(K::Gt | K::GeHead | K::ShrHead)) {
                return None;
            }
            found.push(close);
            Some(close + 1)
        }
        K::Ref | K::Actor | K::Backlink if kind(items, at + 1).is_some_and(K::is_name) => qualified(items, at + 1),
        word if word.is_name() => qualified(items, at),
        _ => None,
    }
}

fn qualified(items: &[Item], at: usize) -> Option<usize> {
    if kind(items, at + 1) != Some(K::Dot) {
        return Some(at + 1);
    }
    kind(items, at + 2)?.is_field_name().then_some(at + 3)
}
