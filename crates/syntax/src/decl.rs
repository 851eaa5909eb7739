//! Declarations, with chumsky's combinators over leaf parsers, and recovery to the next declaration word.

use chumsky::prelude::*;
use diagnostics::Diagnostic;
use diagnostics::span::Span;

use crate::ast::{
    Annotation, Const, Decl, File, Fn, Ident, Interface, Literal, Mode, Name, Param, Record, Sig, Test, Type, TypeKind,
    Union, Use, Variant,
};
use crate::class::{annotation, class, field};
use crate::expr::expr;
use crate::state::{
    Extra, Input, Res, Tokens, ahead, bump, declared_names, eat, end_of_statement, expect, fail, ident_of, peek,
    quoted, rest, skip_newlines, span_of, special, text,
};
use crate::stmt::{block, late_brace};
use crate::token::{K, Token};
use crate::types::{double_nullable, ty};
use crate::words::{doctrine_error, foreign_declaration};

/// Tokens of a broken union that are looked at for names.
const UNREAD_MAX: usize = 400;

// ---- leaves ----

pub(crate) fn token<'s>(kind: K, wanted: &'static str) -> impl Parser<'s, Tokens<'s>, Token, Extra<'s>> + Copy {
    custom(move |inp: &mut Input<'s, '_>| expect(inp, kind, wanted))
}

fn name<'s>(wanted: &'static str) -> impl Parser<'s, Tokens<'s>, Ident, Extra<'s>> + Copy {
    custom(move |inp: &mut Input<'s, '_>| crate::state::name(inp, wanted))
}

fn newlines<'s>() -> impl Parser<'s, Tokens<'s>, (), Extra<'s>> + Copy {
    custom(|inp: &mut Input<'s, '_>| {
        skip_newlines(inp);
        Ok(())
    })
}

fn end<'s>(wanted: &'static str) -> impl Parser<'s, Tokens<'s>, (), Extra<'s>> + Copy {
    custom(move |inp: &mut Input<'s, '_>| end_of_statement(inp, wanted))
}

fn a_type<'s>() -> impl Parser<'s, Tokens<'s>, Type, Extra<'s>> + Copy {
    custom(|inp: &mut Input<'s, '_>| ty(inp))
}

// ---- declarations ----

fn use_decl<'s>() -> impl Parser<'s, Tokens<'s>, Use, Extra<'s>> {
    token(K::Using, "`using`")
        .or(token(K::Use, "`use`"))
        .then(name("the name of a module").separated_by(token(K::Slash, "`/`")).at_least(1).collect::<Vec<_>>())
        .then_ignore(end("`/` or the end of the line"))
        .map_with(|(word, path), extra| {
            let first = extra.state().0.span_of(word);
            let span = path.last().map_or(first, |last: &Ident| first.to(last.span));
            Use { path, extensions: word.kind == K::Using, span }
        })
}

/// `const NAME = literal`, after the modifiers.
pub(crate) fn const_decl<'s>(is_pub: bool, is_static: bool) -> impl Parser<'s, Tokens<'s>, Const, Extra<'s>> {
    token(K::Const, "`const`")
        .ignore_then(name("the name of the constant"))
        .then_ignore(token(K::Assign, "`=` and a literal"))
        .then(custom(|inp: &mut Input<'s, '_>| const_literal(inp)))
        .then_ignore(end("the end of the line"))
        .map(move |(name, (value, value_span))| Const { is_pub, is_static, name, value, value_span })
}

fn const_literal(inp: &mut Input<'_, '_>) -> Res<(Literal, Span)> {
    let first = peek(inp);
    let starts = matches!(
        first.kind,
        K::Minus | K::Int | K::Float | K::Str | K::Raw | K::BadStr | K::StrOpen | K::RawOpen | K::True | K::False
    );
    if !starts {
        return fail(inp, "a literal");
    }
    let value = expr(inp, false)?;
    match crate::class::literal_of(&value) {
        Some(literal) => Ok((literal, value.span)),
        None => {
            let source = inp.state().source;
            let found = quoted(source.get(value.span.start as usize..value.span.end as usize).unwrap_or_default());
            let diagnostic = Diagnostic::error(101, value.span, format!("expected a literal, found {found}"))
                .label("not a literal")
                .note("a constant is a number, a text without holes, `true` or `false`, known while compiling")
                .help("write the value itself, or a function that computes it");
            special(first, diagnostic)
        }
    }
}

fn param<'s>() -> impl Parser<'s, Tokens<'s>, Param, Extra<'s>> + Copy {
    token(K::Mut, "`mut`")
        .or(token(K::Take, "`take`"))
        .or_not()
        .then(name("a parameter name or `)`"))
        .then_ignore(token(K::Colon, "`:` and the parameter's type"))
        .then(a_type())
        .map(|((mode, name), ty)| {
            let mode = match mode.map(|t| t.kind) {
                Some(K::Mut) => Mode::Mut,
                Some(_) => Mode::Take,
                None => Mode::Borrow,
            };
            Param { mode, name, ty }
        })
}

/// From `fn` up to the result type. Names may be reserved words in interfaces only: `spawn` is a member of `proc`.
fn signature<'s>(in_interface: bool) -> impl Parser<'s, Tokens<'s>, Sig, Extra<'s>> {
    let sig_name = custom(move |inp: &mut Input<'s, '_>| {
        if in_interface && peek(inp).kind == K::Spawn {
            let word = bump(inp);
            return Ok(ident_of(inp, word));
        }
        crate::state::name(inp, "the name of the function")
    });
    let params = param()
        .then_ignore(newlines())
        .separated_by(token(K::Comma, "`,`").then_ignore(newlines()))
        .collect::<Vec<_>>();
    token(K::Fn, "`fn`")
        .then(sig_name)
        .then_ignore(token(K::LParen, "`(` and the parameters"))
        .then_ignore(newlines())
        .then(params)
        .then(token(K::RParen, "`,` or `)`"))
        .then(custom(|inp: &mut Input<'s, '_>| result_type(inp)))
        .map_with(move |((((word, name), params), close), ret), extra| {
            let state = &extra.state().0;
            let first = state.span_of(word);
            let end = ret.as_ref().map_or_else(|| state.span_of(close), |t: &Type| t.span);
            let doc = if in_interface { doc_above(state.source, word.start) } else { String::new() };
            Sig { name, params, ret, doc, span: first.to(end) }
        })
}

/// `[ "?" ] [ "->" type ]`.
fn result_type(inp: &mut Input<'_, '_>) -> Res<Option<Type>> {
    let mark = peek(inp);
    let nullable = eat(inp, K::Question);
    if nullable && peek(inp).kind != K::Arrow {
        return fail(inp, "`->` after the `?` of a nullable result");
    }
    if !eat(inp, K::Arrow) {
        return Ok(None);
    }
    if nullable && peek(inp).kind == K::Question {
        return double_nullable(inp);
    }
    let inner = ty(inp)?;
    if !nullable {
        return Ok(Some(inner));
    }
    let span = span_of(inp, mark).to(inner.span);
    Ok(Some(Type { kind: TypeKind::Nullable(Box::new(inner)), span }))
}

fn interface_decl<'s>(is_pub: bool, doc: String) -> impl Parser<'s, Tokens<'s>, Interface, Extra<'s>> {
    let sig_end = custom(|inp: &mut Input<'s, '_>| match peek(inp).kind {
        K::Nl | K::RBrace => Ok(()),
        _ => fail(inp, "a result type, or the end of the line"),
    });
    token(K::Interface, "`interface`")
        .then(name("the name of the interface"))
        .then_ignore(custom(|inp: &mut Input<'s, '_>| no_clause(inp)))
        .then_ignore(token(K::LBrace, "`{`"))
        .then_ignore(newlines())
        .then(signature(true).then_ignore(sig_end).then_ignore(newlines()).repeated().collect::<Vec<_>>())
        .then(token(K::RBrace, "a signature or `}`"))
        .map_with(move |(((word, name), sigs), close), extra| {
            let span = extra.state().0.span(word.start, close.end);
            Interface { is_pub, name, sigs, doc: doc.clone(), span }
        })
}

fn record_decl<'s>(is_pub: bool) -> impl Parser<'s, Tokens<'s>, Record, Extra<'s>> {
    let separators = custom(|inp: &mut Input<'s, '_>| {
        while matches!(peek(inp).kind, K::Nl | K::Comma) {
            inp.skip();
        }
        Ok(())
    });
    let member = custom(|inp: &mut Input<'s, '_>| {
        let mark = peek(inp);
        let nullable = eat(inp, K::Question);
        let mut member = field(inp, false, mark)?;
        if nullable {
            if matches!(member.ty.kind, TypeKind::Nullable(_)) {
                let diagnostic = Diagnostic::error(101, member.ty.span, "the field is nullable already")
                    .label("a second `?`")
                    .note("`?name: T` is the same as `name: ?T`")
                    .help("write one `?`");
                return special(mark, diagnostic);
            }
            let span = span_of(inp, mark).to(member.ty.span);
            member.ty = Type { kind: TypeKind::Nullable(Box::new(member.ty)), span };
        }
        Ok(member)
    });
    token(K::Typedef, "`typedef`")
        .then(name("the name of the record"))
        .then_ignore(token(K::Assign, "`=`"))
        .then_ignore(token(K::LBrace, "`{` and the fields"))
        .then_ignore(separators)
        .then(member.then_ignore(separators).repeated().collect::<Vec<_>>())
        .then(token(K::RBrace, "a field or `}`"))
        .map_with(move |(((word, name), fields), close), extra| {
            let span = extra.state().0.span(word.start, close.end);
            Record { is_pub, name, fields, span }
        })
}

type Payload = Option<Vec<(Ident, Type)>>;

fn union_decl<'s>(is_pub: bool) -> impl Parser<'s, Tokens<'s>, Union, Extra<'s>> {
    let payload = name("the name of a payload field or `)`")
        .then_ignore(token(K::Colon, "`:` and the field's type"))
        .then(a_type())
        .separated_by(token(K::Comma, "`,`"))
        .collect::<Vec<_>>()
        .delimited_by(token(K::LParen, "`(`"), token(K::RParen, "`,` or `)`"));
    let end_offset = custom(|inp: &mut Input<'s, '_>| Ok(peek(inp).start));
    let variant = name("the name of a variant").then(payload.or_not()).then(end_offset).map_with(
        |((name, fields), end): ((Ident, Payload), u32), extra| {
            let has_payload = fields.is_some();
            let span = if has_payload { extra.state().0.span(name.span.start, end) } else { name.span };
            Variant { name, fields: fields.unwrap_or_default(), span }
        },
    );
    token(K::Type, "`type`")
        .then(name("the name of the union"))
        .then_ignore(token(K::Assign, "`=`"))
        .then(variant.separated_by(token(K::Pipe, "`|`").then_ignore(newlines())).at_least(1).collect::<Vec<_>>())
        .then_ignore(end("`|` or the end of the line"))
        .map_with(move |((word, name), variants), extra| {
            let first = extra.state().0.span_of(word);
            let span = variants.last().map_or(first, |v: &Variant| first.to(v.span));
            Union { is_pub, name, variants, span }
        })
}

fn test_decl(inp: &mut Input<'_, '_>) -> Res<Test> {
    let word = bump(inp);
    let name = expect(inp, K::Str, "a text without holes: the name of the test")?;
    let value = match crate::texts::quoted(text(inp, name)) {
        crate::ast::ExprKind::Text(pieces) => pieces.into_iter().find_map(|p| match p {
            crate::ast::Piece::Text(t) => Some(t),
            _ => None,
        }),
        _ => None,
    };
    let name_span = span_of(inp, name);
    let body = block(inp)?;
    let span = span_of(inp, word).to(body.span);
    Ok(Test { name: value.unwrap_or_default(), name_span, body, span })
}

/// A function or method, from `fn`, after its modifiers.
pub(crate) fn fn_decl(inp: &mut Input<'_, '_>, is_pub: bool, is_static: bool) -> Res<Fn> {
    let sig = inp.parse(signature(false))?;
    let wanted = if sig.ret.is_some() { "`{` and the body" } else { "`->` and a type, or `{` and the body" };
    late_brace(inp, wanted);
    if peek(inp).kind != K::LBrace {
        return fail(inp, wanted);
    }
    let body = block(inp)?;
    let span = sig.span.to(body.span);
    Ok(Fn { is_pub, is_static, sig, body, span })
}

/// At `inline`: refused in front of `fn`, and read over.
pub(crate) fn skip_inline(inp: &mut Input<'_, '_>, wanted: &'static str) -> Res<()> {
    let at = peek(inp);
    if ahead(inp, 1) != K::Fn {
        return fail(inp, wanted);
    }
    let function = rest(inp).get(2).copied().filter(|t| t.kind.is_name());
    let shown = match function {
        Some(name) => String::from_utf8_lossy(text(inp, name)).into_owned(),
        None => "…".to_owned(),
    };
    let span = span_of(inp, at);
    let diagnostic = Diagnostic::error(103, span, format!("`inline` on function `{shown}`"))
        .label("this word is refused")
        .note("the compiler decides by itself what to inline")
        .help(format!("write `fn {shown}`"));
    inp.state().emit(diagnostic);
    let _ = bump(inp);
    Ok(())
}

/// `extends` and `implements` behind the name of a class or interface.
pub(crate) fn no_clause(inp: &mut Input<'_, '_>) -> Res<()> {
    let at = peek(inp);
    if !matches!(at.kind, K::Extends | K::Implements) {
        return Ok(());
    }
    let span = span_of(inp, at);
    let word = String::from_utf8_lossy(text(inp, at));
    special(at, doctrine_error(span, &word))
}

/// The `--` lines directly above the line on which the declaration at `offset` is the first thing.
fn doc_above(source: &[u8], offset: u32) -> String {
    let before = source.get(..offset as usize).unwrap_or_default();
    let Some(line_start) = before.iter().rposition(|b| !matches!(b, b' ' | b'\t')) else { return String::new() };
    let mut lines = Vec::new();
    let mut end = line_start;
    if before.get(end) != Some(&b'\n') {
        return String::new();
    }
    loop {
        let above = source.get(..end).unwrap_or_default();
        let start = above.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let line = above.get(start..).unwrap_or_default().trim_ascii();
        let Some(comment) = line.strip_prefix(b"--") else { break };
        lines.push(String::from_utf8_lossy(comment.strip_prefix(b" ").unwrap_or(comment)).into_owned());
        if start == 0 {
            break;
        }
        end = start - 1;
    }
    lines.reverse();
    lines.join("\n")
}

// ---- file ----

/// The whole token stream. Never fails: what could not be read is reported and left out.
pub(crate) fn file<'s>() -> impl Parser<'s, Tokens<'s>, File, Extra<'s>> {
    custom(|inp: &mut Input<'s, '_>| {
        let (mut decls, mut unread) = (Vec::new(), Vec::new());
        loop {
            skip_newlines(inp);
            let first = peek(inp);
            if first.kind == K::Eof {
                inp.skip();
                return Ok(File { decls, unread, ..File::default() });
            }
            let start = inp.save();
            let tokens = rest(inp);
            let state = inp.state();
            state.depth = 0;
            (state.anchor, state.head) = (first.start, first.start);
            state.column = state.column_of(first.start);
            let is_word = is_declaration_word(inp, first, K::Nl);
            let state = inp.state();
            state.braces_doubtful &= !is_word;
            if let Err(failure) = declaration(inp, &mut decls) {
                let at = failure.at;
                let state = inp.state();
                if is_word && (at.kind != K::Eof || !state.braces_doubtful) {
                    state.braces_doubtful = true;
                    state.report(failure);
                } else {
                    // The block before ended too early, or never.
                    decls.last_mut().into_iter().for_each(mark_broken);
                    if state.braces_doubtful {
                        state.pass_over(at);
                    } else {
                        state.report(failure);
                    }
                }
                inp.rewind(start);
                recover(inp, at);
                let length = tokens.len() - rest(inp).len();
                unread.extend(names_of_unread(inp, tokens.get(..length).unwrap_or_default()));
            }
        }
    })
}

/// Modifiers in front of a declaration.
#[derive(Default)]
struct Modifiers {
    is_pub: Option<Token>,
    annotations: Vec<Annotation>,
}

fn modifiers(inp: &mut Input<'_, '_>) -> Res<Modifiers> {
    let mut found = Modifiers::default();
    loop {
        let at = peek(inp);
        match at.kind {
            K::Pub if found.is_pub.is_some() => {
                let span = span_of(inp, at);
                let diagnostic = Diagnostic::error(101, span, "a second `pub`")
                    .label("the declaration is exported already")
                    .note("`pub` stands once, before or after the annotations")
                    .help("remove one `pub`");
                return special(at, diagnostic);
            }
            K::Pub => {
                found.is_pub = Some(bump(inp));
            }
            K::At => {
                found.annotations.push(annotation(inp)?);
                skip_newlines(inp);
            }
            _ => return Ok(found),
        }
    }
}

fn declaration(inp: &mut Input<'_, '_>, decls: &mut Vec<Decl>) -> Res<()> {
    let start = peek(inp).start;
    let Modifiers { is_pub, annotations } = modifiers(inp)?;
    let exported = is_pub.is_some();
    let at = peek(inp);
    let is_class = at.kind == K::Class || (at.kind == K::Type && ahead(inp, 2) != K::Assign);
    if !is_class && let Some(first) = annotations.first() {
        let diagnostic = Diagnostic::error(
            101,
            first.span,
            format!("annotation `@{}` before something else than a class", first.name.name),
        )
        .label("only a class can be annotated here")
        .note("annotations stand before `class` or `type`, and behind the type of a field")
        .help("remove the annotation");
        return special(at, diagnostic);
    }
    let decl = match at.kind {
        K::Use | K::Using | K::Test if exported => {
            return fail(inp, "a declaration that can be exported after `pub`");
        }
        K::Use | K::Using => Decl::Use(inp.parse(use_decl())?),
        K::Const => Decl::Const(inp.parse(const_decl(exported, false))?),
        K::Fn => Decl::Fn(fn_decl(inp, exported, false)?),
        K::Interface => {
            let doc = doc_above(inp.state().source, start);
            Decl::Interface(inp.parse(interface_decl(exported, doc))?)
        }
        K::Typedef => Decl::Record(inp.parse(record_decl(exported))?),
        K::Class | K::Type if is_class => Decl::Class(class(inp, exported, annotations)?),
        K::Type => Decl::Union(inp.parse(union_decl(exported))?),
        K::Test if ahead(inp, 1) != K::Assign => Decl::Test(test_decl(inp)?),
        K::Inline => {
            skip_inline(inp, "a declaration")?;
            Decl::Fn(fn_decl(inp, exported, false)?)
        }
        kind if kind.is_doctrine() => {
            let span = span_of(inp, at);
            let word = String::from_utf8_lossy(text(inp, at));
            return special(at, doctrine_error(span, &word));
        }
        _ => return fail(inp, "a declaration"),
    };
    decls.push(decl);
    Ok(())
}

/// What the declaration does at its end is not known.
fn mark_broken(decl: &mut Decl) {
    match decl {
        Decl::Fn(f) => f.body.is_broken = true,
        Decl::Test(test) => test.body.is_broken = true,
        Decl::Class(class) => {
            if let Some(last) = class.methods.last_mut() {
                last.body.is_broken = true;
            }
        }
        Decl::Use(_) | Decl::Const(_) | Decl::Interface(_) | Decl::Record(_) | Decl::Union(_) => {}
    }
}

/// Of a union, in whatever form, the variants belong to the names too, and so do functions without their `fn`.
fn names_of_unread(inp: &mut Input<'_, '_>, tokens: Tokens<'_>) -> Vec<Name> {
    let mut names = declared_names(inp, tokens);
    for next in tokens.windows(3).take(UNREAD_MAX) {
        if let [line, word, open] = next
            && (line.kind, open.kind) == (K::Nl, K::LParen)
            && word.kind.is_name()
        {
            names.push(ident_of(inp, *word).name);
        }
    }
    let is_union = tokens.iter().find(|t| t.kind != K::Pub).is_some_and(|t| t.kind == K::Type)
        || names.first().is_some_and(|n| matches!(n.as_str(), "enum" | "union" | "variant" | "import" | "from"));
    if is_union {
        for token in tokens.iter().take(UNREAD_MAX).filter(|t| t.kind.is_name()) {
            names.push(ident_of(inp, *token).name);
        }
    }
    names
}

/// From the declaration's first token: moves behind the failure and on to the next declaration word at depth 0, or to
/// one that starts a line no deeper than the broken declaration did.
fn recover(inp: &mut Input<'_, '_>, at: Token) {
    if inp.state().gave_up() {
        while peek(inp).kind != K::Eof {
            inp.skip();
        }
        return;
    }
    let column = inp.state().column;
    let mut depth = 0usize;
    // Inside of parentheses, and on a line that is indented deeper, words begin no declaration.
    let mut parens = 0usize;
    let mut last = K::Nl;
    let mut first = true;
    // What follows a refused word on its line belongs to it.
    let mut same_line = at.kind.is_doctrine();
    loop {
        let token = peek(inp);
        if token.kind == K::Eof {
            return;
        }
        let behind = token.start >= at.start && !(first && token.start == at.start);
        same_line &= !(behind && token.kind == K::Nl);
        if behind && !same_line && is_declaration_word(inp, token, last) {
            let inner = inp.state().indent_of(token.start) > column;
            let is_outer = depth == 0 && parens == 0;
            if !inner && (is_outer || (last == K::Nl && token.kind != K::Ident)) {
                return;
            }
        }
        match token.kind {
            K::LParen => parens += 1,
            K::RParen => parens = parens.saturating_sub(1),
            K::LBrace | K::HoleOpen | K::EscOpen => depth += 1,
            K::RBrace | K::HoleClose | K::EscClose => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = token.kind;
        first = false;
        inp.skip();
    }
}

/// Whether a declaration begins with `token`, which follows a token of kind `last`.
fn is_declaration_word(inp: &mut Input<'_, '_>, token: Token, last: K) -> bool {
    if matches!(last, K::Fn | K::Class | K::Interface | K::Typedef | K::Const | K::Type | K::Use | K::Using) {
        // A reserved word where a name should stand.
        return false;
    }
    match token.kind {
        K::Fn | K::Class | K::Interface | K::Typedef | K::Const | K::Use | K::Using | K::Pub => true,
        K::Type => last == K::Nl,
        K::At | K::Inline => last == K::Nl,
        K::Test => ahead(inp, 1) == K::Str,
        K::Ident => last == K::Nl && is_foreign_declaration(inp, token),
        _ => false,
    }
}

/// `struct Name {`, `def name(`.
fn is_foreign_declaration(inp: &mut Input<'_, '_>, word: Token) -> bool {
    let is_head = ahead(inp, 1).is_name() && matches!(ahead(inp, 2), K::LBrace | K::LParen);
    is_head && std::str::from_utf8(text(inp, word)).is_ok_and(|word| foreign_declaration(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::doc_above;

    #[test]
    fn doc_lines_are_those_directly_above() {
        let source = b"-- file\n\n-- one\n--   two\n  fn f()";
        assert_eq!(doc_above(source, 26), "one\n  two");
        assert_eq!(doc_above(b"-- a\ninterface", 5), "a");
        assert_eq!(doc_above(b"x fn", 2), "");
    }
}
