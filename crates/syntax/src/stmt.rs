//! Statements and blocks, and recovery inside blocks: a statement that cannot be read is reported once, left out, and
//! reading goes on behind its `;`, its line or in front of the block's `}`.

use diagnostics::Diagnostic;

use crate::ast::{BinOp, Block, Expr, ExprKind, If, Name, Stmt, StmtKind};
use crate::expr::expr;
use crate::state::{
    Failure, Input, Open, Res, ahead, bump, declared_names, eat, end_of_statement, expect, fail, ident_of, name,
    nested, past_newlines, peek, rest, skip_newlines, span_of, special,
};
use crate::token::{K, Token};
use crate::types::ty;

const END: &str = "the end of the statement";

/// `{ … }`, one level deeper than where it stands unless the caller is a declaration.
pub(crate) fn block(inp: &mut Input<'_, '_>) -> Res<Block> {
    late_brace(inp, "`{`");
    let open = expect(inp, K::LBrace, "`{`")?;
    let failures = inp.state().failures;
    let mut stmts = Vec::new();
    loop {
        let token = peek(inp);
        match token.kind {
            K::Nl => inp.skip(),
            K::RBrace => {
                let _ = bump(inp);
                let state = inp.state();
                let span = state.span(open.start, token.end);
                return Ok(Block { stmts, span, is_broken: state.failures != failures });
            }
            // The closing brace is missing: report it once (enclosing blocks fail at the same token) and go on as if
            // it stood here.
            K::Eof | K::HoleClose | K::EscClose => return Ok(unclosed(inp, open, stmts)),
            _ if starts_outer_declaration(inp, token) => return Ok(unclosed(inp, open, stmts)),
            K::Case | K::Default | K::Else if inp.state().failures != failures => {
                // What it continues was left out: it says nothing new.
                inp.state().last_failure = token.start;
                statement_or_recover(inp, &mut stmts);
            }
            _ => {
                statement_or_recover(inp, &mut stmts);
                let next = peek(inp).start;
                let state = inp.state();
                // A block of one line, whose `}` is not there.
                if ends_unread(&stmts) && state.is_one_line(open.start, token.start) && state.starts_line(next) {
                    state.braces_doubtful = true;
                }
            }
        }
    }
}

/// A `{` on the line after: reported, and read as if it stood where it should.
pub(crate) fn late_brace(inp: &mut Input<'_, '_>, wanted: &'static str) {
    if peek(inp).kind == K::Nl && ahead(inp, 1) == K::LBrace {
        let at = peek(inp);
        inp.state().report(Failure { at, wanted, special: None });
        skip_newlines(inp);
    }
}

fn unclosed(inp: &mut Input<'_, '_>, open: Token, stmts: Vec<Stmt>) -> Block {
    let at = peek(inp);
    let state = inp.state();
    let found = state.describe(at);
    let span = state.span(open.start, at.start.max(open.end));
    let diagnostic = Diagnostic::error(101, state.span_of(at), format!("expected `}}`, found {found}"))
        .label("the block is still open here")
        .related(state.span_of(open), "the block starts here")
        .note("every `{` needs its `}`")
        .help("add the missing `}`");
    // A brace may be in what could not be read.
    if !std::mem::replace(&mut state.braces_doubtful, true) && !ends_unread(&stmts) {
        state.report(Failure { at, wanted: "`}`", special: Some(Box::new(diagnostic)) });
    } else {
        state.failures += 1;
    }
    Block { stmts, span, is_broken: true }
}

/// A declaration word where a statement should start, not indented deeper than the declaration around it: a `}` is
/// missing before it.
fn starts_outer_declaration(inp: &mut Input<'_, '_>, token: Token) -> bool {
    let is_word = match token.kind {
        K::Fn | K::Class | K::Interface | K::Typedef | K::Pub | K::Use | K::Using | K::Type | K::Const | K::At => true,
        K::Test => ahead(inp, 1) == K::Str,
        _ => false,
    };
    is_word && {
        let state = inp.state();
        state.column_of(token.start) <= state.column
    }
}

/// Reads one statement into `stmts`, or reports it and skips it.
pub(crate) fn statement_or_recover(inp: &mut Input<'_, '_>, stmts: &mut Vec<Stmt>) {
    let first = peek(inp);
    let tokens = rest(inp);
    let state = inp.state();
    state.anchor = first.start;
    let head = std::mem::replace(&mut state.head, first.start);
    let (depth, open) = (state.depth, state.open);
    match statement(inp) {
        Ok(stmt) => stmts.push(stmt),
        Err(failure) => {
            let at = failure.at;
            let state = inp.state();
            // The rest of a statement that could not be read is no second defect.
            let is_rest = at.start == first.start
                && matches!(at.kind, K::Case | K::Default | K::Else | K::Catch | K::RParen | K::RBracket)
                && ends_unread(stmts);
            if is_rest {
                state.pass_over(at);
            } else {
                state.report(failure);
            }
            state.depth = depth;
            let broken = state.open.since(open);
            recover(inp, first, broken);
            let unbalanced = inp.state().open.braces != open.braces;
            inp.state().open = open;
            let skipped = tokens.len() - rest(inp).len();
            let skipped = tokens.get(..skipped).unwrap_or_default();
            if unbalanced || broken.braces > 0 || leaves_doubt(skipped, at, peek(inp)) {
                inp.state().braces_doubtful = true;
            }
            let unread = unread(inp, first, skipped);
            stmts.push(unread);
        }
    }
    inp.state().head = head;
}

fn ends_unread(stmts: &[Stmt]) -> bool {
    matches!(stmts.last(), Some(Stmt { kind: StmtKind::Unread { .. }, .. }))
}

/// What remains of a statement that begins with `first` and was passed over.
fn unread(inp: &mut Input<'_, '_>, first: Token, skipped: &[Token]) -> Stmt {
    let mut names = declared_names(inp, skipped);
    let mut local = None;
    if first.kind == K::Let {
        match skipped.get(1) {
            Some(token) if token.kind.is_name() => local = Some(ident_of(inp, *token)),
            Some(token) if token.kind == K::Mut => {}
            // It may have been any.
            _ => names.push(Name::default()),
        }
    }
    let leaves = matches!(first.kind, K::Return | K::Break | K::Continue);
    make(inp, first, first.end, StmtKind::Unread { names, leaves, local })
}

/// Whether `skipped`, which failed at `at` and is followed by `next`, may have begun or ended a block.
fn leaves_doubt(skipped: &[Token], at: Token, next: Token) -> bool {
    let is_brace = |kind| matches!(kind, K::LBrace | K::RBrace | K::Eof);
    let has_block =
        |t: &Token| matches!(t.kind, K::If | K::Else | K::While | K::For | K::Do | K::Switch | K::Try | K::Fn);
    let begins_block = skipped.first().is_some_and(|t| t.kind == K::LBrace);
    begins_block || is_brace(at.kind) || is_brace(next.kind) || skipped.iter().take(LOOK_AHEAD).any(has_block)
}

/// An expression of a statement; one with a lexical error in or behind it counts as unread.
fn whole(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let mut value = expr(inp, nb)?;
    let next = peek(inp).start;
    if inp.state().holds_lexical(value.span.start, next) {
        value.kind = ExprKind::Unread;
        inp.state().failures += 1;
    }
    Ok(value)
}

fn make(inp: &mut Input<'_, '_>, first: Token, end: u32, kind: StmtKind) -> Stmt {
    Stmt { kind, span: inp.state().span(first.start, end) }
}

fn statement(inp: &mut Input<'_, '_>) -> Res<Stmt> {
    let first = peek(inp);
    match first.kind {
        K::Let => let_statement(inp),
        K::If => if_statement(inp),
        K::While => {
            let _ = bump(inp);
            let cond = whole(inp, true)?;
            let body = nested(inp, block)?;
            let end = body.span.end;
            Ok(make(inp, first, end, StmtKind::While { cond, body }))
        }
        K::For => {
            let _ = bump(inp);
            let var = name(inp, "the name of the loop variable")?;
            let second = if eat(inp, K::Comma) { Some(name(inp, "the name of the value")?) } else { None };
            let _ = expect(inp, K::In, "`in`")?;
            let iter = whole(inp, true)?;
            let body = nested(inp, block)?;
            let end = body.span.end;
            Ok(make(inp, first, end, StmtKind::For { first: var, second, iter, body }))
        }
        K::Do => {
            let _ = bump(inp);
            let body = nested(inp, block)?;
            skip_newlines(inp);
            let _ = expect(inp, K::While, "`while` after the block of a `do`")?;
            let cond = whole(inp, false)?;
            let end = cond.span.end;
            end_of_statement(inp, END)?;
            Ok(make(inp, first, end, StmtKind::DoWhile { body, cond }))
        }
        K::Return => {
            let _ = bump(inp);
            let value = match peek(inp).kind {
                K::Nl | K::Semi | K::RBrace | K::Eof | K::HoleClose | K::EscClose => None,
                _ => Some(whole(inp, false)?),
            };
            let end = value.as_ref().map_or(first.end, |v| v.span.end);
            end_of_statement(inp, END)?;
            Ok(make(inp, first, end, StmtKind::Return(value)))
        }
        K::Break | K::Continue => {
            let _ = bump(inp);
            end_of_statement(inp, END)?;
            let kind = if first.kind == K::Break { StmtKind::Break } else { StmtKind::Continue };
            Ok(make(inp, first, first.end, kind))
        }
        K::Fn | K::Class | K::Interface | K::Typedef | K::Const | K::Use | K::Using | K::Type | K::Pub => {
            inner_declaration(inp, first)
        }
        K::Else | K::Catch | K::Case | K::Default | K::RParen | K::RBracket | K::Semi | K::Comma | K::Colon => {
            fail(inp, "a statement")
        }
        _ => expression_statement(inp),
    }
}

fn inner_declaration(inp: &mut Input<'_, '_>, first: Token) -> Res<Stmt> {
    let span = span_of(inp, first);
    let found = inp.state().describe(first);
    let diagnostic = Diagnostic::error(101, span, format!("expected a statement, found {found}"))
        .label("a declaration cannot stand inside a block")
        .note("functions, classes, types, constants and `use` are declared at the top level of a file")
        .help(match first.kind {
            K::Const => "write `let name = value`, or move the constant out of the block",
            _ => "move the declaration out of the block; a `}` before it may be missing",
        });
    special(first, diagnostic)
}

fn let_statement(inp: &mut Input<'_, '_>) -> Res<Stmt> {
    let first = bump(inp);
    let name = name(inp, "the name of the local")?;
    let ty = if eat(inp, K::Colon) { Some(ty(inp)?) } else { None };
    // `let m: map<K, V>= {}` ends its type with the head of a `>=`.
    let _ = expect(inp, K::Assign, if ty.is_some() { "`=`" } else { "`=` or `:` and a type" })?;
    let value = whole(inp, false)?;
    let end = value.span.end;
    end_of_statement(inp, END)?;
    Ok(make(inp, first, end, StmtKind::Let { name, ty, value }))
}

fn if_statement(inp: &mut Input<'_, '_>) -> Res<Stmt> {
    let first = peek(inp);
    let mut arms = Vec::new();
    let mut otherwise = None;
    loop {
        let _ = expect(inp, K::If, "`if`")?;
        let cond = whole(inp, true)?;
        let body = nested(inp, block)?;
        arms.push((cond, body));
        if past_newlines(inp) != K::Else {
            break;
        }
        skip_newlines(inp);
        let _ = bump(inp);
        skip_newlines(inp);
        if peek(inp).kind != K::If {
            if peek(inp).kind != K::LBrace {
                return fail(inp, "`{` or `if` after `else`");
            }
            otherwise = Some(nested(inp, block)?);
            break;
        }
    }
    let end = match (&otherwise, arms.last()) {
        (Some(block), _) | (None, Some((_, block))) => block.span.end,
        (None, None) => first.end,
    };
    Ok(make(inp, first, end, StmtKind::If(If { arms, otherwise })))
}

fn expression_statement(inp: &mut Input<'_, '_>) -> Res<Stmt> {
    let first = peek(inp);
    let target = whole(inp, false)?;
    let op = match peek(inp).kind {
        K::Assign => None,
        K::PlusEq => Some(BinOp::Add),
        K::MinusEq => Some(BinOp::Sub),
        K::StarEq => Some(BinOp::Mul),
        K::SlashEq => Some(BinOp::Div),
        K::PercentEq => Some(BinOp::Rem),
        _ => {
            let end = target.span.end;
            end_of_statement(inp, END)?;
            return Ok(make(inp, first, end, StmtKind::Expr(target)));
        }
    };
    let _ = bump(inp);
    let value = whole(inp, false)?;
    let end = value.span.end;
    end_of_statement(inp, END)?;
    let kind = match op {
        Some(op) => StmtKind::OpAssign { target, op, value },
        None => StmtKind::Assign { target, value },
    };
    Ok(make(inp, first, end, kind))
}

/// Tokens looked at beyond the end of a line in search of a closing bracket.
const LOOK_AHEAD: usize = 400;

/// From the failure, with the brackets open there, on to the end of the statement that began with `first`.
fn recover(inp: &mut Input<'_, '_>, first: Token, open: Open) {
    if inp.state().gave_up() {
        while bump(inp).kind != K::Eof {}
        return;
    }
    let at = peek(inp);
    if starts_outer_declaration(inp, at) && after_line_break(inp, first, at) {
        return;
    }
    if open.braces == 0 {
        match at.kind {
            K::Nl | K::Semi if open.parens == 0 => {
                let _ = bump(inp);
                return;
            }
            K::RBrace | K::HoleClose | K::EscClose | K::Eof => return,
            // The line before was left incomplete.
            kind if is_statement_word(kind) && after_line_break(inp, first, at) => return,
            _ => {}
        }
    }
    let count = end_of_broken(rest(inp), open);
    for _ in 0..count {
        let _ = bump(inp);
    }
}

fn after_line_break(inp: &mut Input<'_, '_>, first: Token, at: Token) -> bool {
    at.start > first.start && inp.state().starts_line(at.start)
}

/// Number of tokens up to and including the end of the statement.
fn end_of_broken(tokens: &[Token], mut open: Open) -> usize {
    // First line break inside open parentheses only: where to stop if they turn out not to be closed.
    let mut fallback = None;
    for (i, token) in tokens.iter().enumerate() {
        if open.braces == 0 {
            match token.kind {
                K::Nl | K::Semi if open.parens == 0 => return i + 1,
                K::Nl => {
                    let _ = fallback.get_or_insert(i + 1);
                    let next = tokens.get(i + 1).map_or(K::Eof, |t| t.kind);
                    if is_statement_word(next) {
                        return fallback.unwrap_or(i + 1);
                    }
                }
                _ => {}
            }
        }
        open.pass(token.kind);
        open.parens = open.parens.max(0);
        if open.braces < 0 && open.parens == 0 {
            // All that was opened is closed: the statement reaches the block's end.
            return i;
        }
        if token.kind == K::Eof || open.braces < 0 || fallback.is_some_and(|f| i > f + LOOK_AHEAD) {
            return fallback.unwrap_or(i);
        }
    }
    fallback.unwrap_or(tokens.len())
}

/// Words that begin a statement and nothing else.
pub(crate) fn is_statement_word(kind: K) -> bool {
    matches!(kind, K::Let | K::If | K::While | K::For | K::Do | K::Return | K::Break | K::Continue)
}
