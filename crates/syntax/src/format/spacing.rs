//! Whether a blank stands between two tokens of one line.

use crate::token::K;

/// The left neighbour, with what the printer knows about it.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub kind: K,
    /// It ends an operand: a `(` or `[` behind it calls or indexes.
    pub operand: bool,
    /// It is a unary minus.
    pub prefix_minus: bool,
    /// It is an angle bracket of a type.
    pub angle: bool,
    /// Nothing stands between the two in the source.
    pub touches: bool,
    /// Inside `use a/b`.
    pub in_use: bool,
}

/// The right neighbour.
#[derive(Clone, Copy)]
pub(super) struct Right {
    pub kind: K,
    pub first_byte: u8,
    pub angle: bool,
}

pub(super) fn blank_between(left: Left, right: Right) -> bool {
    // The two halves of one operator.
    let halves = matches!((left.kind, right.kind), (K::GeHead, K::Assign) | (K::ShrHead, K::Gt));
    if halves && left.touches && !left.angle {
        return false;
    }
    match (left.kind, right.kind) {
        (K::Directive, _) | (_, K::Directive) => return true,
        (K::LBrace, K::RBrace) => return false,
        // Glued, these would be one token.
        (K::Dot, K::Dot | K::DotDot | K::Int | K::Float) => return true,
        _ => {}
    }
    match left.kind {
        K::LParen | K::LBracket | K::Dot | K::At | K::Question => return false,
        K::Minus if left.prefix_minus => return matches!(right.first_byte, b'-' | b'=' | b'>'),
        K::Lt if left.angle => return false,
        K::Slash if left.in_use => return !(right.first_byte.is_ascii_alphabetic() || right.first_byte == b'_'),
        _ => {}
    }
    match right.kind {
        K::Comma | K::Semi | K::Colon | K::RParen | K::RBracket | K::Dot => false,
        K::LParen => !(left.operand || left.kind == K::Pub),
        K::LBracket => !left.operand,
        K::Slash => !(left.in_use && left.kind.is_name()),
        K::Lt | K::Gt | K::GeHead | K::ShrHead => !right.angle,
        _ => true,
    }
}
