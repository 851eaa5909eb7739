//! Text form of floats: the shortest decimal rendering that reads back to the same bits, in fixed or scientific
//! notation by its exponent; and the parser of `parse_float`.

use std::io::Write as _;

/// Longest text: sign, 21 digits, point, or `0.` and 22 decimals; 16 decimals and an exponent in scientific notation.
const CAPACITY: usize = 64;

/// A formatted float.
#[derive(Clone, Copy)]
pub struct FloatText {
    buf: [u8; CAPACITY],
    len: usize,
}

impl FloatText {
    /// The text, ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    const fn empty() -> FloatText {
        FloatText { buf: [0; CAPACITY], len: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.buf.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn write(args: std::fmt::Arguments<'_>) -> FloatText {
        let mut text = FloatText::empty();
        let mut room = text.buf.as_mut_slice();
        // The capacity covers every rendering asked for below, so this cannot fail.
        let _ = room.write_fmt(args);
        let left = room.len();
        text.len = CAPACITY - left;
        text
    }
}

/// Significant digits and decimal exponent of a scientific rendering without its sign: `d.ddde-7`.
struct Scientific {
    digits: [u8; 17],
    count: usize,
    exponent: i32,
}

impl Scientific {
    fn read(text: &[u8]) -> Scientific {
        let mut s = Scientific { digits: [b'0'; 17], count: 0, exponent: 0 };
        let e = memchr::memchr(b'e', text).unwrap_or(text.len());
        for &b in text[..e].iter().filter(|b| b.is_ascii_digit()) {
            if s.count < s.digits.len() {
                s.digits[s.count] = b;
                s.count += 1;
            }
        }
        s.exponent =
            std::str::from_utf8(text.get(e + 1..).unwrap_or_default()).ok().and_then(|t| t.parse().ok()).unwrap_or(0);
        s
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }
}

/// The text form of `f`.
#[must_use]
pub fn format(f: f64) -> FloatText {
    let mut out = FloatText::empty();
    if f.is_nan() {
        out.put(b"nan");
        return out;
    }
    if f.is_sign_negative() {
        out.put(b"-");
    }
    let f = f.abs();
    if f.is_infinite() {
        out.put(b"inf");
        return out;
    }
    if f == 0.0 {
        out.put(b"0.0");
        return out;
    }
    let mut shortest = Scientific::read(FloatText::write(format_args!("{f:e}")).as_bytes());
    // Up to 15 digits survive decimal -> binary -> decimal, so the shortest digits are the correctly rounded ones, and
    // below 10^16 the zeros behind them are exact too.
    let easy = f.is_normal() && shortest.count <= 15;
    if !easy {
        shortest = rounded(f, shortest.count);
        // Beside a power of two the interval that reads back as `f` is lopsided, and among subnormals it is wide: there
        // the shortest digits may not be the correctly rounded ones, and one more is needed.
        if !f.is_normal() || f.to_bits() << 12 == 0 {
            while shortest.count < 17 && !reads_back(f, shortest.count) {
                shortest = rounded(f, shortest.count + 1);
            }
        }
    }
    let e = shortest.exponent;
    if (-6..21).contains(&e) {
        if (easy && e <= 15) || shortest.count as i32 - 1 - e >= 1 {
            fixed(&mut out, &shortest);
        } else {
            let decimals = usize::try_from(shortest.count as i32 - 1 - e).unwrap_or(0).max(1);
            out.put(FloatText::write(format_args!("{f:.decimals$}")).as_bytes());
        }
    } else {
        scientific(&mut out, &shortest);
    }
    out
}

/// `f` correctly rounded to `count` significant digits.
fn rounded(f: f64, count: usize) -> Scientific {
    let text = FloatText::write(format_args!("{f:.*e}", count.max(1) - 1));
    Scientific { count, ..Scientific::read(text.as_bytes()) }
}

fn reads_back(f: f64, count: usize) -> bool {
    let text = FloatText::write(format_args!("{f:.*e}", count.max(1) - 1));
    let back = std::str::from_utf8(text.as_bytes()).ok().and_then(|t| t.parse::<f64>().ok());
    back.is_some_and(|b| b.to_bits() == f.to_bits())
}

fn fixed(out: &mut FloatText, s: &Scientific) {
    const ZEROS: &[u8] = b"0000000000000000";
    let digits = s.digits();
    if let Ok(e) = usize::try_from(s.exponent) {
        let whole = e + 1;
        if digits.len() > whole {
            out.put(&digits[..whole]);
            out.put(b".");
            out.put(&digits[whole..]);
        } else {
            out.put(digits);
            out.put(&ZEROS[..whole - digits.len()]);
            out.put(b".0");
        }
    } else {
        out.put(b"0.");
        out.put(&ZEROS[..s.exponent.unsigned_abs() as usize - 1]);
        out.put(digits);
    }
}

fn scientific(out: &mut FloatText, s: &Scientific) {
    let digits = s.digits();
    out.put(&digits[..1]);
    if digits.len() > 1 {
        out.put(b".");
        out.put(&digits[1..]);
    }
    out.put(if s.exponent < 0 { b"e-" } else { b"e+" });
    let e = s.exponent.unsigned_abs();
    if e < 10 {
        out.put(b"0");
    }
    out.put(crate::int::format(i64::from(e)).as_bytes());
}

/// Leading white space, then a decimal float or `inf`, `infinity`, `nan` in any case, and nothing after it; anything
/// else is NaN.
#[must_use]
pub fn parse(text: &[u8]) -> f64 {
    let start = text.iter().position(|&b| !crate::int::is_blank(b)).unwrap_or(text.len());
    std::str::from_utf8(&text[start..]).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::NAN)
}

/// -1, 0, 1 by the total order: -inf < finite < +inf < NaN; zeros are equal, NaNs are equal.
#[must_use]
pub fn compare(a: f64, b: f64) -> std::cmp::Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn text(f: f64) -> String {
        String::from_utf8(format(f).as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn listed_texts() {
        let cases: [(f64, &str); 18] = [
            (3.0, "3.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (20_000_000_000.0, "20000000000.0"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-07"),
            (1.5e-7, "1.5e-07"),
            (1e21, "1e+21"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (123_456_789_012_345_680.0, "123456789012345680.0"),
            (-1234.5, "-1234.5"),
        ];
        for (f, t) in cases {
            assert_eq!(text(f), t);
        }
    }

    #[test]
    fn powers_of_ten() {
        let expected = [
            "1e-08", "1e-07", "0.000001", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "100.0", "1000.0",
        ];
        for (i, t) in expected.iter().enumerate() {
            let f: f64 = format!("1e{}", i as i32 - 8).parse().unwrap();
            assert_eq!(text(f), *t);
        }
        for e in 4..21 {
            let f: f64 = format!("1e{e}").parse().unwrap();
            assert_eq!(text(f), format!("1{}.0", "0".repeat(e)));
        }
        assert_eq!(text(1e21), "1e+21");
        assert_eq!(text(1e22), "1e+22");
    }

    /// The definition, without short cuts.
    fn slow(f: f64) -> String {
        for d in 1..=17usize {
            let sci = format!("{f:.*e}", d - 1);
            if sci.parse::<f64>().unwrap().to_bits() != f.to_bits() {
                continue;
            }
            let (mantissa, e) = sci.split_once('e').unwrap();
            let e: i32 = e.parse().unwrap();
            return if (-6..21).contains(&e) {
                format!("{f:.*}", (d as i32 - 1 - e).max(1) as usize)
            } else {
                format!("{mantissa}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
            };
        }
        unreachable!()
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        for i in 0..60_000u64 {
            let r = next();
            let f = match i % 6 {
                // quarters and eighths just below 2^53, where decimal ties occur
                4 => (r >> 11) as f64 / 4.0,
                5 => (r >> 11 | 1 << 52) as f64 / 8.0,
                0 => f64::from_bits(r),
                1 => (r % 1_000_000) as f64 / 1000.0,
                2 => r as f64,
                // around powers of two, where the interval is lopsided
                _ => f64::from_bits((r % 2047) << 52),
            };
            if f.is_finite() {
                assert_eq!(text(f), slow(f), "{:#x}", f.to_bits());
                assert_eq!(parse(text(f).as_bytes()).to_bits(), f.to_bits());
            }
        }
    }

    #[test]
    fn exact_renderings_round_half_to_even() {
        // The listed definition is C's `%.Nf`: ties go to the even digit.
        assert_eq!(format!("{:.1} {:.1} {:.0} {:.0} {:.1e}", 0.25, 0.75, 0.5, 2.5, 2.25), "0.2 0.8 0 2 2.2e0");
    }

    #[test]
    fn parses() {
        for (t, f) in [
            ("1", 1.0),
            (" \t\n\r-2.5e3", -2500.0),
            ("inf", f64::INFINITY),
            ("-InFiNiTy", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
            (".5", 0.5),
            ("5.", 5.0),
            ("+3", 3.0),
        ] {
            assert_eq!(parse(t.as_bytes()).to_bits(), f.to_bits(), "{t}");
        }
        for bad in ["", " ", "1 ", "1x", "0x10", "e5", "1e", "--1", "nan", "NaN", "infi", "\u{a0}1", "1_0"] {
            assert!(parse(bad.as_bytes()).is_nan(), "{bad}");
        }
        let long = format!("0.{}1", "0".repeat(5000));
        assert_eq!(parse(long.as_bytes()), 0.0);
        assert!(parse(b"1\xff").is_nan());
    }

    #[test]
    fn total_order() {
        let order = [f64::NEG_INFINITY, -1.0, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
        for (i, &a) in order.iter().enumerate() {
            for (j, &b) in order.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j));
            }
        }
        assert_eq!(compare(-0.0, 0.0), std::cmp::Ordering::Equal);
        assert_eq!(compare(-f64::NAN, f64::NAN), std::cmp::Ordering::Equal);
    }
}
