//! Indentation and printing. One pass over the items with a stack of open brackets.
//!
//! The content of a bracket stands one level deeper than the line that opens it, so brackets opened on one line share
//! a level; a line that begins with the closing bracket goes back to that line's indentation. A `#if` saves the state
//! and its `#else` starts from it again, because both sections continue the same text. The stack is therefore a chain
//! of frames in an arena: saving it is copying an index.

use super::RESULT_MAX;
use super::items::{Item, What};
use super::spacing::{Left, Right, blank_between};
use super::types::angles;
use crate::MAX_NESTING;
use crate::token::K;

const STEP: usize = 2;
/// Deeper levels exist only in discarded sections: the parser refuses them.
const INDENT_MAX: usize = STEP * MAX_NESTING as usize;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Root,
    Block,
    /// Fields and methods of a class, fields of a record: line ends separate them, commas there are optional.
    Fields,
    Switch,
    /// Fields of a constructor, an empty map.
    Value,
    Paren,
    /// `(e)` after `catch`: an expression may follow directly.
    CatchParen,
    Bracket,
    /// Not a bracket: between a keyword and the brace of its block.
    HeadOfBlock,
    HeadOfSwitch,
}

impl Kind {
    fn is_head(self) -> bool {
        matches!(self, Kind::HeadOfBlock | Kind::HeadOfSwitch)
    }
}

#[derive(Clone, Copy)]
struct Frame {
    /// Always smaller than the frame's own index; the root is its own parent.
    parent: usize,
    kind: Kind,
    /// Indentation of the line that opens the bracket.
    base: usize,
    /// Indentation of the last line inside that began a statement or item; at first `base`.
    item: usize,
    /// A `case` was seen in this `switch`.
    in_arm: bool,
    /// Queries that have not reached their `select`.
    queries: usize,
}

/// What a `#if` saves.
#[derive(Clone, Copy)]
struct State {
    /// Index of the innermost frame.
    top: usize,
    /// The last three tokens, the latest first; `Eof` before the first token.
    last: [K; 3],
    operand: bool,
    in_use: bool,
}

struct Printer<'s> {
    source: &'s [u8],
    items: &'s [Item],
    angles: Vec<bool>,
    out: Vec<u8>,
    frames: Vec<Frame>,
    state: State,
    saved: Vec<State>,
    /// The next token is the name of a `#if`.
    name_follows: bool,
    /// Indentation of the current line, as far as brackets are concerned.
    indent: usize,
    /// Line breaks since the last thing printed.
    breaks: usize,
    /// What was printed last on this line.
    left: Option<(Left, u32)>,
}

/// The canonical text; none if it would be too long.
pub(super) fn print(source: &[u8], items: &[Item]) -> Option<Vec<u8>> {
    let root = Frame { parent: 0, kind: Kind::Root, base: 0, item: 0, in_arm: false, queries: 0 };
    let mut printer = Printer {
        source,
        items,
        angles: angles(items),
        out: Vec::with_capacity(source.len() + source.len() / 8),
        frames: vec![root],
        state: State { top: 0, last: [K::Eof; 3], operand: false, in_use: false },
        saved: Vec::new(),
        name_follows: false,
        indent: 0,
        breaks: 0,
        left: None,
    };
    let droppable = printer.droppable();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        match item.what {
            What::Break => {
                printer.breaks += 1;
                printer.left = None;
            }
            What::Comment => printer.comment(at, item),
            What::Token(kind) => {
                if !printer.is_dropped(kind, droppable.get(at)) {
                    printer.token(at, item, kind);
                }
            }
        }
        if printer.out.len() > RESULT_MAX {
            return None;
        }
        at += 1;
    }
    if !printer.out.is_empty() {
        printer.out.push(b'\n');
    }
    Some(printer.out)
}

/// Whether a `;` or `,` ends its line, counting only `;` or both behind it.
#[derive(Clone, Copy, Default)]
struct AtEnd {
    semicolons: bool,
    both: bool,
}

impl<'s> Printer<'s> {
    fn droppable(&self) -> Vec<AtEnd> {
        let mut ends = vec![AtEnd::default(); self.items.len()];
        let mut behind = AtEnd { semicolons: true, both: true };
        for (item, end) in self.items.iter().zip(&mut ends).rev() {
            behind = match item.what {
                What::Comment | What::Break => AtEnd { semicolons: true, both: true },
                What::Token(K::Semi) => behind,
                What::Token(K::Comma) => AtEnd { semicolons: false, both: behind.both },
                What::Token(_) => AtEnd::default(),
            };
            *end = behind;
        }
        ends
    }

    /// A `;` or field's `,` at the end of a line that holds something else.
    fn is_dropped(&self, kind: K, end: Option<&AtEnd>) -> bool {
        let Some(end) = end else { return false };
        let in_fields = self.top().kind == Kind::Fields;
        let optional = match kind {
            K::Semi => end.semicolons || (in_fields && end.both),
            K::Comma => in_fields && end.both,
            _ => false,
        };
        optional && self.left.is_some()
    }

    // ---- frames ----

    fn frame(&self, index: usize) -> Frame {
        let root = Frame { parent: 0, kind: Kind::Root, base: 0, item: 0, in_arm: false, queries: 0 };
        self.frames.get(index).copied().unwrap_or(root)
    }

    fn top(&self) -> Frame {
        self.frame(self.state.top)
    }

    /// The innermost bracket.
    fn bracket(&self) -> Frame {
        let mut frame = self.top();
        while frame.kind.is_head() {
            frame = self.frame(frame.parent);
        }
        frame
    }

    fn push(&mut self, kind: Kind, base: usize) {
        self.frames.push(Frame { parent: self.state.top, kind, base, item: base, in_arm: false, queries: 0 });
        self.state.top = self.frames.len() - 1;
    }

    fn pop(&mut self) -> Frame {
        let frame = self.top();
        if frame.kind != Kind::Root {
            self.state.top = frame.parent;
            if self.saved.is_empty() {
                self.frames.truncate(frame.parent + 1);
            }
        }
        frame
    }

    fn pop_heads(&mut self) {
        while self.top().kind.is_head() {
            let _ = self.pop();
        }
    }

    /// Changes the innermost frame; a saved state may share it, so it is replaced while a `#if` is open.
    fn change(&mut self, f: impl FnOnce(&mut Frame)) {
        let mut frame = self.top();
        f(&mut frame);
        if self.saved.is_empty() {
            if let Some(old) = self.frames.get_mut(self.state.top) {
                *old = frame;
            }
            return;
        }
        if frame.kind == Kind::Root {
            // A root that is not at index 0 is still its own end: `pop` stops at the kind.
            frame.parent = 0;
        }
        self.frames.push(frame);
        self.state.top = self.frames.len() - 1;
    }

    // ---- lines ----

    /// Indentation of a line in the innermost bracket whose first token is `kind`; none at the end of the file.
    fn indent_of(&self, kind: Option<K>, closes: bool) -> usize {
        let frame = self.bracket();
        if closes {
            return frame.base;
        }
        if self.continues(kind) {
            return frame.item + STEP;
        }
        match frame.kind {
            Kind::Root => 0,
            Kind::Switch if frame.in_arm && !matches!(kind, Some(K::Case | K::Default)) => frame.base + 2 * STEP,
            _ => frame.base + STEP,
        }
    }

    /// A line that begins with `kind` goes on with the expression of the line before.
    fn continues(&self, kind: Option<K>) -> bool {
        let [last, before, _] = self.state.last;
        self.top().queries > 0
            || matches!(last, K::DotDot | K::Pipe)
            || (last == K::Insert && before != K::Dot)
            || kind == Some(K::Catch)
    }

    fn start_line(&mut self, indent: usize) {
        let feeds = if self.out.is_empty() { self.breaks.min(1) } else { self.breaks.min(2) };
        self.out.extend(std::iter::repeat_n(b'\n', feeds));
        self.out.extend(std::iter::repeat_n(b' ', indent.min(INDENT_MAX)));
        self.breaks = 0;
    }

    fn at_line_start(&self) -> bool {
        self.breaks > 0 || self.out.is_empty()
    }

    fn comment(&mut self, at: usize, item: &Item) {
        if self.at_line_start() {
            let rest = self.items.get(at..).unwrap_or_default();
            // Before a `case` it belongs to that arm, unless it is all that the arm before holds.
            let next = rest.iter().find_map(|i| match i.what {
                What::Token(K::Case | K::Default) if self.state.last[0] == K::Colon => Some(K::Colon),
                What::Token(kind) => Some(kind),
                _ => None,
            });
            let indent = self.indent_of(next, false);
            self.start_line(indent);
        } else {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(item.text(self.source));
    }

    // ---- tokens ----

    fn token(&mut self, at: usize, item: &Item, kind: K) {
        let line_start = self.at_line_start();
        let angle = self.angles.get(at).copied().unwrap_or(false);
        let text = item.text(self.source);
        if line_start {
            self.first_of_line(kind);
        } else if let Some((mut left, end)) = self.left {
            left.touches = end == item.start;
            let right = Right { kind, first_byte: text.first().copied().unwrap_or(0), angle };
            if blank_between(left, right) {
                self.out.push(b' ');
            }
        }
        self.out.extend_from_slice(text);
        let mut prefix_minus = false;
        let mut seen = kind;
        if std::mem::take(&mut self.name_follows) {
            // Belongs to the directive: the text around does not see it.
            seen = K::Directive;
        } else if kind == K::Directive {
            self.directive(text);
            if line_start {
                self.indent = self.indent_of(None, false).min(INDENT_MAX);
            }
        } else {
            prefix_minus = kind == K::Minus && !self.state.operand;
            self.advance(at, kind, line_start, angle);
        }
        let State { operand, in_use, .. } = self.state;
        self.left = Some((Left { kind: seen, operand, prefix_minus, angle, touches: false, in_use }, item.end));
    }

    fn first_of_line(&mut self, kind: K) {
        let closes = matches!(kind, K::RBrace | K::RParen | K::RBracket);
        let continues = self.continues(Some(kind));
        if !continues {
            self.state.operand = false;
            self.state.in_use = false;
            self.pop_heads();
        }
        if kind == K::Directive {
            // Directives stand outside of the blocks.
            self.start_line(0);
            return;
        }
        self.indent = self.indent_of(Some(kind), closes).min(INDENT_MAX);
        if !continues && !closes {
            let indent = self.indent;
            self.change(|frame| frame.item = indent);
        }
        self.start_line(self.indent);
    }

    fn directive(&mut self, text: &[u8]) {
        match text {
            b"#if" => {
                self.saved.push(self.state);
                self.name_follows = true;
            }
            b"#else" => {
                if let Some(state) = self.saved.last() {
                    self.state = *state;
                }
            }
            _ => {
                let _ = self.saved.pop();
            }
        }
    }

    /// Follows the structure over the token at `at`.
    fn advance(&mut self, at: usize, kind: K, line_start: bool, angle: bool) {
        let [last, before, _] = self.state.last;
        let member = last == K::Dot;
        let mut operand = false;
        match kind {
            K::LParen => {
                let kind = if last == K::Catch { Kind::CatchParen } else { Kind::Paren };
                self.push(kind, self.indent);
            }
            K::LBracket => self.push(Kind::Bracket, self.indent),
            K::LBrace => self.open_brace(),
            K::RParen | K::RBracket | K::RBrace => {
                self.pop_heads();
                let closed = self.pop().kind;
                operand = !matches!(closed, Kind::CatchParen | Kind::Block | Kind::Fields);
            }
            K::Semi => {
                self.pop_heads();
                self.state.in_use = false;
            }
            K::If | K::While | K::For | K::Fn if !member => {
                self.pop_signature(kind);
                self.push(Kind::HeadOfBlock, self.indent);
            }
            K::Switch if !member => self.push(Kind::HeadOfSwitch, self.indent),
            K::Use | K::Using => self.state.in_use = true,
            K::Case | K::Default if self.top().kind == Kind::Switch => self.change(|frame| frame.in_arm = true),
            K::From if !member && self.starts_query(at) => self.change(|frame| frame.queries += 1),
            K::Select if self.is_clause(kind, line_start) => {
                self.change(|frame| frame.queries = frame.queries.saturating_sub(1));
            }
            K::Type => operand = member,
            K::Spawn => operand = member || last == K::Fn,
            K::Insert | K::Delete => operand = member || last == K::Fn,
            K::Gt | K::GeHead => operand = angle,
            K::Int | K::Float | K::Str | K::Raw | K::True | K::False | K::Nil => operand = true,
            kind if kind.is_name() => operand = !self.is_clause(kind, line_start),
            _ => {}
        }
        self.state.operand = operand;
        self.state.last = [kind, last, before];
    }

    /// A signature of an interface has no block.
    fn pop_signature(&mut self, kind: K) {
        if kind == K::Fn {
            self.pop_heads();
        }
    }

    fn open_brace(&mut self) {
        let [last, before, third] = self.state.last;
        let top = self.top().kind;
        let declares = before == K::Class || (before == K::Type && third != K::Dot);
        let kind = if (last.is_name() && declares) || (last == K::Assign && before.is_name() && third == K::Typedef) {
            Kind::Fields
        } else if top == Kind::HeadOfSwitch {
            Kind::Switch
        } else if top == Kind::HeadOfBlock
            || matches!(last, K::Else | K::Do | K::RParen | K::Str)
            || (last.is_name() && before == K::Interface)
        {
            Kind::Block
        } else {
            Kind::Value
        };
        // The content stands one level deeper than the line with the keyword, wherever the brace is.
        let base = if top.is_head() { self.pop().base } else { self.indent };
        self.push(kind, base);
    }

    /// `from IDENT in`.
    fn starts_query(&self, at: usize) -> bool {
        let is = |n: usize, f: fn(K) -> bool| matches!(self.items.get(at + n), Some(Item { what: What::Token(kind), .. }) if f(*kind));
        is(1, K::is_name) && is(2, |kind| kind == K::In)
    }

    /// `kind` is the word of a clause of the query being read, not a name.
    fn is_clause(&self, kind: K, line_start: bool) -> bool {
        let is_word = matches!(kind, K::Where | K::Group | K::By | K::Into | K::Order | K::Desc | K::Skip | K::Select);
        let [last, ..] = self.state.last;
        let fits = self.state.operand || line_start || (kind == K::By && last == K::Order);
        is_word && fits && last != K::Dot && self.top().queries > 0
    }
}
