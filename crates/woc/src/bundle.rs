//! A program as bytes: the sources and flags that `woc build` puts behind a copy of its own executable.
//!
//! Numbers are little-endian; a string is its length as `u32` and its bytes. Paths are those of stack traces, relative
//! to the project, so that a built program says nothing about the machine that built it.

use std::path::{Path, PathBuf};

use project::{Kind, Project, ProjectFile};

/// What a built program starts from.
#[derive(Debug)]
pub struct Bundle {
    pub project: Project,
    /// Build flags of `-D`.
    pub flags: Vec<String>,
    pub passes: mir::Passes,
}

/// The bytes of a bundle. Fails only for a single item of 4 GiB or more.
pub fn encode(project: &Project, flags: &[String], passes: mir::Passes) -> Option<Vec<u8>> {
    let mut out = vec![passes.bits()];
    string(&mut out, project.name.as_bytes())?;
    count(&mut out, flags.len())?;
    for flag in flags {
        string(&mut out, flag.as_bytes())?;
    }
    count(&mut out, project.files.len())?;
    for file in &project.files {
        string(&mut out, display(file).as_bytes())?;
        count(&mut out, usize::from(file.package.is_some()))?;
        string(&mut out, file.package.as_deref().unwrap_or_default().as_bytes())?;
        count(&mut out, file.module.len())?;
        for segment in &file.module {
            string(&mut out, segment.as_bytes())?;
        }
        string(&mut out, &file.bytes)?;
    }
    Some(out)
}

/// The path of a file below the project, or below the key of its dependency.
fn display(file: &ProjectFile) -> String {
    let name = Path::new(&file.display).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let parts = file.package.iter().chain(&file.module).cloned().chain([name]);
    parts.collect::<Vec<_>>().join("/")
}

fn count(out: &mut Vec<u8>, n: usize) -> Option<()> {
    out.extend_from_slice(&u32::try_from(n).ok()?.to_le_bytes());
    Some(())
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    count(out, bytes.len())?;
    out.extend_from_slice(bytes);
    Some(())
}

/// The bundle in `bytes`; none if they are not exactly one.
pub fn decode(bytes: &[u8]) -> Option<Bundle> {
    let mut reader = Reader { rest: bytes };
    let (passes, rest) = bytes.split_first()?;
    reader.rest = rest;
    let name = reader.text()?;
    let mut flags = Vec::new();
    for _ in 0..reader.count()? {
        flags.push(reader.text()?);
    }
    let mut files = Vec::new();
    for _ in 0..reader.count()? {
        let display = reader.text()?;
        let has_package = reader.count()? != 0;
        let package = Some(reader.text()?).filter(|_| has_package);
        let mut module = Vec::new();
        for _ in 0..reader.count()? {
            module.push(reader.text()?);
        }
        let bytes = reader.string()?.to_vec();
        files.push(ProjectFile { display, package, module, bytes });
    }
    let project = Project { root: PathBuf::new(), name, kind: Kind::Program, files, deps: Vec::new() };
    reader.rest.is_empty().then_some(Bundle { project, flags, passes: mir::Passes::from_bits(*passes) })
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn count(&mut self) -> Option<usize> {
        let (bytes, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }

    fn string(&mut self) -> Option<&'b [u8]> {
        let n = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        self.string().and_then(|b| String::from_utf8(b.to_vec()).ok())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_part_of_it_is_nothing() {
        let file = |display: &str, package: Option<&str>, module: &[&str]| ProjectFile {
            display: display.to_owned(),
            package: package.map(str::to_owned),
            module: module.iter().map(|s| (*s).to_owned()).collect(),
            bytes: b"fn main() { }".to_vec(),
        };
        let files = vec![file("/home/x/p/main.wo", None, &[]), file("/home/x/p/.wo-deps/k/a/b.wo", Some("k"), &["a"])];
        let project = Project { root: "/home/x/p".into(), name: "p".into(), kind: Kind::Program, files, deps: vec![] };
        let bytes = encode(&project, &["LOUD".to_owned()], mir::Passes::ALL).unwrap();
        let back = decode(&bytes).unwrap();
        assert_eq!(
            (back.project.name.as_str(), back.flags, back.passes),
            ("p", vec!["LOUD".to_owned()], mir::Passes::ALL)
        );
        let names: Vec<_> = back.project.files.iter().map(|f| f.display.as_str()).collect();
        assert_eq!(names, ["main.wo", "k/a/b.wo"]);
        assert_eq!(back.project.files[1].package.as_deref(), Some("k"));
        assert_eq!(back.project.files[1].module, ["a"]);
        for n in 0..bytes.len() {
            assert!(decode(&bytes[..n]).is_none(), "{n}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(decode(&longer).is_none());
    }
}
