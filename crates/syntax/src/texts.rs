//! Text literals as expressions: decoding, and holes as real expressions at their true positions.

use crate::ast::{Expr, ExprKind, Piece};
use crate::expr::sub;
use crate::literal::{remove_margin, unescape};
use crate::state::{Failure, Input, Res, State, bump, expect, peek, span_of, text};
use crate::token::K;

fn inner(literal: &[u8]) -> &[u8] {
    match literal {
        [_, middle @ .., _] => middle,
        _ => b"",
    }
}

fn whole(value: Vec<u8>) -> Vec<Piece> {
    if value.is_empty() { Vec::new() } else { vec![Piece::Text(value)] }
}

/// A quoted literal without holes, delimiters included.
pub(crate) fn quoted(literal: &[u8]) -> ExprKind {
    ExprKind::Text(whole(unescape(inner(literal))))
}

/// A raw literal without holes, delimiters included.
pub(crate) fn raw(literal: &[u8]) -> ExprKind {
    let mut pieces = whole(inner(literal).to_vec());
    remove_margin(&mut pieces);
    ExprKind::Text(pieces)
}

/// At `StrOpen` or `RawOpen`. A hole that does not hold one expression is reported and left out.
pub(crate) fn with_holes(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let open = bump(inp);
    let is_raw = open.kind == K::RawOpen;
    let mut pieces = Vec::new();
    loop {
        let token = peek(inp);
        match token.kind {
            K::StrPart => {
                let part = text(inp, token);
                pieces.push(Piece::Text(if is_raw { part.to_vec() } else { unescape(part) }));
                let _ = bump(inp);
            }
            K::HoleOpen | K::EscOpen => pieces.extend(hole(inp)),
            _ => break,
        }
    }
    let close = expect(inp, K::StrClose, "the end of the text")?;
    if is_raw {
        remove_margin(&mut pieces);
    }
    let span = inp.state().span(open.start, close.end);
    Ok(Expr { kind: ExprKind::Text(pieces), span })
}

fn hole(inp: &mut Input<'_, '_>) -> Option<Piece> {
    let open = bump(inp);
    let State { depth, open: brackets, .. } = inp.state().0;
    let anchor = std::mem::replace(&mut inp.state().anchor, open.start);
    let result = match sub(inp, false) {
        Ok(value) => {
            let at = peek(inp);
            if at.kind.is_hole_close() {
                let _ = bump(inp);
                Ok(value)
            } else {
                Err(Failure { at, wanted: "the end of the hole", special: None })
            }
        }
        Err(failure) => Err(failure),
    };
    inp.state().anchor = anchor;
    match result {
        Ok(value) if open.kind == K::EscOpen => Some(Piece::Escaped(value, span_of(inp, open))),
        Ok(value) => Some(Piece::Hole(value)),
        Err(failure) => {
            let end = skip_hole(inp);
            let state = inp.state();
            state.depth = depth;
            state.open = brackets;
            state.open.pass(K::HoleClose);
            let span = state.span(open.start, end);
            state.report_hole(failure, span);
            None
        }
    }
}

/// Moves behind the closer of the hole that holds the current token; returns its end.
fn skip_hole(inp: &mut Input<'_, '_>) -> u32 {
    let mut depth = 0usize;
    loop {
        let token = bump(inp);
        match token.kind {
            K::HoleOpen | K::EscOpen => depth += 1,
            K::HoleClose | K::EscClose if depth == 0 => return token.end,
            K::HoleClose | K::EscClose => depth -= 1,
            K::Eof => return token.start,
            _ => {}
        }
    }
}
