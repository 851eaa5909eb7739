//! Positions in source text. A span is a byte range of one file; lines and columns are computed from it on demand
//! (`LineIndex`), so no later stage carries line numbers of its own.

/// Index into the program's list of source files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Byte range `start..end` of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    #[must_use]
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// The smallest span that covers both; `other` must lie in the same file.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Byte offsets of line starts: the map from an offset to a 1-based line and column (columns count bytes).
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// `source` is the whole file; a byte-order mark does not shift columns of line 1.
    #[must_use]
    pub fn new(source: &[u8]) -> LineIndex {
        let first = if source.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let mut starts = vec![first];
        for (i, b) in source.iter().enumerate() {
            if *b == b'\n' {
                starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
            }
        }
        LineIndex { starts }
    }

    /// 1-based line and byte column of `offset`.
    #[must_use]
    pub fn line_col(&self, offset: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|s| *s <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        (u32::try_from(line).unwrap_or(u32::MAX), offset.saturating_sub(start) + 1)
    }
}
