//! JSON (RFC 8259): escaping, and a reader that steps over one document and checks its syntax strictly. Bytes at or
//! above 0x80 are taken verbatim. Nothing here recurses.

use crate::{PIECE, Sink, Turns};

/// Deepest nesting of arrays and objects, for both directions.
pub const DEPTH: u32 = 128;

/// Bytes at the front of `text` that need no escape in a string.
fn plain_prefix(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // Some byte of `word` is zero: exact for the lowest such byte, which is the one that is looked for.
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let mut at = 0;
    for chunk in text.chunks_exact(8) {
        let Ok(bytes) = <[u8; 8]>::try_from(chunk) else { break };
        let word = u64::from_le_bytes(bytes);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let found = control | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let tail = &text[at..];
    at + tail.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(tail.len())
}

/// Appends `text` as a string, quotes included.
pub fn quote(out: &mut impl Sink, text: &[u8]) {
    out.put(b"\"");
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_prefix(rest));
        out.put(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        match byte {
            b'"' => out.put(b"\\\""),
            b'\\' => out.put(b"\\\\"),
            b'\n' => out.put(b"\\n"),
            b'\r' => out.put(b"\\r"),
            b'\t' => out.put(b"\\t"),
            0x08 => out.put(b"\\b"),
            0x0c => out.put(b"\\f"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.put(&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        rest = after;
    }
    out.put(b"\"");
}

/// A number as it stands in the document.
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    pub text: &'a [u8],
    /// Has neither fraction nor exponent.
    pub integral: bool,
}

impl Number<'_> {
    /// The value of an integral number within 64 bits.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        if self.integral { crate::int::parse_exact(self.text) } else { None }
    }

    /// The nearest float, if it is finite.
    #[must_use]
    pub fn float(&self) -> Option<f64> {
        std::str::from_utf8(self.text).ok()?.parse().ok().filter(|f: &f64| f.is_finite())
    }
}

/// A string as it stands in the document, without its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a> {
    pub raw: &'a [u8],
    /// Contains at least one escape.
    pub escaped: bool,
}

impl Quoted<'_> {
    /// Appends the string that is meant. Never longer than `raw`.
    pub fn unescape(&self, out: &mut impl Sink) {
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest).filter(|_| !out.is_closed()) {
            out.put(&rest[..at]);
            let Some(&kind) = rest.get(at + 1) else { return };
            rest = &rest[at + 2..];
            let byte = match kind {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'b' => 0x08,
                b'f' => 0x0c,
                b'u' => {
                    let Some((c, after)) = code_point(rest) else { return };
                    out.put(c.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = after;
                    continue;
                }
                other => other,
            };
            out.put(&[byte]);
        }
        out.put(rest);
    }
}

/// The character after `\u`: four hex digits, or a surrogate pair `XXXX\uXXXX`; and what follows.
fn code_point(text: &[u8]) -> Option<(char, &[u8])> {
    let (first, rest) = hex4(text)?;
    if !(0xd800..0xe000).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let (second, rest) = hex4(rest.strip_prefix(b"\\u")?)?;
    if first >= 0xdc00 || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, rest))
}

fn hex4(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let mut n = 0;
    for &d in digits {
        n = n << 4 | char::from(d).to_digit(16)?;
    }
    Some((n, rest))
}

/// Steps over one document. A `None` result means a syntax error; the reader is of no use afterwards. Between pieces of a
/// long document, even within a token, others have their turn; should the rest not be read then, the document ends there.
#[derive(Debug)]
pub struct Reader<'a, T> {
    bytes: &'a [u8],
    /// Up to the end of the piece.
    seen: &'a [u8],
    at: usize,
    depth: u32,
    pub turns: T,
}

impl<'a, T: Turns> Reader<'a, T> {
    #[must_use]
    pub fn new(bytes: &'a [u8], turns: T) -> Reader<'a, T> {
        Reader { bytes, seen: &bytes[..bytes.len().min(PIECE)], at: 0, depth: 0, turns }
    }

    /// Goes on to the next piece; false where the document ends.
    #[cold]
    fn next_piece(&mut self) -> bool {
        if self.at < self.bytes.len() && !self.turns.give_way() {
            self.bytes = &self.bytes[..self.at];
        }
        self.seen = &self.bytes[..self.bytes.len().min(self.at + PIECE)];
        self.at < self.seen.len()
    }

    /// Steps over bytes that are `of` a kind.
    #[inline]
    fn run(&mut self, of: impl Fn(u8) -> bool) {
        loop {
            match self.seen.get(self.at) {
                Some(&b) if of(b) => self.at += 1,
                Some(_) => return,
                None if self.next_piece() => {}
                None => return,
            }
        }
    }

    fn blanks(&mut self) {
        self.run(crate::int::is_blank);
    }

    /// First byte of the next token, after white space.
    pub fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Nothing but white space is left.
    pub fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Steps over `word` if it comes next.
    pub fn literal(&mut self, word: &[u8]) -> bool {
        self.blanks();
        let found = self.bytes[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        self.run(|b| b.is_ascii_digit());
        self.at - start
    }

    pub fn number(&mut self) -> Option<Number<'a>> {
        self.blanks();
        let start = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else if self.digits() == 0 {
            return None;
        }
        let mut integral = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            integral = false;
            self.at += 1;
            if self.digits() == 0 {
                return None;
            }
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            integral = false;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        Some(Number { text: &self.bytes[start..self.at], integral })
    }

    pub fn string(&mut self) -> Option<Quoted<'a>> {
        if !self.eat(b'"') {
            return None;
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_prefix(self.seen.get(self.at..).unwrap_or_default());
            match self.seen.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Some(Quoted { raw: &self.bytes[start..self.at - 1], escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    match self.bytes.get(self.at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                        b'u' => {
                            let (_, rest) = code_point(&self.bytes[self.at + 2..])?;
                            self.at = self.bytes.len() - rest.len();
                        }
                        _ => return None,
                    }
                }
                None if self.next_piece() => {}
                _ => return None,
            }
        }
    }

    fn open(&mut self, bracket: u8) -> Option<()> {
        if !self.eat(bracket) || self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        Some(())
    }

    fn close(&mut self, bracket: u8) -> bool {
        let found = self.eat(bracket);
        self.depth -= u32::from(found);
        found
    }

    /// Steps into an array; true when it has an element, to be read next.
    pub fn array(&mut self) -> Option<bool> {
        self.open(b'[')?;
        Some(!self.close(b']'))
    }

    /// After an element: true when another one follows, false when the array has ended.
    pub fn next_element(&mut self) -> Option<bool> {
        if self.eat(b',') {
            return Some(true);
        }
        self.close(b']').then_some(false)
    }

    /// Steps into an object; its first key, or an inner `None` when it is empty. The value is to be read next.
    pub fn object(&mut self) -> Option<Option<Quoted<'a>>> {
        self.open(b'{')?;
        if self.close(b'}') {
            return Some(None);
        }
        self.key().map(Some)
    }

    /// After a value: the next key, or an inner `None` when the object has ended.
    pub fn next_key(&mut self) -> Option<Option<Quoted<'a>>> {
        if self.eat(b',') {
            return self.key().map(Some);
        }
        self.close(b'}').then_some(None)
    }

    fn key(&mut self) -> Option<Quoted<'a>> {
        let key = self.string()?;
        self.eat(b':').then_some(key)
    }

    /// Steps over any value, checking it; its bytes without surrounding white space.
    pub fn skip(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        let start = self.at;
        // One bit per open bracket, the innermost lowest: 1 for an object. `DEPTH` bits suffice.
        let mut kinds = 0u128;
        let base = self.depth;
        'value: loop {
            match self.peek()? {
                b'{' => {
                    if self.object()?.is_some() {
                        kinds = kinds << 1 | 1;
                        continue 'value;
                    }
                }
                b'[' => {
                    if self.array()? {
                        kinds <<= 1;
                        continue 'value;
                    }
                }
                b'"' => {
                    let _ = self.string()?;
                }
                b't' if self.literal(b"true") => {}
                b'f' if self.literal(b"false") => {}
                b'n' if self.literal(b"null") => {}
                b'-' | b'0'..=b'9' => {
                    let _ = self.number()?;
                }
                _ => return None,
            }
            loop {
                if self.depth == base {
                    return Some(&self.bytes[start..self.at]);
                }
                let more = if kinds & 1 == 1 { self.next_key()?.is_some() } else { self.next_element()? };
                if more {
                    continue 'value;
                }
                kinds >>= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn quoted(t: &[u8]) -> String {
        let mut out = Vec::new();
        quote(&mut out, t);
        String::from_utf8(out).unwrap()
    }

    fn valid(t: &[u8]) -> bool {
        let mut r = Reader::new(t, ());
        r.skip().is_some() && r.at_end()
    }

    #[test]
    fn escapes() {
        assert_eq!(quoted(b""), r#""""#);
        assert_eq!(quoted(b"a\"b\\c\n\r\t\x08\x0c\x01\x1f/\x7f"), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/\x7f\"");
        for n in 0..40 {
            for special in [b'"', 0x1f, b'\\', 0, b' ', 0x21, 0x80, 0xff, 0x5b, 0x5d, 0x23] {
                let mut t = vec![0xe9u8; n];
                t.push(special);
                t.extend_from_slice(b"tail tail tail");
                let expected = if special < 0x20 || special == b'"' || special == b'\\' { n } else { t.len() };
                assert_eq!(plain_prefix(&t), expected);
            }
        }
    }

    #[test]
    fn syntax() {
        for good in [
            "1",
            " 0 ",
            "-0",
            "-1.5e+10",
            "1E5",
            "0.0",
            "true",
            "false",
            "null",
            "\"\"",
            "[]",
            "{}",
            "[1,2]",
            "{\"a\":1,\"b\":[{}]}",
            "\t\n\r [ ] ",
            r#""\u00e9\ud83d\ude00\/""#,
            "[[[]]]",
            "\"\u{7f}\"",
        ] {
            assert!(valid(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            " ",
            "1 2",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "1e+",
            "-",
            "--1",
            "nul",
            "True",
            "tru",
            "nulll",
            "\"",
            "\"\t\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "{\"a\":1 \"b\":2}",
            "[}",
            "{]",
            "]",
            "'a'",
            "NaN",
            "Infinity",
            "0x1",
            "1_0",
            "/**/1",
            "\u{feff}1",
            "\"a\nb\"",
            "\u{b}1",
        ] {
            assert!(!valid(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn depth() {
        let nest = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(valid(nest(128).as_bytes()));
        assert!(!valid(nest(129).as_bytes()));
        let objects = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
        assert!(valid(objects(128).as_bytes()));
        assert!(!valid(objects(129).as_bytes()));
        assert!(!valid("[".repeat(1_000_000).as_bytes()));
    }

    #[test]
    fn unescapes() {
        let un = |t: &str| {
            let mut out = Vec::new();
            Reader::new(t.as_bytes(), ()).string().unwrap().unescape(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(un(r#""a\n\t\"\\\/\b\f\r""#), "a\n\t\"\\/\u{8}\u{c}\r");
        assert_eq!(un(r#""\u0041\u00E9\u20ac\uD83D\uDE00\u0000z""#), "A\u{e9}\u{20ac}\u{1f600}\0z");
    }

    /// Counts the turns, and allows so many.
    struct Allowed(usize, usize);

    impl Turns for Allowed {
        fn give_way(&mut self) -> bool {
            self.0 += 1;
            self.0 <= self.1
        }
    }

    #[test]
    fn long_documents_are_read_in_pieces() {
        for (front, part, back) in [
            ("[", " ", "0]"),
            ("[", "[1.25, true ,{\"a\":null}],", "0]"),
            ("[\"", "x", "\"]"),
            ("[\"", r"abcde\n", "\"]"),
            ("[\"", r"\ud83d\ude00", "\"]"),
            ("[", "7", "]"),
            ("[0.", "7", "]"),
        ] {
            let document = format!("{front}{}{back}", part.repeat((8 * PIECE + 200) / part.len()));
            for allowed in 0..10 {
                let mut r = Reader::new(document.as_bytes(), Allowed(0, allowed));
                let read = r.skip().map(<[u8]>::len);
                assert!(r.at_end());
                let expected = if allowed < 8 { (None, allowed + 1) } else { (Some(document.len()), 8) };
                assert_eq!((read, r.turns.0), expected, "{part}");
            }
        }
    }

    #[test]
    fn any_bytes_are_accepted_or_refused() {
        let alphabet = b"[]{}\",:\\u0d8 \n1e.-tfn\xff";
        let mut x = 88_172_645_463_325_252u64;
        for _ in 0..200_000 {
            let mut doc = [0u8; 12];
            for b in &mut doc {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                *b = alphabet[(x % alphabet.len() as u64) as usize];
            }
            let _ = valid(&doc);
        }
    }
}
