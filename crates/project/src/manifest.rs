//! `wo.toml` (language specification 4.4): double-quoted strings in a fixed set of keys. Unknown and duplicate keys are
//! errors, so a misspelt key never goes unnoticed.

use std::ops::Range;

use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub const MANIFEST: &str = "wo.toml";

/// Where the program comes from and what it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A single file.
    File,
    /// A directory without a manifest.
    Flat,
    /// `kind = "program"`, also when absent.
    Program,
    /// `kind = "library"`.
    Library,
}

#[derive(Clone, Debug)]
pub struct Manifest {
    pub name: String,
    pub kind: Kind,
    pub deps: Vec<DepEntry>,
}

/// One entry of `[deps]`.
#[derive(Clone, Debug)]
pub struct DepEntry {
    pub key: String,
    pub key_span: Span,
    pub source: DepSource,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DepSource {
    Path(String),
    Git { git: String, rev: String },
}

/// Manifest errors without a number of their own are syntax errors of the manifest.
pub const SYNTAX: u16 = 101;
pub const DEPENDENCY: u16 = 106;
const KIND: u16 = 109;

const TOP_KEYS: &str =
    "`name`, `version`, `description`, `kind`, and the sections `[runtime]`, `[build]`, `[deps]`, `[share]`";

/// Reads a manifest; spans in the diagnostics refer to `FileId(0)`.
///
/// # Errors
/// Everything wrong with it, in the order of the text.
pub fn parse(bytes: &[u8], woc_version: &str) -> Result<Manifest, Vec<Diagnostic>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            let at = e.valid_up_to();
            return Err(vec![syntax(at..at + 1, "the manifest is not valid UTF-8")]);
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shift = bytes.len() - text.len();
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(e) => {
            let span = e.span().unwrap_or(0..0);
            return Err(vec![syntax(span.start + shift..span.end + shift, &one_line(e.message()))]);
        }
    };
    let mut reader = Reader { text, shift, diagnostics: Vec::new() };
    let manifest = reader.manifest(table.get_ref(), woc_version);
    match manifest {
        Some(manifest) if reader.diagnostics.is_empty() => Ok(manifest),
        _ => Err(reader.diagnostics),
    }
}

fn one_line(message: &str) -> String {
    message.split('\n').map(str::trim).collect::<Vec<_>>().join(", ")
}

fn span(range: Range<usize>) -> Span {
    let at = |n| u32::try_from(n).unwrap_or(u32::MAX);
    Span::new(FileId(0), at(range.start), at(range.end))
}

fn syntax(range: Range<usize>, title: &str) -> Diagnostic {
    Diagnostic::error(SYNTAX, span(range), title)
        .label("here")
        .note("values of a manifest are double-quoted strings; unknown and duplicate keys are errors")
}

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;
type Value<'i> = Spanned<DeValue<'i>>;

struct Reader<'t> {
    text: &'t str,
    /// Length of a byte-order mark, which the spans of `toml` do not count.
    shift: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn manifest(&mut self, table: &DeTable<'_>, woc_version: &str) -> Option<Manifest> {
        let mut name = None;
        let mut kind = Kind::Program;
        let mut deps = Vec::new();
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                "name" => name = self.name(key, value),
                "version" | "description" => {
                    let _ = self.string(key, value);
                }
                "kind" => kind = self.kind(key, value)?,
                "runtime" => self.runtime(key, value, woc_version),
                "build" => self.build(key, value),
                "deps" => {
                    for (key, value) in self.section(key, value).into_iter().flat_map(in_order) {
                        deps.extend(self.dep(key, value));
                    }
                }
                "share" => {
                    let _ = self.section(key, value);
                }
                other => self.unknown(key, &format!("unknown key or section `{other}`"), TOP_KEYS),
            }
        }
        if name.is_none() && self.diagnostics.is_empty() {
            self.diagnostics.push(
                syntax(0..0, "the manifest has no `name`").help("add a line such as `name = \"hello\"` at the top"),
            );
        }
        Some(Manifest { name: name?, kind, deps })
    }

    fn name(&mut self, key: &Key<'_>, value: &Value<'_>) -> Option<String> {
        let name = self.string(key, value)?;
        if name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
            let title = format!("`{}` cannot be the name of a project", name.escape_debug());
            self.push(value.span(), &title, Some("a name is not empty and has no slash"));
        }
        Some(name)
    }

    fn kind(&mut self, key: &Key<'_>, value: &Value<'_>) -> Option<Kind> {
        match self.string(key, value)?.as_str() {
            "program" => Some(Kind::Program),
            "library" => Some(Kind::Library),
            other => {
                let title = format!("unknown kind `{}`: it is `program` or `library`", other.escape_debug());
                self.diagnostics.push(
                    Diagnostic::error(KIND, self.at(value.span()), title)
                        .label("not a kind")
                        .note("a program has a `main` and becomes an executable; a library is checked only")
                        .help("write `kind = \"program\"` or `kind = \"library\"`"),
                );
                None
            }
        }
    }

    fn runtime(&mut self, key: &Key<'_>, value: &Value<'_>, woc_version: &str) {
        for (key, value) in self.section(key, value).into_iter().flat_map(in_order) {
            if key.get_ref() != "wo" {
                self.unknown(key, &format!("unknown key `{}` in `[runtime]`", key.get_ref()), "`wo`");
                continue;
            }
            let Some(wanted) = self.string(key, value) else { continue };
            let number = wanted.strip_prefix(">=").unwrap_or(&wanted).trim();
            match (version(number), version(woc_version)) {
                (Some(minimum), Some(own)) if minimum <= own => {}
                (Some(_), _) => {
                    let title = format!("this program needs woc {number} or later; this is woc {woc_version}");
                    self.push(value.span(), &title, Some("install a later woc"));
                }
                (None, _) => {
                    let title = format!("`{}` is not a version", wanted.escape_debug());
                    self.push(value.span(), &title, Some("write a minimum such as `\">= 0.1\"`"));
                }
            }
        }
    }

    fn build(&mut self, key: &Key<'_>, value: &Value<'_>) {
        for (key, value) in self.section(key, value).into_iter().flat_map(in_order) {
            match key.get_ref().as_ref() {
                "target" | "runtime" => {
                    let _ = self.string(key, value);
                }
                other => self.unknown(key, &format!("unknown key `{other}` in `[build]`"), "`target`, `runtime`"),
            }
        }
    }

    fn dep(&mut self, key: &Key<'_>, value: &Value<'_>) -> Option<DepEntry> {
        let name = key.get_ref().as_ref();
        let shape = "write `{ path = \"../porch\" }` or `{ git = \"…\", rev = \"…\" }`";
        if !is_module_name(name) {
            return self.dep_error(
                key.span(),
                &format!("dependency key `{}` is no module name", name.escape_debug()),
                shape,
            );
        }
        let inline = self.text.get(value.span()).is_some_and(|source| source.starts_with('{'));
        let Some(table) = value.get_ref().as_table().filter(|_| inline) else {
            return self.dep_error(value.span(), &format!("dependency `{name}` is not an inline table"), shape);
        };
        let (mut path, mut git, mut rev) = (None, None, None);
        for (field, value) in in_order(table) {
            let slot = match field.get_ref().as_ref() {
                "path" => &mut path,
                "git" => &mut git,
                "rev" => &mut rev,
                other => {
                    let title = format!("unknown key `{}` in dependency `{name}`", other.escape_debug());
                    return self.dep_error(field.span(), &title, shape);
                }
            };
            match self.quoted(value) {
                Some(text) if !text.is_empty() => *slot = Some(text),
                _ => {
                    let title = format!("`{}` of dependency `{name}` is not a filled string", field.get_ref());
                    return self.dep_error(value.span(), &title, shape);
                }
            }
        }
        let source = match (path, git, rev) {
            (Some(path), None, None) => DepSource::Path(path),
            (None, Some(git), Some(rev)) => DepSource::Git { git, rev },
            (None, Some(_), None) => {
                return self.dep_error(value.span(), &format!("dependency `{name}` has no `rev`"), shape);
            }
            (None, None, Some(_)) => {
                return self.dep_error(value.span(), &format!("dependency `{name}` has no `git`"), shape);
            }
            (None, None, None) => {
                return self.dep_error(value.span(), &format!("dependency `{name}` says not where it is"), shape);
            }
            (Some(_), _, _) => {
                return self.dep_error(
                    value.span(),
                    &format!("dependency `{name}` has a `path` and a `git` source"),
                    shape,
                );
            }
        };
        Some(DepEntry { key: name.to_owned(), key_span: self.at(key.span()), source, span: self.at(value.span()) })
    }

    fn dep_error(&mut self, range: Range<usize>, title: &str, help: &str) -> Option<DepEntry> {
        self.diagnostics.push(
            Diagnostic::error(DEPENDENCY, self.at(range), title)
                .label("here")
                .note("a dependency is a directory, or a repository at one revision")
                .help(help),
        );
        None
    }

    fn section<'v, 'i>(&mut self, key: &Key<'_>, value: &'v Value<'i>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let name = key.get_ref();
            self.push(
                value.span(),
                &format!("`{name}` is a section"),
                Some(&format!("write `[{name}]` on its own line")),
            );
        }
        table
    }

    fn string(&mut self, key: &Key<'_>, value: &Value<'_>) -> Option<String> {
        let text = self.quoted(value);
        if text.is_none() {
            let title = format!("`{}` takes a double-quoted string", key.get_ref());
            self.push(value.span(), &title, None);
        }
        text
    }

    /// The value of a one-line double-quoted string.
    fn quoted(&self, value: &Value<'_>) -> Option<String> {
        let source = self.text.get(value.span())?;
        let plain = source.starts_with('"') && !source.starts_with("\"\"\"");
        value.get_ref().as_str().filter(|_| plain).map(str::to_owned)
    }

    fn unknown(&mut self, key: &Key<'_>, title: &str, accepted: &str) {
        self.push(key.span(), title, Some(&format!("accepted here: {accepted}")));
    }

    fn push(&mut self, range: Range<usize>, title: &str, help: Option<&str>) {
        let mut d = syntax(0..0, title);
        d.span = self.at(range);
        d.help = help.map(str::to_owned);
        self.diagnostics.push(d);
    }

    fn at(&self, range: Range<usize>) -> Span {
        span(range.start + self.shift..range.end + self.shift)
    }
}

/// Entries in the order of the text: the table itself is sorted by key.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn is_module_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// `1`, `1.2` or `1.2.3` as numbers that compare.
fn version(text: &str) -> Option<[u32; 3]> {
    let mut parts = [0; 3];
    for (i, part) in text.split('.').enumerate() {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *parts.get_mut(i)? = part.parse().ok().filter(|_| digits)?;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

    use super::*;

    fn ok(text: &str) -> Manifest {
        parse(text.as_bytes(), "0.1.0").unwrap_or_else(|d| panic!("{d:?}"))
    }

    fn error(text: &str) -> (String, u32, String) {
        let d = parse(text.as_bytes(), "0.1.0").unwrap_err();
        (d[0].code.to_string(), d[0].span.start, d[0].title.clone())
    }

    #[test]
    fn reads_every_key() {
        let m = ok(
            "\u{feff}name = \"a\"\nversion = \"1\"\ndescription = \"d\"\nkind = \"library\"\n[runtime]\nwo = \">= 0.1\"\n\
             [build]\ntarget = \"t\"\nruntime = \"r\"\n[deps]\nz = { path = \"../z\" }\ng = { git = \"u\", rev = \"v\" }\n\
             [share]\nx = 1\n[[share.clients]]\ny = 2\n",
        );
        assert_eq!((m.name.as_str(), m.kind), ("a", Kind::Library));
        let keys: Vec<_> = m.deps.iter().map(|d| d.key.as_str()).collect();
        assert_eq!(keys, ["z", "g"]);
        assert_eq!(ok("name = \"a\"").kind, Kind::Program);
    }

    #[test]
    fn positions_faults() {
        for (text, code, start) in [
            ("name = \"a\"\nnam = \"b\"\n", "WO-E101", 11),
            ("name = \"a\"\nname = \"b\"\n", "WO-E101", 11),
            ("name = 'a'\n", "WO-E101", 7),
            ("name = \"a/b\"\n", "WO-E101", 7),
            ("kind = \"program\"\n", "WO-E101", 0),
            ("name = \"a\"\nkind = \"tool\"\n", "WO-E109", 18),
            ("name = \"a\"\n[runtime]\nwo = \">= 9.0\"\n", "WO-E101", 26),
            ("name = \"a\"\n[extra]\n", "WO-E101", 12),
            ("name = \"a\"\n[deps]\nd = \"x\"\n", "WO-E106", 22),
            ("name = \"a\"\n[deps]\nd.path = \"x\"\n", "WO-E106", 18),
            ("name = \"a\"\n[deps]\n[deps.d]\npath = \"x\"\n", "WO-E106", 18),
            ("name = \"a\"\n[deps]\nd = { git = \"x\" }\n", "WO-E106", 22),
            ("name = \"a\"\n[deps]\nd = { path = \"\" }\n", "WO-E106", 31),
            ("name = \"a\"\n[deps]\nd = { path = \"x\", rev = \"y\" }\n", "WO-E106", 22),
        ] {
            let (found, at, title) = error(text);
            assert_eq!((found.as_str(), at), (code, start), "{text}: {title}");
        }
        assert!(parse(b"name = \"\xff\"", "0.1.0").is_err());
        let (_, _, title) = error("name = \"a\"\nkind = \"tool\"\n");
        assert!(title.contains("tool") && title.contains("program") && title.contains("library"));
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(version("0.10") > version("0.9.9"));
        assert_eq!(version("1"), version("1.0.0"));
        assert_eq!(version("1.x"), None);
        assert_eq!(version("1.2.3.4"), None);
        assert_eq!(version("+1"), None);
    }
}
