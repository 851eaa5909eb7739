//! What all parser functions share: the chumsky input type, the state that travels with it, failures, reporting and
//! the small token helpers. Functions return `Res`; a `Failure` is turned into one diagnostic where recovery happens.

use std::borrow::Cow;

use chumsky::DefaultExpected;
use chumsky::error::Error;
use chumsky::extra;
use chumsky::input::InputRef;
use chumsky::inspector::SimpleState;
use chumsky::label::LabelError;
use chumsky::span::SimpleSpan;
use chumsky::util::MaybeRef;
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};

use crate::advice::{Advice, Found, advice};
use crate::ast::{Ident, Name};
use crate::token::{K, Token};
use crate::{MAX_DIAGNOSTICS, MAX_NESTING};

pub(crate) type Tokens<'s> = &'s [Token];
pub(crate) type Extra<'s> = extra::Full<Failure, SimpleState<State<'s>>, ()>;
pub(crate) type Input<'s, 'p> = InputRef<'s, 'p, Tokens<'s>, Extra<'s>>;
pub(crate) type Res<T> = Result<T, Failure>;

/// Why parsing stopped: at token `at`, where `wanted` was expected, or for the reason in `special`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub at: Token,
    pub wanted: &'static str,
    pub special: Option<Box<Diagnostic>>,
}

impl<'s> Error<'s, Tokens<'s>> for Failure {
    /// The failure that got further wins; at one place the later one, whose expectation is the wider.
    fn merge(self, other: Self) -> Self {
        let keep = self.at.start > other.at.start || (self.at.start == other.at.start && self.special.is_some());
        if keep { self } else { other }
    }
}

impl<'s> LabelError<'s, Tokens<'s>, DefaultExpected<'s, Token>> for Failure {
    /// Only reached through primitives of chumsky, which this parser does not use for tokens.
    fn expected_found<E: IntoIterator<Item = DefaultExpected<'s, Token>>>(
        _expected: E,
        found: Option<MaybeRef<'s, Token>>,
        _span: SimpleSpan<usize>,
    ) -> Self {
        let end = Token { kind: K::Eof, start: u32::MAX, end: u32::MAX };
        Failure { at: found.map_or(end, |t| *t), wanted: "something else", special: None }
    }
}

/// Tokens of a broken statement or declaration that are looked at for names.
const DECLARED_MAX: usize = 12;

/// Bytes of the source looked at around a place, for messages and recovery.
const CONTEXT: usize = 400;

pub(crate) struct State<'s> {
    pub source: &'s [u8],
    pub file: FileId,
    /// The last token.
    pub eof: Token,
    pub diagnostics: Vec<Diagnostic>,
    /// Offsets of lexical errors, ascending.
    pub lexical: &'s [u32],
    /// How many of them lie in front of what is not yet marked as unread.
    pub lexical_seen: usize,
    /// Current nesting of expressions, types and blocks.
    pub depth: u32,
    /// Where the innermost statement, member, declaration or hole starts.
    pub anchor: u32,
    /// Where the statement, member or declaration being read starts, whatever was read inside of it.
    pub head: u32,
    /// Column offset of the first token of the declaration or member being read.
    pub column: u32,
    /// Offset of the last failure: a second one at the same token is its consequence.
    pub last_failure: u32,
    pub failures: usize,
    /// Braces were opened or closed in what could not be read: which of the later ones belong together is not known.
    /// Ends with the declaration.
    pub braces_doubtful: bool,
    /// Brackets open at the current token.
    pub open: Open,
}

/// Open brackets; holes of texts count as braces. Only differences between two places of one statement mean something.
#[derive(Clone, Copy, Default)]
pub(crate) struct Open {
    pub braces: i64,
    pub parens: i64,
}

impl Open {
    #[inline]
    pub fn pass(&mut self, kind: K) {
        match kind {
            K::LBrace | K::HoleOpen | K::EscOpen => self.braces += 1,
            K::RBrace | K::HoleClose | K::EscClose => self.braces -= 1,
            K::LParen | K::LBracket => self.parens += 1,
            K::RParen | K::RBracket => self.parens -= 1,
            _ => {}
        }
    }

    /// What was opened and not closed since `earlier`.
    pub fn since(self, earlier: Open) -> Open {
        Open { braces: (self.braces - earlier.braces).max(0), parens: (self.parens - earlier.parens).max(0) }
    }
}

impl State<'_> {
    pub fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.file, start, end)
    }

    pub fn span_of(&self, token: Token) -> Span {
        self.span(token.start, token.end)
    }

    /// The source right before `offset`, `CONTEXT` bytes at the most.
    fn before(&self, offset: u32) -> &[u8] {
        let end = offset as usize;
        self.source.get(end.saturating_sub(CONTEXT)..end).unwrap_or_default()
    }

    /// Bytes of the line before `offset`, capped: only compared with other columns.
    pub fn column_of(&self, offset: u32) -> u32 {
        u32::try_from(self.before(offset).iter().rev().take_while(|b| **b != b'\n').count()).unwrap_or(0)
    }

    /// What stands before `offset` on its line, within a short distance.
    pub fn line_before(&self, offset: u32) -> Cow<'_, str> {
        let from = (offset - self.column_of(offset).min(offset)) as usize;
        String::from_utf8_lossy(self.source.get(from..offset as usize).unwrap_or_default())
    }

    /// Only blanks stand before `offset` on its line (looked for within a short distance).
    pub fn starts_line(&self, offset: u32) -> bool {
        let before = self.before(offset).iter().rev().find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        before == Some(&b'\n')
    }

    /// Too many failures: the rest of the file is not looked at.
    pub fn gave_up(&self) -> bool {
        self.failures >= MAX_DIAGNOSTICS
    }

    /// Adds a diagnostic that needs no recovery.
    pub fn emit(&mut self, diagnostic: Diagnostic) {
        self.failures += 1;
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether no line ends between two near offsets.
    pub fn is_one_line(&self, from: u32, to: u32) -> bool {
        let between = self.source.get(from as usize..to as usize).unwrap_or_default();
        between.len() <= CONTEXT && !between.contains(&b'\n')
    }

    /// Blanks at the start of the line of `offset`.
    pub fn indent_of(&self, offset: u32) -> u32 {
        let start = offset - self.column_of(offset).min(offset);
        let line = self.source.get(start as usize..).unwrap_or_default();
        u32::try_from(line.iter().take(CONTEXT).take_while(|b| matches!(b, b' ' | b'\t')).count()).unwrap_or(0)
    }

    fn lexical_between(&self, from: u32, to: u32) -> bool {
        let first = self.lexical.partition_point(|o| *o < from);
        self.lexical.get(first).is_some_and(|o| *o <= to)
    }

    /// Whether a lexical error lies in `from..to` that no expression inside was marked for.
    pub fn holds_lexical(&mut self, from: u32, to: u32) -> bool {
        let first = self.lexical.partition_point(|o| *o < from).max(self.lexical_seen);
        let end = self.lexical.partition_point(|o| *o < to);
        self.lexical_seen = self.lexical_seen.max(end.min(self.lexical.len()));
        first < end
    }

    /// Reports `failure` unless a lexical error in the same statement or an earlier failure explains it.
    pub fn report(&mut self, failure: Failure) {
        let at = failure.at;
        let is_known = self.last_failure == at.start || self.lexical_between(self.anchor, at.end);
        if is_known || self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.pass_over(at);
            return;
        }
        self.last_failure = at.start;
        let diagnostic = self.explain(failure);
        self.emit(diagnostic);
    }

    /// Counts a failure at `at` that an earlier report explains.
    pub fn pass_over(&mut self, at: Token) {
        self.failures += 1;
        self.last_failure = at.start;
    }

    /// Reports a failure inside a hole whose span is `hole`: one `WO-E101` at the hole.
    pub fn report_hole(&mut self, failure: Failure, hole: Span) {
        let lexical = self.lexical_between(hole.start, hole.end);
        if lexical || self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.pass_over(failure.at);
            return;
        }
        self.last_failure = failure.at.start;
        let inner = self.explain(failure);
        if inner.code.number != 101 {
            self.emit(inner);
            return;
        }
        let help = inner.help.unwrap_or_default();
        let diagnostic =
            Diagnostic::error(101, hole, format!("this hole does not hold one expression: {}", inner.title))
                .label("between the braces stands exactly one expression, without a line break at either end")
                .related(inner.span, inner.label)
                .note("a hole is an expression whose value is inserted into the text")
                .help(if help.is_empty() {
                    "compute the value in a `let` first, then name it here".to_owned()
                } else {
                    help
                });
        self.emit(diagnostic);
    }

    fn source_of(&self, token: Token) -> &[u8] {
        self.source.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Source text of a token for a message.
    pub fn describe(&self, token: Token) -> String {
        match token.kind {
            K::Nl => "end of line".to_owned(),
            K::Eof => "end of file".to_owned(),
            K::HoleClose | K::EscClose => "`}`".to_owned(),
            K::StrOpen | K::RawOpen | K::BadStr => "a text".to_owned(),
            K::GeHead => "`>=`".to_owned(),
            K::ShrHead => "`>>`".to_owned(),
            _ => quoted(self.source_of(token)),
        }
    }

    fn explain(&self, failure: Failure) -> Diagnostic {
        if let Some(special) = failure.special {
            return *special;
        }
        let found = self.describe(failure.at);
        let wanted = failure.wanted;
        let (note, help) = self.advise(&failure);
        Diagnostic::error(101, self.span_of(failure.at), format!("expected {wanted}, found {found}"))
            .label(format!("expected {wanted}"))
            .note(note)
            .help(help)
    }

    fn advise(&self, failure: &Failure) -> Advice {
        let Token { kind, start, end } = failure.at;
        let line = |from: usize, to: usize| String::from_utf8_lossy(self.source.get(from..to).unwrap_or_default());
        let (from, to) = (start as usize, end as usize);
        let behind = self.source.get(to..).unwrap_or_default();
        let length = behind.iter().take(CONTEXT).position(|b| *b == b'\n').unwrap_or(behind.len().min(CONTEXT));
        let head = self.source.get(self.head as usize..).unwrap_or_default();
        let word = head.iter().take(CONTEXT).position(|b| !b.is_ascii_alphanumeric()).unwrap_or(0);
        let (text, before) = (line(from, to.min(from + CONTEXT)), self.line_before(start));
        let after = line(to, to + if kind == K::Nl { 0 } else { length });
        let head = line(self.head as usize, self.head as usize + word);
        advice(&Found { kind, wanted: failure.wanted, text: &text, before: &before, after: &after, head: &head })
    }
}

// ---- token helpers ----

#[inline]
pub(crate) fn peek(inp: &mut Input<'_, '_>) -> Token {
    match inp.peek() {
        Some(token) => token,
        None => inp.state().eof,
    }
}

/// The tokens from the current one on.
#[inline]
pub(crate) fn rest<'s>(inp: &mut Input<'s, '_>) -> Tokens<'s> {
    let cursor = inp.cursor();
    inp.slice_from(&cursor..)
}

/// Kind of the `n`-th token from here; 0 is the current one.
#[inline]
pub(crate) fn ahead(inp: &mut Input<'_, '_>, n: usize) -> K {
    rest(inp).get(n).map_or(K::Eof, |t| t.kind)
}

/// First kind after line breaks, and whether there were any.
pub(crate) fn past_newlines(inp: &mut Input<'_, '_>) -> K {
    match peek(inp).kind {
        K::Nl => ahead(inp, 1),
        kind => kind,
    }
}

/// Consumes the current token; the end of the file stays.
#[inline]
pub(crate) fn bump(inp: &mut Input<'_, '_>) -> Token {
    let token = peek(inp);
    if token.kind != K::Eof {
        inp.skip();
        inp.state().open.pass(token.kind);
    }
    token
}

#[inline]
pub(crate) fn eat(inp: &mut Input<'_, '_>, kind: K) -> bool {
    let hit = peek(inp).kind == kind;
    if hit {
        let _ = bump(inp);
    }
    hit
}

#[inline]
pub(crate) fn skip_newlines(inp: &mut Input<'_, '_>) {
    while peek(inp).kind == K::Nl {
        inp.skip();
    }
}

pub(crate) fn fail<T>(inp: &mut Input<'_, '_>, wanted: &'static str) -> Res<T> {
    let at = peek(inp);
    Err(Failure { at, wanted, special: None })
}

pub(crate) fn special<T>(at: Token, diagnostic: Diagnostic) -> Res<T> {
    Err(Failure { at, wanted: "", special: Some(Box::new(diagnostic)) })
}

#[inline]
pub(crate) fn expect(inp: &mut Input<'_, '_>, kind: K, wanted: &'static str) -> Res<Token> {
    let token = peek(inp);
    if token.kind != kind {
        return fail(inp, wanted);
    }
    Ok(bump(inp))
}

#[inline]
pub(crate) fn span_of(inp: &mut Input<'_, '_>, token: Token) -> Span {
    inp.state().span_of(token)
}

/// Source text in backquotes, cut at its line's end and a length.
pub(crate) fn quoted(source: &[u8]) -> String {
    let text = String::from_utf8_lossy(source);
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(40).collect();
    if short.len() < text.len() { format!("`{short}…`") } else { format!("`{short}`") }
}

#[inline]
pub(crate) fn text<'s>(inp: &mut Input<'s, '_>, token: Token) -> &'s [u8] {
    let source: &'s [u8] = inp.state().source;
    source.get(token.start as usize..token.end as usize).unwrap_or_default()
}

#[inline]
pub(crate) fn ident_of(inp: &mut Input<'_, '_>, token: Token) -> Ident {
    let name = Name::new(std::str::from_utf8(text(inp, token)).unwrap_or_default());
    Ident { name, span: span_of(inp, token) }
}

#[inline]
pub(crate) fn name(inp: &mut Input<'_, '_>, wanted: &'static str) -> Res<Ident> {
    let token = peek(inp);
    if !token.kind.is_name() {
        return fail(inp, wanted);
    }
    let _ = bump(inp);
    Ok(ident_of(inp, token))
}

/// An identifier or `type`.
pub(crate) fn field_name(inp: &mut Input<'_, '_>, wanted: &'static str) -> Res<Ident> {
    let token = peek(inp);
    if !token.kind.is_field_name() {
        return fail(inp, wanted);
    }
    let _ = bump(inp);
    Ok(ident_of(inp, token))
}

/// Names that what begins with `tokens` may have declared: those in front of its first punctuation. Nothing that could
/// not be read is reported a second time where they are used.
pub(crate) fn declared_names(inp: &mut Input<'_, '_>, tokens: Tokens<'_>) -> Vec<Name> {
    let mut names = Vec::new();
    let caught = tokens.windows(3).take(DECLARED_MAX * 4).find(
        |w| matches!(w, [catch, open, name] if catch.kind == K::Catch && open.kind == K::LParen && name.kind.is_name()),
    );
    if let Some([_, _, name]) = caught {
        names.push(ident_of(inp, *name).name);
    }
    for token in tokens.iter().take(DECLARED_MAX) {
        match token.kind {
            kind if kind.is_name() => names.push(ident_of(inp, *token).name),
            K::Pub | K::Class | K::Type | K::Typedef | K::Interface | K::Const | K::Fn | K::Use | K::Using => {}
            K::If | K::While | K::For | K::Switch | K::Let | K::Mut | K::Inline => {}
            K::Comma | K::Slash | K::Dot | K::Colon => {}
            K::Str => {
                let quoted = String::from_utf8_lossy(text(inp, *token)).into_owned();
                let path = quoted.trim_matches(['"', '\'']);
                names.push(Name::new(path.rsplit('/').next().unwrap_or_default()));
            }
            _ => break,
        }
    }
    names
}

/// `EOS`: one `;`, one line break, or nothing before a closing brace or the end.
pub(crate) fn end_of_statement(inp: &mut Input<'_, '_>, wanted: &'static str) -> Res<()> {
    match peek(inp).kind {
        K::Semi | K::Nl => {
            let _ = bump(inp);
            Ok(())
        }
        K::RBrace | K::Eof | K::HoleClose | K::EscClose => Ok(()),
        _ => fail(inp, wanted),
    }
}

pub(crate) fn nesting_limit<T>(inp: &mut Input<'_, '_>) -> Res<T> {
    let at = peek(inp);
    let span = span_of(inp, at);
    let diagnostic = Diagnostic::error(101, span, format!("nested deeper than {MAX_NESTING} levels"))
        .label(format!("level {} starts here", MAX_NESTING + 1))
        .note(format!("expressions, types and blocks may nest {MAX_NESTING} levels deep"))
        .help("name inner parts with `let`, or move inner blocks into functions");
    special(at, diagnostic)
}

/// Runs `f` one nesting level deeper, with enough stack.
#[inline]
pub(crate) fn nested<'s, 'p, T>(inp: &mut Input<'s, 'p>, f: impl FnOnce(&mut Input<'s, 'p>) -> Res<T>) -> Res<T> {
    if inp.state().depth >= MAX_NESTING {
        return nesting_limit(inp);
    }
    inp.state().depth += 1;
    let result = stacker::maybe_grow(128 * 1024, 1024 * 1024, || f(inp));
    inp.state().depth -= 1;
    result
}
