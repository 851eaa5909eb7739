//! Decimal texts of 64-bit integers.

/// A formatted integer.
#[derive(Clone, Copy)]
pub struct IntText {
    buf: [u8; 20],
    start: usize,
}

impl IntText {
    /// The digits, with `-` in front of a negative number.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf[self.start..]
    }
}

static PAIRS: [u8; 200] = pairs();

const fn pairs() -> [u8; 200] {
    let mut t = [0; 200];
    let mut i = 0;
    while i < 100 {
        t[2 * i] = b'0' + (i / 10) as u8;
        t[2 * i + 1] = b'0' + (i % 10) as u8;
        i += 1;
    }
    t
}

/// Decimal form of `n`.
#[must_use]
pub fn format(n: i64) -> IntText {
    let mut buf = [0; 20];
    let mut at = 20;
    let mut rest = n.unsigned_abs();
    while rest >= 100 {
        let pair = (rest % 100) as usize * 2;
        rest /= 100;
        at -= 2;
        buf[at] = PAIRS[pair];
        buf[at + 1] = PAIRS[pair + 1];
    }
    if rest >= 10 {
        let pair = rest as usize * 2;
        at -= 2;
        buf[at] = PAIRS[pair];
        buf[at + 1] = PAIRS[pair + 1];
    } else {
        at -= 1;
        buf[at] = b'0' + rest as u8;
    }
    if n < 0 {
        at -= 1;
        buf[at] = b'-';
    }
    IntText { buf, start: at }
}

/// White space of the language: space, tab, LF, CR.
#[must_use]
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Leading white space, an optional sign, digits; what follows is ignored. `None`: no digit, or out of range.
#[must_use]
pub fn parse_prefix(text: &[u8]) -> Option<i64> {
    let start = text.iter().position(|&b| !is_blank(b))?;
    let text = &text[start..];
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let n = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if n == 0 {
        return None;
    }
    accumulate(negative, &digits[..n])
}

/// An optional `-` and digits, nothing else. `None` when out of range or malformed.
#[must_use]
pub fn parse_exact(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    accumulate(negative, digits)
}

fn accumulate(negative: bool, digits: &[u8]) -> Option<i64> {
    let mut n = 0i64;
    for &d in digits {
        let d = i64::from(d - b'0');
        n = n.checked_mul(10)?;
        n = if negative { n.checked_sub(d)? } else { n.checked_add(d)? };
    }
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        for n in [0, 1, 9, 10, 99, 100, 101, 12345, -1, -10, -100, i64::MAX, i64::MIN] {
            assert_eq!(format(n).as_bytes(), n.to_string().as_bytes());
        }
    }

    #[test]
    fn prefixes() {
        let p = |t: &str| parse_prefix(t.as_bytes());
        assert_eq!(p(" +12ab"), Some(12));
        assert_eq!(p("\t\n\r -7 8"), Some(-7));
        assert_eq!(p("9223372036854775807"), Some(i64::MAX));
        assert_eq!(p("-9223372036854775808"), Some(i64::MIN));
        for bad in ["", " ", "+", "-", "a1", "+-1", "- 1", "9223372036854775808", "-9223372036854775809", "\x0b1"] {
            assert_eq!(p(bad), None, "{bad}");
        }
        assert_eq!(p("00000000000000000000000000001"), Some(1));
    }
}
