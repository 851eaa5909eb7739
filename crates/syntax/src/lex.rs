//! Source bytes to tokens: drives the logos automaton, scans the text of literals, keeps the stack of open literals so
//! that holes become ordinary tokens of one flat stream, and applies the build flags. One pass, linear time.
//!
//! Holes are properly nested in the result: `HoleOpen`/`EscOpen` and their closers always pair up, because a literal
//! that does not end is cut out again and replaced by one `BadStr`.

use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use logos::Logos;

use crate::MAX_DIAGNOSTICS;
use crate::literal::{IntValue, int_value};
use crate::token::{K, Token};

pub(crate) struct Lexed {
    /// Ends with one `Eof`.
    pub tokens: Vec<Token>,
    pub diagnostics: Vec<Diagnostic>,
    /// Start offsets of all lexical errors, ascending; a syntax failure around one of them is its consequence.
    pub errors: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Double,
    Single,
    Raw,
}

/// A literal that is open, with the hole being read.
struct Mode {
    quote: Quote,
    /// Offset of the opening delimiter.
    start: usize,
    /// The current hole was opened by `{{`.
    escaped: bool,
    has_holes: bool,
    /// Open `{` inside the current hole.
    braces: usize,
    /// State to go back to when the literal turns out not to end.
    tokens: usize,
    diagnostics: usize,
    errors: usize,
    ifs: usize,
    live: bool,
    /// Number of open `#if`s at the start of the current hole.
    hole_ifs: usize,
}

/// An open `#if`.
struct Condition {
    start: usize,
    end: usize,
    outer_live: bool,
    holds: bool,
    has_else: bool,
}

struct Lexer<'s> {
    source: &'s [u8],
    file: FileId,
    flags: &'s [String],
    logos: logos::Lexer<'s, K>,
    out: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    errors: Vec<u32>,
    modes: Vec<Mode>,
    /// Index in `modes` of the open raw literal; there is never a second one inside it.
    raw_level: Option<usize>,
    ifs: Vec<Condition>,
    /// All open conditions hold; always true when `full`.
    live: bool,
    /// Nothing is dropped: every section, every line break, the directives.
    full: bool,
    /// A token that was read ahead.
    pending: Option<(K, usize, usize)>,
    /// End of the last byte refused as `WO-E001`, to report a run of them once.
    bad_end: usize,
}

/// `source` is at most `u32::MAX` bytes long.
pub(crate) fn lex(file: FileId, source: &[u8], flags: &[String]) -> Lexed {
    run(file, source, flags, false)
}

/// All tokens as written, for the formatter: the sections of every build flag, each line break, and a `Directive` for
/// `#if` (its name is the next token), `#else` and `#end`. What stands between two of them is blanks and comments.
pub(crate) fn lex_full(file: FileId, source: &[u8]) -> Lexed {
    run(file, source, &[], true)
}

fn run(file: FileId, source: &[u8], flags: &[String], full: bool) -> Lexed {
    let mut lexer = Lexer {
        source,
        file,
        flags,
        logos: K::lexer(source),
        out: Vec::with_capacity(source.len() / 4 + 16),
        diagnostics: Vec::new(),
        errors: Vec::new(),
        modes: Vec::new(),
        raw_level: None,
        ifs: Vec::new(),
        live: true,
        full,
        pending: None,
        bad_end: usize::MAX,
    };
    if source.starts_with(b"\xEF\xBB\xBF") {
        lexer.logos.bump(3);
    }
    lexer.run();
    lexer.finish()
}

fn offset(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Lexer<'_> {
    fn run(&mut self) {
        loop {
            if let Some((kind, start, end)) = self.pending.take() {
                self.token(kind, start, end);
                continue;
            }
            let Some(next) = self.logos.next() else { return };
            let span = self.logos.span();
            match next {
                Ok(kind) => self.token(kind, span.start, span.end),
                Err(()) => self.bad_bytes(span.start, span.end),
            }
        }
    }

    fn finish(mut self) -> Lexed {
        let end = self.source.len();
        if let Some(outer) = self.modes.first() {
            match outer.quote {
                Quote::Raw => self.abandon(0, end, Self::unclosed_raw),
                Quote::Double | Quote::Single => self.abandon(0, end, Self::unclosed_quote),
            }
        }
        self.close_ifs(0);
        self.out.push(Token { kind: K::Eof, start: offset(end), end: offset(end) });
        self.errors.sort_unstable();
        Lexed { tokens: self.out, diagnostics: self.diagnostics, errors: self.errors }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, offset(start), offset(end))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.errors.push(diagnostic.span.start);
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    #[inline]
    fn emit(&mut self, kind: K, start: usize, end: usize) {
        if self.live {
            self.out.push(Token { kind, start: offset(start), end: offset(end) });
        }
    }

    #[inline]
    fn token(&mut self, kind: K, start: usize, end: usize) {
        match kind {
            K::Nl => {
                let dropped = !self.full && matches!(self.out.last(), Some(Token { kind: K::Nl | K::DotDot, .. }));
                if !dropped {
                    self.emit(K::Nl, start, end);
                }
            }
            K::DoubleQuote => self.open(Quote::Double, start, end),
            K::SingleQuote => self.open(Quote::Single, start, end),
            K::Backtick => self.backtick(start, end),
            K::LBrace => {
                if let Some(mode) = self.modes.last_mut() {
                    mode.braces += 1;
                }
                self.emit(kind, start, end);
            }
            K::RBrace => self.right_brace(start, end),
            K::GeHead => {
                self.emit(K::GeHead, start, start + 1);
                self.emit(K::Assign, start + 1, end);
            }
            K::ShrHead => {
                self.emit(K::ShrHead, start, start + 1);
                self.emit(K::Gt, start + 1, end);
            }
            K::Int => {
                self.check_int(start, end);
                self.emit(kind, start, end);
            }
            K::Bang => self.bad_bytes(start, end),
            K::Directive => self.directive(start, end),
            _ => self.emit(kind, start, end),
        }
    }

    fn text(&self, start: usize, end: usize) -> &[u8] {
        self.source.get(start..end).unwrap_or_default()
    }

    /// Moves the automaton forward to `target`.
    fn resume_at(&mut self, target: usize) {
        let now = self.logos.span().end;
        self.logos.bump(target.min(self.source.len()).saturating_sub(now));
    }

    fn bad_bytes(&mut self, start: usize, end: usize) {
        if self.bad_end == start {
            // The same run: widen the report.
            if let Some(last) = self.diagnostics.last_mut()
                && last.code.number == 1
                && last.span.end == offset(start)
            {
                last.span.end = offset(end);
                let run = self.source.get(last.span.start as usize..end).unwrap_or_default();
                if run.len() <= 16 {
                    last.title = bad_title(&String::from_utf8_lossy(run));
                    last.help = Some(bad_help(run).to_owned());
                }
            }
            self.bad_end = end;
            return;
        }
        self.bad_end = end;
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.errors.push(offset(start));
            return;
        }
        let text = self.text(start, end);
        let opened = self.diagnostics.last().is_some_and(|d| d.title.starts_with("`“") && d.code.number == 1);
        if opened && self.source.get(start..).is_some_and(|rest| rest.starts_with("”".as_bytes())) {
            // The end of what began there.
            self.errors.push(offset(start));
            return;
        }
        let title = bad_title(&String::from_utf8_lossy(text));
        let diagnostic = Diagnostic::error(1, self.span(start, end), title)
            .label("no token starts with this")
            .note("outside text literals and comments a program consists of ASCII words, numbers and punctuation")
            .help(bad_help(text));
        self.report(diagnostic);
    }

    fn check_int(&mut self, start: usize, end: usize) {
        if int_value(self.text(start, end)) == IntValue::TooLarge {
            let diagnostic = int_too_large(self.span(start, end), self.text(start, end));
            self.report(diagnostic);
        }
    }

    // ---- literals ----

    fn open(&mut self, quote: Quote, start: usize, end: usize) {
        if quote == Quote::Raw {
            self.raw_level = Some(self.modes.len());
        }
        self.modes.push(Mode {
            quote,
            start,
            escaped: false,
            has_holes: false,
            braces: 0,
            tokens: self.out.len(),
            diagnostics: self.diagnostics.len(),
            errors: self.errors.len(),
            ifs: self.ifs.len(),
            live: self.live,
            hole_ifs: 0,
        });
        self.literal_text(end);
    }

    /// A backtick opens a raw literal, or shows that a hole of the raw literal around it is not closed.
    fn backtick(&mut self, start: usize, end: usize) {
        match self.raw_level {
            Some(level) => self.abandon(level, end, Self::unclosed_hole),
            None => self.open(Quote::Raw, start, end),
        }
    }

    /// Reads literal text from `from` up to the closing delimiter or the next hole.
    fn literal_text(&mut self, from: usize) {
        let Some(mode) = self.modes.last() else { return };
        let quote = mode.quote;
        let delimiter = match quote {
            Quote::Double => b'"',
            Quote::Single => b'\'',
            Quote::Raw => b'`',
        };
        let mut i = from;
        loop {
            let Some(b) = self.source.get(i).copied() else {
                // `finish` reports the literal.
                self.resume_at(self.source.len());
                return;
            };
            if b == delimiter {
                self.close_literal(from, i);
                return;
            }
            let next = self.source.get(i + 1).copied();
            match b {
                b'\n' if quote != Quote::Raw => {
                    self.line_feed(i);
                    return;
                }
                b'\\' if quote != Quote::Raw => i += if matches!(next, Some(b'\n') | None) { 1 } else { 2 },
                b'$' if next == Some(b'{') => {
                    self.open_hole(from, i, false);
                    return;
                }
                b'{' if quote == Quote::Raw && next == Some(b'{') => {
                    self.open_hole(from, i, true);
                    return;
                }
                _ => i += 1,
            }
        }
    }

    fn close_literal(&mut self, from: usize, at: usize) {
        let Some(mode) = self.modes.pop() else { return };
        self.forget_raw();
        if mode.has_holes {
            if at > from {
                self.emit(K::StrPart, from, at);
            }
            self.emit(K::StrClose, at, at + 1);
        } else {
            let kind = if mode.quote == Quote::Raw { K::Raw } else { K::Str };
            self.emit(kind, mode.start, at + 1);
        }
        self.resume_at(at + 1);
    }

    fn forget_raw(&mut self) {
        let depth = self.modes.len();
        self.raw_level = self.raw_level.filter(|level| *level < depth);
    }

    fn open_hole(&mut self, from: usize, at: usize, escaped: bool) {
        let ifs = self.ifs.len();
        let Some(mode) = self.modes.last_mut() else { return };
        let first = !mode.has_holes;
        let (quote, start) = (mode.quote, mode.start);
        mode.has_holes = true;
        mode.escaped = escaped;
        mode.braces = 0;
        mode.hole_ifs = ifs;
        if first {
            let kind = if quote == Quote::Raw { K::RawOpen } else { K::StrOpen };
            self.emit(kind, start, start + 1);
        }
        if at > from {
            self.emit(K::StrPart, from, at);
        }
        let kind = if escaped { K::EscOpen } else { K::HoleOpen };
        self.emit(kind, at, at + 2);
        self.resume_at(at + 2);
    }

    fn right_brace(&mut self, start: usize, end: usize) {
        let Some(mode) = self.modes.last_mut() else {
            self.emit(K::RBrace, start, end);
            return;
        };
        if mode.braces > 0 {
            mode.braces -= 1;
            self.emit(K::RBrace, start, end);
            return;
        }
        let (escaped, hole_ifs) = (mode.escaped, mode.hole_ifs);
        if escaped && self.source.get(end) != Some(&b'}') {
            let level = self.raw_level.unwrap_or(0);
            let rest = self.source.get(end..).unwrap_or_default();
            let resume = rest.iter().position(|b| *b == b'`').map_or(self.source.len(), |n| end + n + 1);
            self.abandon(level, resume, Self::unclosed_hole);
            return;
        }
        self.close_ifs(hole_ifs);
        let (kind, end) = if escaped { (K::EscClose, end + 1) } else { (K::HoleClose, end) };
        self.emit(kind, start, end);
        self.resume_at(end);
        self.literal_text(end);
    }

    /// A line feed in quoted text ends this literal and all quoted literals it sits in.
    fn line_feed(&mut self, at: usize) {
        let level = self.raw_level.map_or(0, |n| n + 1);
        self.abandon(level, at, |this, start| {
            let text = this.source.get(start..at).unwrap_or_default();
            let line = text.get(..line_feed_in(text).unwrap_or(text.len())).unwrap_or_default();
            let end = start + line.trim_ascii_end().len();
            let before = start.checked_sub(1).and_then(|n| this.source.get(n));
            let is_apostrophe = text.starts_with(b"'") && before.is_some_and(u8::is_ascii_alphanumeric);
            let help = if is_apostrophe {
                "write `\\'` for an apostrophe, or quote the text with `\"`"
            } else {
                "close the quote, write `\\n` for a line break, or use a raw literal between backticks"
            };
            Diagnostic::error(5, this.span(start, end.max(start + 1)), "line feed in a quoted text")
                .label("this text is not closed on its line")
                .note("a quoted text ends on the line where it starts")
                .help(help)
        });
    }

    /// The quote at `start` closes a text that was begun, and reported, on an earlier line: what follows it on its line
    /// goes on as behind a text.
    fn is_late_quote(&self, start: usize) -> bool {
        let rest = self.source.get(start + 1..).unwrap_or_default();
        let rest = rest.get(..line_feed_in(rest).unwrap_or(rest.len())).unwrap_or_default().trim_ascii();
        let goes_on = rest.first().is_none_or(|b| matches!(b, b')' | b']' | b'}' | b',' | b';'));
        goes_on && self.diagnostics.last().is_some_and(|d| d.code.number == 5)
    }

    /// Cuts out the literal `modes[level]` with all it holds, reports it, and goes on at `resume`.
    fn abandon(&mut self, level: usize, resume: usize, diagnostic: impl FnOnce(&Self, usize) -> Diagnostic) {
        let Some(mode) = self.modes.get(level) else { return };
        let start = mode.start;
        self.out.truncate(mode.tokens);
        self.diagnostics.truncate(mode.diagnostics);
        self.errors.truncate(mode.errors);
        self.ifs.truncate(mode.ifs);
        self.live = mode.live;
        self.modes.truncate(level);
        self.forget_raw();
        self.pending = None;
        let diagnostic = diagnostic(self, start);
        if diagnostic.code.number == 5 && self.is_late_quote(start) {
            self.errors.push(offset(start));
        } else {
            self.report(diagnostic);
        }
        self.emit(K::BadStr, start, resume);
        self.resume_at(resume);
    }

    fn unclosed_quote(&self, start: usize) -> Diagnostic {
        Diagnostic::error(2, self.span(start, start + 1), "quoted text is not closed before the end of the file")
            .label("opened here")
            .note("a quoted text ends at the same quote that opened it; a `${` in it ends at the matching `}`")
            .help("add the closing quote")
    }

    fn unclosed_raw(&self, start: usize) -> Diagnostic {
        Diagnostic::error(4, self.span(start, start + 1), "raw text is not closed before the end of the file")
            .label("opened here")
            .note("a raw text runs to the next backtick, across line breaks")
            .help("add the closing backtick")
    }

    fn unclosed_hole(&self, start: usize) -> Diagnostic {
        Diagnostic::error(4, self.span(start, start + 1), "a hole of this raw text is not closed")
            .label("the text is opened here")
            .note("`{{` is closed by `}}`, `${` by `}`; a backtick cannot be written inside a raw text")
            .help("close the hole; to produce a backtick, `${` or `{{`, concatenate a quoted text with `..`")
    }

    // ---- build flags ----

    fn directive(&mut self, start: usize, end: usize) {
        if self.full {
            self.emit(K::Directive, start, end);
        }
        match self.text(start + 1, end) {
            b"if" => self.directive_if(start, end),
            b"else" => {
                let floor = self.modes.last().map_or(0, |m| m.hole_ifs);
                let open = self.ifs.len() > floor;
                match self.ifs.last_mut() {
                    Some(top) if open && !top.has_else => {
                        top.has_else = true;
                        self.live = self.full || (top.outer_live && !top.holds);
                    }
                    Some(_) if open => self.misuse(start, end, "second `#else` of one `#if`"),
                    _ => self.misuse(start, end, "`#else` without `#if`"),
                }
            }
            b"end" => {
                let floor = self.modes.last().map_or(0, |m| m.hole_ifs);
                if self.ifs.len() > floor
                    && let Some(top) = self.ifs.pop()
                {
                    self.live = top.outer_live;
                } else {
                    self.misuse(start, end, "`#end` without `#if`");
                }
            }
            text => {
                let title = format!("unknown directive `#{}`", String::from_utf8_lossy(text));
                self.misuse(start, end, &title);
                // What follows belongs to it.
                if self.modes.is_empty() {
                    let rest = self.source.get(end..).unwrap_or_default();
                    self.resume_at(line_feed_in(rest).map_or(self.source.len(), |n| end + n));
                }
            }
        }
    }

    /// The word behind a directive, which is no token of the program.
    fn directive_name(&mut self) -> Option<(usize, usize)> {
        let next = self.logos.next();
        let span = self.logos.span();
        match next {
            Some(Ok(kind)) if kind.is_name() => {
                if self.full {
                    self.emit(kind, span.start, span.end);
                }
                return Some((span.start, span.end));
            }
            Some(Ok(kind)) => self.pending = Some((kind, span.start, span.end)),
            Some(Err(())) => self.bad_bytes(span.start, span.end),
            None => {}
        }
        None
    }

    fn directive_if(&mut self, start: usize, end: usize) {
        let outer_live = self.live;
        let holds = match self.directive_name() {
            Some((from, to)) => {
                let name = self.text(from, to);
                self.flags.iter().any(|f| f.as_bytes() == name)
            }
            None => {
                self.misuse(start, end, "`#if` without a name");
                true
            }
        };
        self.ifs.push(Condition { start, end, outer_live, holds, has_else: false });
        self.live = self.full || (outer_live && holds);
    }

    /// Reports and drops all conditions above `floor`.
    fn close_ifs(&mut self, floor: usize) {
        while self.ifs.len() > floor {
            let Some(top) = self.ifs.pop() else { return };
            self.live = top.outer_live;
            self.misuse(top.start, top.end, "`#if` without `#end`");
        }
    }

    fn misuse(&mut self, start: usize, end: usize, title: &str) {
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.errors.push(offset(start));
            return;
        }
        let help = match self.text(start, end) {
            b"#if" if title.contains("name") => "write `#if NAME`",
            b"#if" => "add `#end` behind the section",
            b"#else" | b"#end" => "remove it, or write the `#if NAME` that it belongs to",
            _ => "write `#if NAME`, `#else` or `#end`; a comment begins with `--`",
        };
        let diagnostic = Diagnostic::error(3, self.span(start, end), title)
            .label("this directive has no effect")
            .note("sections are written `#if NAME` … `#else` … `#end`, with at most one `#else`; `-D NAME` defines a name")
            .help(help);
        self.report(diagnostic);
    }
}

fn line_feed_in(text: &[u8]) -> Option<usize> {
    text.iter().position(|b| *b == b'\n')
}

fn bad_help(text: &[u8]) -> &'static str {
    match text {
        b"!" => "write `not x` for negation, `!=` for inequality",
        b"~" => "there is no bitwise complement; write `x ^ -1`",
        b"\\" => "a statement continues on the next line only after a trailing `..`, or inside brackets",
        b"$" => "`${…}` is an interpolation only inside quotes or backticks",
        _ if ["“", "”", "„", "‘", "’"].iter().any(|q| text.starts_with(q.as_bytes())) => {
            "texts stand between straight quotes: `\"…\"`"
        }
        _ if String::from_utf8_lossy(text).chars().all(char::is_alphabetic) => {
            "names consist of ASCII letters, digits, `_` and `-`"
        }
        _ => "remove it, or put it into a text literal or a comment",
    }
}

fn bad_title(text: &str) -> String {
    format!("`{}` starts no token", text.escape_debug())
}

/// `WO-E006` for the literal `text`.
pub(crate) fn int_too_large(span: Span, text: &[u8]) -> Diagnostic {
    let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
    Diagnostic::error(6, span, format!("integer literal `{shown}` is out of range"))
        .label("does not fit into an Int")
        .note(
            "a decimal literal is at most 9223372036854775807 (9223372036854775808 directly after a unary minus); a \
             hexadecimal or binary one has at most 64 bits",
        )
        .help("use a smaller literal, or a Float such as `1e19`")
}
