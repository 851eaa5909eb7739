//! The source excerpt below a report's first line, drawn by ariadne.
//!
//! ariadne trusts its input: it slices at character boundaries, splits lines at more characters than a `.wo` file
//! does, prints control characters, and costs time per character of a line and per line between two labels. So it gets
//! a copy of the source with equal byte offsets and none of those hazards, and only labels that are cheap to show.

use std::fmt::Write as _;
use std::ops::Range;

use ariadne::{Cache, Color, Config, IndexType, Label, Report, ReportKind, Source};

use crate::render::{Places, SourceFile, index, one_line};
use crate::span::{FileId, Span};
use crate::{Diagnostic, Severity};

/// Lines longer than this (bytes) are not shown.
const LINE_MAX: usize = 400;
/// Labels further than this (lines) from the primary one are told in words.
const DISTANCE_MAX: u32 = 2_000;
/// A span over more lines than this is shown as its first line.
const SPAN_LINES_MAX: u32 = 12;

type Place = (FileId, Range<usize>);

pub(crate) struct Excerpts<'a> {
    files: &'a [SourceFile],
    places: &'a Places<'a>,
    sources: Vec<Option<Source<String>>>,
}

impl<'a> Excerpts<'a> {
    pub(crate) fn new(files: &'a [SourceFile], places: &'a Places<'a>) -> Excerpts<'a> {
        Excerpts { files, places, sources: files.iter().map(|_| None).collect() }
    }

    /// Appends excerpt, notes and helps of `d`; every line ends in a line feed.
    pub(crate) fn write(&mut self, out: &mut String, d: &Diagnostic, color: bool) {
        let Some(primary) = self.shown(d.span) else {
            self.in_words(out, d);
            return;
        };
        let (kind, hue) = match d.code.severity {
            Severity::Error => (ReportKind::Error, Color::Red),
            Severity::Warning => (ReportKind::Warning, Color::Yellow),
        };
        let config = Config::new().with_color(color).with_index_type(IndexType::Byte);
        let mut report = Report::build(kind, primary.clone()).with_config(config);
        let mut labels = vec![(primary.clone(), Label::new(primary).with_message(one_line(&d.label)).with_color(hue))];
        let (here, _) = self.places.line_col(d.span.file, d.span.start);
        let mut told = Vec::new();
        for l in &d.related {
            let (there, _) = self.places.line_col(l.span.file, l.span.start);
            let near = l.span.file != d.span.file || here.abs_diff(there) <= DISTANCE_MAX;
            match self.shown(l.span).filter(|_| near) {
                Some(place) => {
                    let label = Label::new(place.clone()).with_message(one_line(&l.text)).with_color(Color::Blue);
                    labels.push((place, label));
                }
                None => told.push(self.label_in_words(l.span, &l.text)),
            }
        }
        // ariadne shows a file once only if its labels come in the order of their lines.
        labels.sort_by_key(|((file, range), _)| (*file != d.span.file, *file, range.end));
        report.add_labels(labels.into_iter().map(|(_, label)| label));
        for note in told.into_iter().chain(d.notes.iter().map(|n| lines(n))) {
            report.add_note(note);
        }
        if let Some(help) = &d.help {
            report.set_help(lines(help));
        }
        let mut text = Vec::new();
        if report.finish().write(&mut *self, &mut text).is_err() {
            self.in_words(out, d);
            return;
        }
        let text = String::from_utf8_lossy(&text);
        // The first line repeats the severity; the specification's own first line stands already.
        let body = text.split_once('\n').map_or("", |(_, rest)| rest);
        for line in self.byte_columns(body, d).lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    /// ariadne counts the header's column in characters; columns of the language count bytes.
    fn byte_columns(&self, body: &str, d: &Diagnostic) -> String {
        let (line, col) = self.places.line_col(d.span.file, d.span.start);
        let file = one_line(self.places.display(d.span.file));
        let (head, rest) = body.split_once('\n').unwrap_or((body, ""));
        let Some(at) = head.find(&file) else { return body.to_owned() };
        let (before, after) = head.split_at(at + file.len());
        let tail = after.trim_start_matches([':', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        format!("{before}:{line}:{col}{tail}\n{rest}")
    }

    fn in_words(&self, out: &mut String, d: &Diagnostic) {
        if !d.label.is_empty() {
            let _ = writeln!(out, "  here: {}", one_line(&d.label));
        }
        for l in &d.related {
            let _ = writeln!(out, "  {}", self.label_in_words(l.span, &l.text));
        }
        for note in &d.notes {
            let _ = writeln!(out, "  note: {}", lines(note));
        }
        if let Some(help) = &d.help {
            let _ = writeln!(out, "  help: {}", lines(help));
        }
    }

    fn label_in_words(&self, span: Span, text: &str) -> String {
        let (line, col) = self.places.line_col(span.file, span.start);
        format!("{}:{line}:{col}: {}", one_line(self.places.display(span.file)), one_line(text))
    }

    /// The part of `span` that ariadne can show, at character boundaries; none if its first line is too long.
    fn shown(&mut self, span: Span) -> Option<Place> {
        let bytes = &self.files.get(index(span.file))?.bytes;
        let start = usize::try_from(span.start).ok()?.min(bytes.len());
        let mut end = usize::try_from(span.end).ok()?.clamp(start, bytes.len());
        let first_line = line_around(bytes, start)?;
        let (first, _) = self.places.line_col(span.file, span.start);
        let (last, _) = self.places.line_col(span.file, span.end);
        if last.saturating_sub(first) > SPAN_LINES_MAX {
            end = first_line.end;
        } else {
            let _ = line_around(bytes, end)?;
        }
        let slot = self.sources.get_mut(index(span.file))?;
        let source = slot.get_or_insert_with(|| Source::from(printable(bytes)));
        let text = source.text();
        let start = (0..=start).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let end = (end.max(start)..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        Some((span.file, start..end))
    }
}

impl Cache<FileId> for &mut Excerpts<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.sources.get(index(*id)).and_then(Option::as_ref).ok_or("no such source")
    }

    fn display<'b>(&self, id: &'b FileId) -> Option<impl std::fmt::Display + 'b> {
        Some(one_line(self.places.display(*id)))
    }
}

/// Text of several lines for a terminal.
fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// The line that holds `offset`, without its line feed; none if it is too long to be shown.
fn line_around(bytes: &[u8], offset: usize) -> Option<Range<usize>> {
    let (before, after) = bytes.split_at(offset.min(bytes.len()));
    let (lo, hi) = (before.len().saturating_sub(LINE_MAX), after.len().min(LINE_MAX));
    let (near_before, near_after) = (before.get(lo..)?, after.get(..hi)?);
    let start = match near_before.iter().rposition(|b| *b == b'\n') {
        Some(i) => lo + i + 1,
        None if lo == 0 => 0,
        None => return None,
    };
    let end = match near_after.iter().position(|b| *b == b'\n') {
        Some(i) => before.len() + i,
        None if hi == after.len() => bytes.len(),
        None => return None,
    };
    (end - start <= LINE_MAX).then_some(start..end)
}

/// The source as valid UTF-8 of the same length plus one: bytes that are no text, control characters and the line
/// separators that only ariadne knows become `?` (byte for byte), carriage returns and the byte-order mark blanks. The
/// added blank gives the end of the file a place.
fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 1);
    let mut rest = bytes;
    if let Some(tail) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        out.push_str("   ");
        rest = tail;
    }
    for chunk in rest.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => out.push(c),
                '\r' => out.push(' '),
                // Line separators, and what reorders a line.
                '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push_str("???"),
                c if c.is_control() => (0..c.len_utf8()).for_each(|_| out.push('?')),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|_| out.push('?'));
    }
    out.push(' ');
    out
}
