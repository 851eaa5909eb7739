//! Values of literals: integers, floats, escapes of quoted text, margin removal of raw text.

use crate::ast::Piece;

/// Value of an integer literal's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntValue {
    Value(i64),
    /// Decimal 9223372036854775808: legal only under a unary minus.
    MinMagnitude,
    TooLarge,
}

/// `text` matches one of the patterns of `K::Int`.
pub(crate) fn int_value(text: &[u8]) -> IntValue {
    let (digits, radix) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (rest, 16u64),
        [b'0', b'b' | b'B', rest @ ..] => (rest, 2),
        _ => (text, 10),
    };
    let mut value = 0u64;
    for b in digits {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            b'A'..=b'F' => b - b'A' + 10,
            _ => continue,
        };
        let next = value.checked_mul(radix).and_then(|v| v.checked_add(u64::from(digit)));
        match next {
            Some(v) => value = v,
            None => return IntValue::TooLarge,
        }
    }
    if radix != 10 {
        return IntValue::Value(value.cast_signed());
    }
    match i64::try_from(value) {
        Ok(v) => IntValue::Value(v),
        Err(_) if value == 1 << 63 => IntValue::MinMagnitude,
        Err(_) => IntValue::TooLarge,
    }
}

/// `text` matches a pattern of `K::Float`; too large is infinity.
pub(crate) fn float_value(text: &[u8]) -> f64 {
    let digits: Vec<u8> = text.iter().copied().filter(|b| *b != b'_').collect();
    std::str::from_utf8(&digits).ok().and_then(|s| s.parse().ok()).unwrap_or(0.0)
}

/// The content of a quoted literal (or a part of one between holes) with its escapes replaced.
pub(crate) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'0') => out.push(0),
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    out
}

/// Margin removal of a raw literal, whose pieces still hold the text as written. Only literals with a line feed
/// outside holes change. A carriage return before a line feed counts as part of the line break.
pub(crate) fn remove_margin(pieces: &mut Vec<Piece>) {
    let has_line_feed = pieces.iter().any(|p| matches!(p, Piece::Text(t) if t.contains(&b'\n')));
    if !has_line_feed {
        return;
    }
    if let Some(Piece::Text(first)) = pieces.first_mut() {
        if first.starts_with(b"\n") {
            let _ = first.remove(0);
        } else if first.starts_with(b"\r\n") {
            drop(first.drain(..2));
        }
    }
    let margin = margin_of(pieces);
    let mut at_start = true;
    let mut removed = 0;
    for piece in pieces.iter_mut() {
        match piece {
            Piece::Text(text) => {
                text.retain(|b| {
                    let blank = at_start && matches!(b, b' ' | b'\t') && removed < margin;
                    if *b == b'\n' {
                        at_start = true;
                        removed = 0;
                    } else if blank {
                        removed += 1;
                    } else {
                        at_start = false;
                    }
                    !blank
                });
            }
            Piece::Hole(_) | Piece::Escaped(..) => at_start = false,
        }
    }
    let only_piece = pieces.len() == 1;
    if let Some(Piece::Text(last)) = pieces.last_mut() {
        let line = last.iter().rposition(|b| *b == b'\n').map(|feed| feed + 1).or(only_piece.then_some(0));
        if let Some(line) = line
            && last.iter().skip(line).all(|b| matches!(b, b' ' | b'\t'))
        {
            last.truncate(line);
        }
    }
    pieces.retain(|p| !matches!(p, Piece::Text(t) if t.is_empty()));
}

/// Smallest number of leading blanks over the lines that hold anything else.
fn margin_of(pieces: &[Piece]) -> usize {
    let mut margin = usize::MAX;
    let mut at_start = true;
    let mut blanks = 0;
    for piece in pieces {
        let Piece::Text(text) = piece else {
            if at_start {
                margin = margin.min(blanks);
            }
            at_start = false;
            continue;
        };
        for (i, b) in text.iter().enumerate() {
            match b {
                b'\n' => {
                    at_start = true;
                    blanks = 0;
                }
                b' ' | b'\t' if at_start => blanks += 1,
                b'\r' if text.get(i + 1) == Some(&b'\n') => {}
                _ if at_start => {
                    margin = margin.min(blanks);
                    at_start = false;
                }
                _ => {}
            }
        }
    }
    if margin == usize::MAX { 0 } else { margin }
}
