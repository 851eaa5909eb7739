//! Expressions by precedence climbing. `nb` ("no braces") is the mode of conditions: `IDENT {` is no constructor and
//! `{}` no map there. Chains of one level are read by a loop, so their length costs no stack.

use diagnostics::Diagnostic;

use crate::ast::{Arm, BinOp, Block, Expr, ExprKind, Handler, Ident, Switch, UnOp};
use crate::lex::int_too_large;
use crate::literal::{IntValue, float_value, int_value};
use crate::query::query;
use crate::state::{
    Input, Res, ahead, bump, eat, expect, fail, field_name, ident_of, name, nested, nesting_limit, peek, rest,
    skip_newlines, span_of, special, text,
};
use crate::stmt::{block, is_statement_word, statement_or_recover};
use crate::texts::{quoted, raw, with_holes};
use crate::token::{K, Token};
use crate::types::ty;
use crate::words::{doctrine_error, legacy_error};
use crate::{MAX_NESTING, MAX_POSTFIX};

const WANTED: &str = "an expression";

/// A whole expression at the current depth.
pub(crate) fn expr(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    if !nb && peek(inp).kind == K::Try {
        return try_catch(inp);
    }
    binary(inp, 1, nb)
}

/// An expression one level deeper.
#[inline]
pub(crate) fn sub(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    nested(inp, |inp| expr(inp, nb))
}

fn try_catch(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let first = bump(inp);
    let body = nested(inp, |inp| binary(inp, 1, false))?;
    skip_newlines(inp);
    let _ = expect(inp, K::Catch, "`catch` after the body of a `try`")?;
    let _ = expect(inp, K::LParen, "`(` and the name of the error")?;
    let var = name(inp, "the name of the error")?;
    let _ = expect(inp, K::RParen, "`)`")?;
    let first_span = span_of(inp, first);
    let (handler, end) = if peek(inp).kind == K::LBrace {
        let block = nested(inp, block)?;
        let span = block.span;
        (Handler::Block(block), span)
    } else {
        let value = sub(inp, false)?;
        let span = value.span;
        (Handler::Expr(value), span)
    };
    let kind = ExprKind::Try { body: Box::new(body), var, handler: Box::new(handler) };
    Ok(Expr { kind, span: first_span.to(end) })
}

#[inline]
fn operator(kind: K) -> Option<(u8, BinOp)> {
    let found = match kind {
        K::Or => (1, BinOp::Or),
        K::And => (2, BinOp::And),
        K::EqEq => (3, BinOp::Eq),
        K::NotEq => (3, BinOp::Ne),
        K::Lt => (3, BinOp::Lt),
        K::Le => (3, BinOp::Le),
        K::Gt => (3, BinOp::Gt),
        K::GeHead => (3, BinOp::Ge),
        K::Plus => (CONCAT + 1, BinOp::Add),
        K::Minus => (CONCAT + 1, BinOp::Sub),
        K::Pipe => (CONCAT + 1, BinOp::BitOr),
        K::Caret => (CONCAT + 1, BinOp::BitXor),
        K::Star => (CONCAT + 2, BinOp::Mul),
        K::Slash => (CONCAT + 2, BinOp::Div),
        K::Percent => (CONCAT + 2, BinOp::Rem),
        K::Amp => (CONCAT + 2, BinOp::BitAnd),
        K::Shl => (CONCAT + 2, BinOp::Shl),
        K::ShrHead => (CONCAT + 2, BinOp::Shr),
        _ => return None,
    };
    Some(found)
}

/// Precedence of `..`, between comparisons and sums.
const CONCAT: u8 = 4;

/// Operators of precedence `min` and tighter.
fn binary(inp: &mut Input<'_, '_>, min: u8, nb: bool) -> Res<Expr> {
    let mut lhs = unary(inp, nb)?;
    loop {
        let at = peek(inp);
        if at.kind == K::DotDot {
            if CONCAT < min {
                return Ok(lhs);
            }
            lhs = concat(inp, lhs, nb)?;
            continue;
        }
        let Some((level, op)) = operator(at.kind) else { return Ok(lhs) };
        if level < min {
            return Ok(lhs);
        }
        let first = bump(inp);
        let last = if matches!(at.kind, K::GeHead | K::ShrHead) { bump(inp) } else { first };
        let op_span = inp.state().span(first.start, last.end);
        let rhs = binary(inp, level + 1, nb)?;
        let span = lhs.span.to(rhs.span);
        lhs = Expr { kind: ExprKind::Binary { op, op_span, lhs: Box::new(lhs), rhs: Box::new(rhs) }, span };
    }
}

fn concat(inp: &mut Input<'_, '_>, first: Expr, nb: bool) -> Res<Expr> {
    let mut span = first.span;
    let mut items = vec![first];
    while eat(inp, K::DotDot) {
        let item = binary(inp, CONCAT + 1, nb)?;
        span = span.to(item.span);
        items.push(item);
    }
    Ok(Expr { kind: ExprKind::Concat(items), span })
}

/// Prefix operators, iteratively; each one is a nesting level.
fn unary(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    if !matches!(peek(inp).kind, K::Minus | K::Not) {
        return casts(inp, nb);
    }
    let mut prefixes: Vec<Token> = Vec::new();
    let depth = inp.state().depth;
    while matches!(peek(inp).kind, K::Minus | K::Not) {
        if inp.state().depth >= MAX_NESTING {
            return nesting_limit(inp);
        }
        inp.state().depth += 1;
        prefixes.push(bump(inp));
    }
    let mut operand = match lowest_int(inp, prefixes.last().copied()) {
        Some(lowest) => {
            let _ = prefixes.pop();
            lowest
        }
        None => casts(inp, nb)?,
    };
    while let Some(prefix) = prefixes.pop() {
        let op = if prefix.kind == K::Minus { UnOp::Neg } else { UnOp::Not };
        let span = span_of(inp, prefix).to(operand.span);
        operand = Expr { kind: ExprKind::Unary { op, operand: Box::new(operand) }, span };
    }
    inp.state().depth = depth;
    Ok(operand)
}

/// `-9223372036854775808`, whose magnitude is no Int by itself.
fn lowest_int(inp: &mut Input<'_, '_>, minus: Option<Token>) -> Option<Expr> {
    let minus = minus.filter(|t| t.kind == K::Minus)?;
    let token = peek(inp);
    if token.kind != K::Int || int_value(text(inp, token)) != IntValue::MinMagnitude {
        return None;
    }
    let _ = bump(inp);
    let span = inp.state().span(minus.start, token.end);
    Some(Expr { kind: ExprKind::Int(i64::MIN), span })
}

fn casts(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let mut value = postfix(inp, nb)?;
    let mut count = 0;
    while eat(inp, K::As) {
        let ty = ty(inp)?;
        let span = value.span.to(ty.span);
        value = Expr { kind: ExprKind::As(Box::new(value), ty), span };
        count += 1;
        if count > MAX_POSTFIX {
            return chain_limit(inp);
        }
    }
    Ok(value)
}

fn postfix(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let mut value = primary(inp, nb)?;
    let mut count = 0;
    loop {
        let start = value.span;
        match peek(inp).kind {
            K::Dot => {
                let _ = bump(inp);
                // Members of a namespace may be reserved words: `proc.spawn`.
                let member = if peek(inp).kind == K::Spawn {
                    let token = bump(inp);
                    ident_of(inp, token)
                } else {
                    field_name(inp, "the name of a field or method")?
                };
                let span = start.to(member.span);
                value = Expr { kind: ExprKind::Field(Box::new(value), member), span };
            }
            K::LParen => {
                let _ = bump(inp);
                let (args, close) = arguments(inp)?;
                let span = start.to(span_of(inp, close));
                value = Expr { kind: ExprKind::Call { callee: Box::new(value), args }, span };
            }
            K::LBracket => {
                let _ = bump(inp);
                let index = sub(inp, false)?;
                let close = expect(inp, K::RBracket, "`]`")?;
                let span = start.to(span_of(inp, close));
                value = Expr { kind: ExprKind::Index(Box::new(value), Box::new(index)), span };
            }
            _ => return Ok(value),
        }
        count += 1;
        if count > MAX_POSTFIX {
            return chain_limit(inp);
        }
    }
}

fn chain_limit<T>(inp: &mut Input<'_, '_>) -> Res<T> {
    let at = peek(inp);
    let span = span_of(inp, at);
    let diagnostic =
        Diagnostic::error(101, span, format!("a chain of more than {MAX_POSTFIX} `.`, `()`, `[]` or `as`"))
            .label("the limit is exceeded here")
            .note(format!("one operand has at most {MAX_POSTFIX} of them"))
            .help("name the intermediate value with `let`");
    special(at, diagnostic)
}

/// After `(`: arguments without a trailing comma, and the `)`.
fn arguments(inp: &mut Input<'_, '_>) -> Res<(Vec<Expr>, Token)> {
    let mut args = Vec::new();
    skip_newlines(inp);
    if peek(inp).kind == K::RParen {
        return Ok((args, bump(inp)));
    }
    loop {
        args.push(sub(inp, false)?);
        skip_newlines(inp);
        if eat(inp, K::Comma) {
            skip_newlines(inp);
            continue;
        }
        let close = expect(inp, K::RParen, "`,` or `)`")?;
        return Ok((args, close));
    }
}

fn primary(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let token = peek(inp);
    let simple = match token.kind {
        K::Int => ExprKind::Int(int_literal(inp, token)),
        K::Float => ExprKind::Float(float_value(text(inp, token))),
        K::True => ExprKind::Bool(true),
        K::False => ExprKind::Bool(false),
        K::Nil => ExprKind::Nil,
        K::Str => quoted(text(inp, token)),
        K::Raw => raw(text(inp, token)),
        K::BadStr => ExprKind::Text(Vec::new()),
        K::Ident => return named(inp, nb),
        K::StrOpen | K::RawOpen => return with_holes(inp),
        K::LParen => return parenthesised(inp),
        K::LBracket => return list(inp),
        K::LBrace if !nb => return empty_map(inp),
        K::Spawn => return spawn(inp),
        K::Switch => return nested(inp, |inp| switch(inp, nb)),
        K::LegacyInsert | K::LegacySelect => return legacy(inp),
        kind if kind.is_name() => return contextual(inp, nb),
        _ => return fail(inp, WANTED),
    };
    let _ = bump(inp);
    let span = span_of(inp, token);
    Ok(Expr { kind: simple, span })
}

fn int_literal(inp: &mut Input<'_, '_>, token: Token) -> i64 {
    let digits = text(inp, token);
    match int_value(digits) {
        IntValue::Value(v) => v,
        IntValue::MinMagnitude => {
            let span = span_of(inp, token);
            inp.state().emit(int_too_large(span, digits));
            0
        }
        // The lexer reported it.
        IntValue::TooLarge => 0,
    }
}

fn legacy(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let token = peek(inp);
    let span = span_of(inp, token);
    let word = String::from_utf8_lossy(text(inp, token));
    special(token, legacy_error(span, &word))
}

/// An expression that starts with a word that may mean more than a name.
fn contextual(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let token = peek(inp);
    match token.kind {
        K::From => {
            let next = rest(inp);
            let is_query =
                next.get(1).is_some_and(|t| t.kind.is_name()) && next.get(2).is_some_and(|t| t.kind == K::In);
            if is_query { nested(inp, |inp| query(inp, nb)) } else { named(inp, nb) }
        }
        K::Insert => {
            let _ = bump(inp);
            skip_newlines(inp);
            let class = name(inp, "the name of a class")?;
            let (fields, close) = fields_of(inp, "insert", &class)?;
            let span = inp.state().span(token.start, close.end);
            Ok(Expr { kind: ExprKind::Insert { class, fields }, span })
        }
        K::Delete if !matches!(ahead(inp, 1), K::Nl | K::Semi | K::Eof) => {
            let _ = bump(inp);
            let row = sub(inp, nb)?;
            let span = span_of(inp, token).to(row.span);
            Ok(Expr { kind: ExprKind::Delete(Box::new(row)), span })
        }
        K::Select => legacy(inp),
        kind if kind.is_doctrine() => {
            let span = span_of(inp, token);
            let word = String::from_utf8_lossy(text(inp, token));
            special(token, doctrine_error(span, &word))
        }
        _ => named(inp, nb),
    }
}

/// A name, or a constructor where braces are on.
fn named(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let token = bump(inp);
    let ident = ident_of(inp, token);
    if nb && looks_like_fields(rest(inp)) {
        return constructor_in_condition(inp, &ident);
    }
    if nb || peek(inp).kind != K::LBrace {
        let Ident { name, span } = ident;
        return Ok(Expr { kind: ExprKind::Name(name), span });
    }
    let (fields, close) = constructor_fields(inp)?;
    let span = inp.state().span(token.start, close.end);
    Ok(Expr { kind: ExprKind::New { class: ident, fields }, span })
}

/// `{ name :`, which starts no block.
fn looks_like_fields(tokens: &[Token]) -> bool {
    let [brace, inner @ ..] = tokens else { return false };
    let inner = match inner {
        [first, inner @ ..] if first.kind == K::Nl => inner,
        inner => inner,
    };
    brace.kind == K::LBrace && matches!(inner, [name, colon, ..] if name.kind.is_field_name() && colon.kind == K::Colon)
}

fn constructor_in_condition<T>(inp: &mut Input<'_, '_>, class: &Ident) -> Res<T> {
    let at = peek(inp);
    let diagnostic =
        Diagnostic::error(101, class.span, format!("constructor of `{}` where a `{{` starts a block", class.name))
            .label("not a constructor here")
            .note("in conditions, loop iterables, `switch` subjects and query clauses `name {` begins the block")
            .help("put the constructor into parentheses");
    special(at, diagnostic)
}

fn spawn(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let token = bump(inp);
    let class = name(inp, "the name of a class")?;
    let (fields, close) = fields_of(inp, "spawn", &class)?;
    let span = inp.state().span(token.start, close.end);
    Ok(Expr { kind: ExprKind::Spawn { class, fields }, span })
}

/// The fields behind `spawn Name` or `insert Name`; without them the help repeats what was written, with braces, if it
/// may be a class.
fn fields_of(inp: &mut Input<'_, '_>, word: &str, class: &Ident) -> Res<(Vec<(Ident, Expr)>, Token)> {
    let at = peek(inp);
    if at.kind == K::LBrace {
        return constructor_fields(inp);
    }
    let is_class = class.name.starts_with(|c: char| c.is_ascii_uppercase());
    let (note, help) = match (word, is_class) {
        ("insert", _) => (
            "`insert` makes a row of the fields that follow the name of its class, not of an object",
            format!("write `insert {} {{ field: value }}`", if is_class { &class.name } else { "Name" }),
        ),
        (_, true) => (
            "`spawn` makes the object that becomes the actor; its braces stand there even if they are empty",
            format!("write `spawn {} {{}}`, with the fields that have no default between the braces", class.name),
        ),
        (_, false) => (
            "`spawn` makes an object of a class with a `receive` method; it takes no function and no object that exists",
            "write `spawn Name { field: value }`".to_owned(),
        ),
    };
    let found = inp.state().describe(at);
    let diagnostic = Diagnostic::error(101, span_of(inp, at), format!("expected `{{` and the fields, found {found}"))
        .label("expected `{`")
        .note(note)
        .help(help);
    special(at, diagnostic)
}

/// `{ f: e, … }` with an optional trailing comma.
fn constructor_fields(inp: &mut Input<'_, '_>) -> Res<(Vec<(Ident, Expr)>, Token)> {
    let _ = expect(inp, K::LBrace, "`{`")?;
    let mut fields = Vec::new();
    skip_newlines(inp);
    loop {
        if peek(inp).kind == K::RBrace {
            return Ok((fields, bump(inp)));
        }
        let key = field_name(inp, "a field name or `}`")?;
        let _ = expect(inp, K::Colon, "`:` and the field's value")?;
        fields.push((key, sub(inp, false)?));
        skip_newlines(inp);
        if eat(inp, K::Comma) {
            skip_newlines(inp);
        } else if peek(inp).kind != K::RBrace {
            return fail(inp, "`,` or `}`");
        }
    }
}

fn parenthesised(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let open = bump(inp);
    let mut inner = sub(inp, false)?;
    let close = expect(inp, K::RParen, "`)`")?;
    inner.span = inp.state().span(open.start, close.end);
    Ok(inner)
}

fn list(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let open = bump(inp);
    let mut items = Vec::new();
    skip_newlines(inp);
    loop {
        if peek(inp).kind == K::RBracket {
            let close = bump(inp);
            let span = inp.state().span(open.start, close.end);
            return Ok(Expr { kind: ExprKind::List(items), span });
        }
        if !items.is_empty() && !starts_expression(peek(inp).kind) {
            return fail(inp, "`,` or `]`");
        }
        items.push(sub(inp, false)?);
        skip_newlines(inp);
        if eat(inp, K::Comma) {
            skip_newlines(inp);
        }
    }
}

fn starts_expression(kind: K) -> bool {
    kind.is_name()
        || matches!(
            kind,
            K::Int
                | K::Float
                | K::Str
                | K::Raw
                | K::BadStr
                | K::StrOpen
                | K::RawOpen
                | K::True
                | K::False
                | K::Nil
                | K::LParen
                | K::LBracket
                | K::LBrace
                | K::Spawn
                | K::Switch
                | K::Try
                | K::Minus
                | K::Not
                | K::LegacyInsert
                | K::LegacySelect
        )
}

fn empty_map(inp: &mut Input<'_, '_>) -> Res<Expr> {
    let open = bump(inp);
    skip_newlines(inp);
    let at = peek(inp);
    if at.kind == K::RBrace {
        let _ = bump(inp);
        let span = inp.state().span(open.start, at.end);
        return Ok(Expr { kind: ExprKind::EmptyMap, span });
    }
    let diagnostic = if has_entries(inp, at) { None } else { no_block(inp, open, at) };
    let span = span_of(inp, at);
    let found = inp.state().describe(at);
    special(
        at,
        diagnostic.unwrap_or_else(|| {
            Diagnostic::error(101, span, format!("expected `}}` of an empty map, found {found}"))
                .label("a map literal is empty")
                .note("`{}` is the only map literal, and a block is not an expression")
                .help("start with `let m: map<K, V> = {}` and fill it with `set(m, key, value)` or `m[key] = value`")
        }),
    )
}

/// `key: …`, meant as a map.
fn has_entries(inp: &mut Input<'_, '_>, at: Token) -> bool {
    matches!(at.kind, K::Str | K::Int) || ahead(inp, 1) == K::Colon
}

/// Braces around statements where `open` was to begin a value.
fn no_block(inp: &mut Input<'_, '_>, open: Token, at: Token) -> Option<Diagnostic> {
    let before = inp.state().line_before(open.start);
    let before = before.trim();
    let is_arm = before.ends_with(':') && (before.contains("case ") || before.contains("default"));
    let (label, note, help) = if before == "try" || before.ends_with(" try") {
        (
            "`try` takes one expression",
            "only behind `catch (e)` a block may stand",
            "put the statements into a function and try its call: `try work() catch (e) { … }`",
        )
    } else if is_arm {
        (
            "an arm has no braces",
            "the statements of an arm stand behind its `:`, up to the next arm or the end of the `switch`",
            "leave the braces out",
        )
    } else if is_statement_word(at.kind) {
        (
            "a block is not an expression",
            "braces hold the body of what begins with a word, such as `if` and `while`",
            "leave the braces out, or put the statements into a function and call it",
        )
    } else {
        return None;
    };
    let span = span_of(inp, open);
    Some(
        Diagnostic::error(101, span, "expected an expression, found the `{` of a block")
            .label(label)
            .note(note)
            .help(help),
    )
}

fn switch(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let first = bump(inp);
    let subject = sub(inp, true)?;
    let _ = expect(inp, K::LBrace, "`{` and the arms of the `switch`")?;
    let mut arms = Vec::new();
    loop {
        skip_newlines(inp);
        let token = peek(inp);
        match token.kind {
            K::RBrace => {
                let _ = bump(inp);
                let span = inp.state().span(first.start, token.end);
                let kind = ExprKind::Switch(Box::new(Switch { subject, arms }));
                return Ok(Expr { kind, span });
            }
            K::Case | K::Default => arms.push(arm(inp, nb)?),
            _ => return fail(inp, "`case`, `default` or `}`"),
        }
    }
}

fn arm(inp: &mut Input<'_, '_>, nb: bool) -> Res<Arm> {
    let first = bump(inp);
    let is_default = first.kind == K::Default;
    let mut values = Vec::new();
    if !is_default {
        values.push(sub(inp, nb)?);
        while eat(inp, K::Comma) {
            values.push(sub(inp, nb)?);
        }
    }
    let colon = expect(inp, K::Colon, if is_default { "`:`" } else { "`,` or `:`" })?;
    let failures = inp.state().failures;
    let mut stmts = Vec::new();
    loop {
        let kind = peek(inp).kind;
        match kind {
            K::Nl => inp.skip(),
            K::Case | K::Default | K::RBrace | K::Eof | K::HoleClose | K::EscClose => break,
            _ => statement_or_recover(inp, &mut stmts),
        }
    }
    let head = span_of(inp, first);
    let from = span_of(inp, colon);
    let span = match (stmts.first(), stmts.last()) {
        (Some(a), Some(b)) => a.span.to(b.span),
        _ => from,
    };
    let is_broken = inp.state().failures != failures;
    Ok(Arm { values, is_default, body: Block { stmts, span, is_broken }, span: head.to(span) })
}
