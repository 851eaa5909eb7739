//! Queries: `from x in C where … group … order by … skip … take … select …`. Every clause but `select` is read with
//! braces off.

use diagnostics::Diagnostic;

use crate::ast::{Expr, ExprKind, Query};
use crate::expr::sub;
use crate::state::{Input, Res, bump, eat, expect, name, past_newlines, peek, skip_newlines, span_of, special, text};
use crate::token::K;

/// At `from`, which is followed by a name and `in`.
pub(crate) fn query(inp: &mut Input<'_, '_>, nb: bool) -> Res<Expr> {
    let first = bump(inp);
    let var = name(inp, "the name of the row")?;
    let _ = expect(inp, K::In, "`in`")?;
    let source = sub(inp, true)?;
    let mut filters = Vec::new();
    while clause(inp, K::Where) {
        filters.push(sub(inp, true)?);
    }
    let group = if past_newlines(inp) == K::Group { Some(group(inp)?) } else { None };
    let mut order = Vec::new();
    if clause(inp, K::Order) {
        skip_newlines(inp);
        need(inp, K::By, "`by` after `order`", "an order is written `order by key desc, key`")?;
        loop {
            let key = sub(inp, true)?;
            let descending = clause(inp, K::Desc);
            order.push((key, descending));
            if !clause(inp, K::Comma) {
                break;
            }
            skip_newlines(inp);
        }
    }
    let skip = if clause(inp, K::Skip) { Some(sub(inp, true)?) } else { None };
    let take = if clause(inp, K::Take) { Some(sub(inp, true)?) } else { None };
    if past_newlines(inp) == K::Select {
        skip_newlines(inp);
    }
    let at = peek(inp);
    let help = match (at.kind, text(inp, at)) {
        (K::Assign, _) => "write `==` to compare",
        (_, b"orderby") => "write `order by`, in two words",
        (_, b"limit") => "write `take`",
        (_, b"offset") => "write `skip`",
        (_, b"asc" | b"ascending") => "leave it out: a key without `desc` ascends",
        (_, b"descending") => "write `desc`",
        (_, b"is") => "write `==` to compare, also with nil",
        (_, b"like") => "write `starts_with(v.column, \"…\")` or `index_of(v.column, \"…\") >= 0`",
        (_, b"join") => "follow a `ref` column: `v.ref_column.column`",
        (K::Comma, _) => "write `and` between conditions",
        _ => "a query ends with `select`, after its clauses in the order `where`, `order by`, `skip`, `take`",
    };
    need(inp, K::Select, "`select`", help)?;
    let select = sub(inp, nb)?;
    let span = span_of(inp, first).to(select.span);
    Ok(Expr { kind: ExprKind::Query(Box::new(Query { var, source, filters, group, order, skip, take, select })), span })
}

/// Eats `kind`, also after line breaks.
fn clause(inp: &mut Input<'_, '_>, kind: K) -> bool {
    if past_newlines(inp) != kind {
        return false;
    }
    skip_newlines(inp);
    eat(inp, kind)
}

fn group(inp: &mut Input<'_, '_>) -> Res<diagnostics::span::Span> {
    skip_newlines(inp);
    let first = bump(inp);
    let start = span_of(inp, first);
    drop(sub(inp, true)?);
    skip_newlines(inp);
    need(inp, K::By, "`by` after `group`", "a group is written `group value by key into name`")?;
    drop(sub(inp, true)?);
    skip_newlines(inp);
    need(inp, K::Into, "`into` after the key of `group`", "a group is written `group value by key into name`")?;
    let into = name(inp, "the name of the group")?;
    Ok(start.to(into.span))
}

fn need(inp: &mut Input<'_, '_>, kind: K, wanted: &str, help: &str) -> Res<()> {
    let at = peek(inp);
    if at.kind == kind {
        let _ = bump(inp);
        return Ok(());
    }
    let span = span_of(inp, at);
    let found = inp.state().describe(at);
    let diagnostic = Diagnostic::error(101, span, format!("expected {wanted} of the query, found {found}"))
        .label(format!("expected {wanted}"))
        .note("a query names its rows, filters and orders them, and says what to select")
        .help(help);
    special(at, diagnostic)
}
