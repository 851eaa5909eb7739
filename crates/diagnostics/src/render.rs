//! From diagnostics to text: the formats of the language specification, section 12.1.
//!
//! Output is a function of the diagnostics and the source bytes alone. Sources are outside input: any bytes, any line
//! length; an excerpt that cannot be shown sensibly is left out, the first line of a report always stands.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::excerpt::Excerpts;
use crate::span::{FileId, LineIndex, Span};
use crate::{Diagnostic, Severity};

/// A file as reports name and quote it. `FileId(n)` means the n-th of the list handed to `render`.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// FILE of the first line: the root argument joined with the relative path.
    pub display: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// First line, excerpt with labels, notes, helps.
    #[default]
    Human,
    /// First lines only.
    Short,
    /// One JSON object per line.
    Json,
}

/// Sorts by file, line and column (stable), drops exact repeats of (code, file, line, column) and renders what is left.
/// The result is empty without diagnostics and ends in a line feed otherwise.
pub fn render(diags: &mut Vec<Diagnostic>, files: &[SourceFile], format: Format, color: bool) -> String {
    let places = Places::new(files);
    let mut keyed: Vec<(Key, Diagnostic)> = diags.drain(..).map(|d| (places.key(&d), d)).collect();
    keyed.sort_by(|(a, _), (b, _)| (&a.file, a.line, a.col).cmp(&(&b.file, b.line, b.col)));
    let mut seen = HashSet::new();
    keyed.retain(|(k, d)| seen.insert((d.code, k.file.clone(), k.line, k.col)));
    *diags = keyed.into_iter().map(|(_, d)| d).collect();

    let mut out = String::new();
    let mut excerpts = Excerpts::new(files, &places);
    for (i, d) in diags.iter().enumerate() {
        match format {
            Format::Short => first_line(&mut out, d, &places),
            Format::Json => json_line(&mut out, d, &places),
            Format::Human => {
                if i > 0 {
                    out.push('\n');
                }
                first_line(&mut out, d, &places);
                excerpts.write(&mut out, d, color);
            }
        }
    }
    out
}

/// Titles and labels are cut at this length (bytes).
const TEXT_MAX: usize = 2_000;

struct Key {
    file: String,
    line: u32,
    col: u32,
}

/// Lines and columns of every file, computed once.
pub(crate) struct Places<'a> {
    files: &'a [SourceFile],
    lines: Vec<LineIndex>,
}

impl<'a> Places<'a> {
    fn new(files: &'a [SourceFile]) -> Places<'a> {
        Places { files, lines: files.iter().map(|f| LineIndex::new(&f.bytes)).collect() }
    }

    pub(crate) fn display(&self, file: FileId) -> &'a str {
        self.files.get(index(file)).map_or("<unknown>", |f| f.display.as_str())
    }

    pub(crate) fn line_col(&self, file: FileId, offset: u32) -> (u32, u32) {
        self.lines.get(index(file)).map_or((1, 1), |l| l.line_col(offset))
    }

    fn key(&self, d: &Diagnostic) -> Key {
        let (line, col) = self.line_col(d.span.file, d.span.start);
        Key { file: self.display(d.span.file).to_owned(), line, col }
    }
}

pub(crate) fn index(file: FileId) -> usize {
    usize::try_from(file.0).unwrap_or(usize::MAX)
}

fn severity(d: &Diagnostic) -> &'static str {
    match d.code.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn first_line(out: &mut String, d: &Diagnostic, places: &Places<'_>) {
    let (line, col) = places.line_col(d.span.file, d.span.start);
    let file = one_line(places.display(d.span.file));
    let _ = writeln!(out, "{file}:{line}:{col}: {} {}: {}", severity(d), d.code, one_line(&d.title));
}

/// Text for a terminal line: control characters from names and source text would break the line or drive the terminal,
/// a name of megabytes would bury the report.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(TEXT_MAX));
    for c in text.chars() {
        if out.len() >= TEXT_MAX {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    out
}

fn json_line(out: &mut String, d: &Diagnostic, places: &Places<'_>) {
    let _ = write!(out, "{{\"severity\":\"{}\",\"code\":\"{}\",\"title\":", severity(d), d.code);
    json_text(out, &d.title);
    out.push(',');
    json_place(out, d.span, places);
    out.push_str(",\"labels\":[");
    let primary = std::iter::once((d.span, d.label.as_str())).filter(|(_, text)| !text.is_empty());
    let labels = primary.chain(d.related.iter().map(|l| (l.span, l.text.as_str())));
    for (i, (span, text)) in labels.enumerate() {
        out.push_str(if i > 0 { ",{" } else { "{" });
        json_place(out, span, places);
        out.push_str(",\"text\":");
        json_text(out, text);
        out.push('}');
    }
    out.push_str("],\"notes\":[");
    for (i, note) in d.notes.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        json_text(out, note);
    }
    out.push_str("],\"help\":");
    match &d.help {
        Some(help) => json_text(out, help),
        None => out.push_str("null"),
    }
    out.push_str("}\n");
}

fn json_place(out: &mut String, span: Span, places: &Places<'_>) {
    let (line, col) = places.line_col(span.file, span.start);
    let (end_line, end_col) = places.line_col(span.file, span.end.max(span.start));
    out.push_str("\"file\":");
    json_text(out, places.display(span.file));
    let _ = write!(out, ",\"line\":{line},\"col\":{col},\"end_line\":{end_line},\"end_col\":{end_col}");
}

fn json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

    use super::*;

    fn file(text: &[u8]) -> Vec<SourceFile> {
        vec![SourceFile { display: "dir/a.wo".into(), bytes: text.to_vec() }]
    }

    fn at(start: u32, end: u32) -> Span {
        Span::new(FileId(0), start, end)
    }

    fn sample() -> Diagnostic {
        Diagnostic::error(301, at(20, 21), "`x` was moved")
            .label("used here")
            .related(at(8, 9), "moved here")
            .note("an owned value has one owner")
            .note("second note")
            .help("copy it \"first\"")
    }

    const TEXT: &[u8] = b"fn f()\n  x = 1\n    y(x)\n";

    #[test]
    fn short_is_the_first_line() {
        let mut d = vec![sample()];
        assert_eq!(render(&mut d, &file(TEXT), Format::Short, false), "dir/a.wo:3:6: error WO-E301: `x` was moved\n");
    }

    #[test]
    fn human_has_every_part_and_separates_reports() {
        let mut d = vec![sample(), Diagnostic::warning(204, at(0, 2), "maybe nil")];
        let text = render(&mut d, &file(TEXT), Format::Human, false);
        assert!(text.starts_with("dir/a.wo:1:1: warning WO-W204: maybe nil\n"), "{text}");
        assert!(text.contains("\n\ndir/a.wo:3:6: error WO-E301: `x` was moved\n"), "{text}");
        for part in ["used here", "moved here", "an owned value", "second note", "copy it", "dir/a.wo:3:6 ]"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(!text.contains("\n\n\n"), "{text}");
    }

    #[test]
    fn labels_of_one_file_share_an_excerpt() {
        for related in [at(3, 4), at(24, 24)] {
            let mut d = vec![Diagnostic::error(301, at(9, 10), "t").label("primary").related(related, "other")];
            let text = render(&mut d, &file(TEXT), Format::Human, false);
            assert_eq!(text.matches(" dir/a.wo:").count(), 1, "{text}");
        }
    }

    #[test]
    fn control_characters_stay_out_of_the_terminal() {
        let mut d = vec![sample().note("a\u{1b}b").help("c\rd")];
        d.extend([Diagnostic::error(1, at(1, 2), "x\u{7}y\nz").label("l\0").related(at(2, 3), "r\u{9b}")]);
        for format in [Format::Human, Format::Short, Format::Json] {
            let text = render(&mut d, &file(TEXT), format, false);
            assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\u{9b}'), "{text:?}");
            assert!(format == Format::Json || !text.contains('\u{9b}'));
        }
    }

    #[test]
    fn colour_only_on_request() {
        let mut d = vec![sample()];
        assert!(render(&mut d, &file(TEXT), Format::Human, true).contains('\u{1b}'));
    }

    #[test]
    fn json_has_the_listed_fields() {
        let mut d = vec![sample()];
        assert_eq!(
            render(&mut d, &file(TEXT), Format::Json, false),
            concat!(
                r#"{"severity":"error","code":"WO-E301","title":"`x` was moved","file":"dir/a.wo","line":3,"col":6,"#,
                r#""end_line":3,"end_col":7,"labels":[{"file":"dir/a.wo","line":3,"col":6,"end_line":3,"end_col":7,"#,
                r#""text":"used here"},{"file":"dir/a.wo","line":2,"col":2,"end_line":2,"end_col":3,"text":"moved here"}],"#,
                r#""notes":["an owned value has one owner","second note"],"help":"copy it \"first\""}"#,
                "\n"
            )
        );
    }

    #[test]
    fn sorts_and_drops_repeats() {
        let mut d = vec![
            Diagnostic::error(403, at(9, 10), "b"),
            Diagnostic::error(201, at(0, 1), "a"),
            Diagnostic::error(403, at(9, 12), "b again"),
            Diagnostic::error(202, at(9, 10), "c"),
        ];
        let text = render(&mut d, &file(TEXT), Format::Short, false);
        let titles: Vec<&str> = text.lines().map(|l| l.rsplit(": ").next().unwrap()).collect();
        assert_eq!(titles, ["a", "b", "c"]);
        assert_eq!(d.len(), 3);
    }

    #[test]
    fn hostile_sources_do_not_panic() {
        let mut texts: Vec<Vec<u8>> = vec![
            b"".to_vec(),
            b"\n".to_vec(),
            b"\xEF\xBB\xBFlet x".to_vec(),
            b"\xff\xfe\x00\x1b[31m\r\nab\rcd\x0b\x0c\n".to_vec(),
            "aß\u{2028}c\u{85}日本\n\té".as_bytes().to_vec(),
        ];
        texts.push(vec![b'\n'; 300]);
        for text in &texts {
            let len = u32::try_from(text.len()).unwrap();
            for start in 0..=len + 2 {
                for end in start..=len + 2 {
                    let mut d = vec![Diagnostic::error(1, at(start, end), "t").label("l").related(at(end, start), "r")];
                    for format in [Format::Human, Format::Json] {
                        let out = render(&mut d, &file(text), format, false);
                        assert!(!out.contains(['\u{1b}', '\r']));
                    }
                    if len > 100 && end > start + 30 {
                        break;
                    }
                }
            }
        }
        let mut lost = vec![Diagnostic::error(1, Span::new(FileId(9), 3, 4), "t")];
        assert_eq!(render(&mut lost, &[], Format::Human, false), "<unknown>:1:1: error WO-E001: t\n");
    }

    #[test]
    fn huge_lines_have_no_excerpt() {
        let text = vec![b'a'; 10_000_000];
        let mut d: Vec<Diagnostic> =
            (0..1000).map(|i| Diagnostic::error(1, at(i * 7, i * 7 + 1), "t").note("n")).collect();
        let started = std::time::Instant::now();
        let out = render(&mut d, &file(&text), Format::Human, false);
        assert!(out.len() < 200_000);
        assert!(out.contains("note: n"), "the notes stay");
        assert!(started.elapsed().as_secs() < 5);
    }
}
