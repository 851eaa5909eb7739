//! Texts.

use super::{Pair, Ptr, clamped, making, retained, symbol_table};
use abi::desc::TYPE_TEXT;
use abi::layout::KIND_TEXT;
use abi::symbols::PART_FLOAT;
use abi::trap;
use codec::Sink;
use codec::int::is_blank;
use memchr::memmem;
use values::ctx::{Ctx, entry};
use values::object::{self, Obj};
use values::text::{self, Builder, Part, bytes};
use values::{cycles, multi};

symbol_table! {
    "text.concat" = concat,
    "text.append" = append,
    "text.eq" = eq,
    "text.cmp" = cmp,
    "bool.to_text" = bool_to_text,
    "byte_at" = byte_at,
    "substr" = substr,
    "index_of" = index_of,
    "last_index_of" = last_index_of,
    "starts_with" = starts_with,
    "ends_with" = ends_with,
    "trim" = trim,
    "to_lower" = to_lower,
    "char_of" = char_of,
    "words" = words,
    "split" = split,
    "split_ws" = split_ws,
    "join" = join,
    "int_to_text" = int_to_text,
    "utf8_check" = utf8_check,
    "parse_int" = parse_int,
}

// SAFETY, for the whole module: generated code passes the context of the running fiber and, where a text is wanted, a
// live text or null, which stays alive for the duration of the call; nothing changes a text while it is borrowed.

/// The parts that generated code has laid out.
///
/// # Safety
/// `parts` points at `n` parts, or `n` is 0.
unsafe fn parts<'a>(parts: *const Part, n: u64) -> &'a [Part] {
    if n == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(parts, n as usize) }
}

/// Outside `entry` unless a float is among the parts: integers are formatted into a buffer that fits every one, and
/// the rest is copying.
pub(super) extern "C" fn concat(ctx: *mut Ctx, from: *const Part, n: u64) -> *mut Obj {
    // SAFETY: see the module.
    unsafe {
        let parts = parts(from, n);
        if parts.iter().any(|p| p.kind == PART_FLOAT) {
            return making(ctx, |ctx| Ptr(text::concat(ctx, parts))).0;
        }
        cycles::with_relief(&mut *ctx, |ctx| text::concat(ctx, parts))
    }
}

/// Outside `entry` as `concat`.
pub(super) extern "C" fn append(ctx: *mut Ctx, text: *mut Obj, from: *const Part, n: u64) -> *mut Obj {
    // SAFETY: see the module; generated code owns a reference to `text`.
    unsafe {
        let parts = parts(from, n);
        if parts.iter().any(|p| p.kind == PART_FLOAT) {
            return entry(ctx, |ctx| Ptr(text::append(ctx, text, parts))).0;
        }
        text::append(&mut *ctx, text, parts)
    }
}

/// Outside `entry`: compares memory, nothing else.
pub(super) extern "C" fn eq(_: *mut Ctx, a: *mut Obj, b: *mut Obj) -> u64 {
    // SAFETY: see the module.
    u64::from(unsafe { text::eq(a, b) })
}

/// Outside `entry` as `eq`.
pub(super) extern "C" fn cmp(_: *mut Ctx, a: *mut Obj, b: *mut Obj) -> i64 {
    // SAFETY: see the module.
    unsafe { bytes(a).cmp(bytes(b)) as i64 }
}

pub(super) extern "C" fn bool_to_text(_: *mut Ctx, value: u64) -> *mut Obj {
    text::of_bool(value != 0)
}

pub(super) extern "C" fn byte_at(ctx: *mut Ctx, t: *mut Obj, i: i64) -> i64 {
    // SAFETY: see the module. Outside `entry` but for the failure: `get` does not panic.
    let byte = usize::try_from(i).ok().and_then(|i| unsafe { bytes(t) }.get(i));
    match byte {
        Some(&b) => i64::from(b),
        None => {
            entry(ctx, |ctx| ctx.raise(trap::BOUNDS, trap::BYTE_INDEX));
            0
        }
    }
}

/// The bytes `part` of `t` as a text: `t` itself when it is all of it.
///
/// # Safety
/// `part` lies within the bytes of `t`.
unsafe fn piece(ctx: &mut Ctx, t: *mut Obj, part: &[u8]) -> *mut Obj {
    // SAFETY: see the module.
    unsafe {
        match part {
            [] => text::empty(),
            [byte] => text::of_byte(*byte),
            _ if part.len() == bytes(t).len() => retained(t),
            _ => text::new(ctx, part),
        }
    }
}

/// Outside `entry` as `concat`: the range is clamped to the text.
pub(super) extern "C" fn substr(ctx: *mut Ctx, t: *mut Obj, start: i64, n: i64) -> *mut Obj {
    // SAFETY: see the module.
    unsafe {
        let all = bytes(t);
        let part = all.get(clamped(all.len(), start, n)).unwrap_or_default();
        cycles::with_relief(&mut *ctx, |ctx| piece(ctx, t, part))
    }
}

fn offset(found: Option<usize>) -> i64 {
    found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

/// Outside `entry` for a needle of one byte.
pub(super) extern "C" fn index_of(ctx: *mut Ctx, t: *mut Obj, needle: *mut Obj) -> i64 {
    // SAFETY: see the module.
    match unsafe { (bytes(t), bytes(needle)) } {
        (t, [byte]) => offset(memchr::memchr(*byte, t)),
        (t, needle) => entry(ctx, |_| offset(memmem::find(t, needle))),
    }
}

pub(super) extern "C" fn last_index_of(ctx: *mut Ctx, t: *mut Obj, needle: *mut Obj) -> i64 {
    // SAFETY: see the module.
    entry(ctx, |_| offset(unsafe { memmem::rfind(bytes(t), bytes(needle)) }))
}

pub(super) extern "C" fn starts_with(_: *mut Ctx, t: *mut Obj, p: *mut Obj) -> u64 {
    // SAFETY: see the module.
    u64::from(unsafe { bytes(t).starts_with(bytes(p)) })
}

pub(super) extern "C" fn ends_with(_: *mut Ctx, t: *mut Obj, s: *mut Obj) -> u64 {
    // SAFETY: see the module.
    u64::from(unsafe { bytes(t).ends_with(bytes(s)) })
}

pub(super) extern "C" fn trim(ctx: *mut Ctx, t: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        let mut part = bytes(t);
        while let [first, rest @ ..] = part
            && is_blank(*first)
        {
            part = rest;
        }
        while let [rest @ .., last] = part
            && is_blank(*last)
        {
            part = rest;
        }
        Ptr(piece(ctx, t, part))
    })
    .0
}

pub(super) extern "C" fn to_lower(ctx: *mut Ctx, t: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        let from = bytes(t);
        ctx.works(from.len());
        if !from.iter().any(u8::is_ascii_uppercase) {
            return Ptr(if t.is_null() { text::empty() } else { retained(t) });
        }
        Ptr(text::new_with(ctx, KIND_TEXT, from.len(), |room| {
            for (to, b) in room.iter_mut().zip(from) {
                *to = b.to_ascii_lowercase();
            }
        }))
    })
    .0
}

pub(super) extern "C" fn char_of(_: *mut Ctx, b: i64) -> *mut Obj {
    text::of_byte(b as u8)
}

/// The words of `t`.
fn split_words(t: &[u8]) -> impl Iterator<Item = &[u8]> {
    t.split(|&b| is_blank(b)).filter(|w| !w.is_empty())
}

pub(super) extern "C" fn words(ctx: *mut Ctx, t: *mut Obj) -> i64 {
    // SAFETY: see the module.
    entry(ctx, |ctx| unsafe {
        ctx.works(bytes(t).len());
        split_words(bytes(t)).count() as i64
    })
}

/// Collects texts into a new `multi Text`.
fn collect<'a>(ctx: &mut Ctx, pieces: impl Iterator<Item = &'a [u8]>) -> *mut Obj {
    let list = multi::new(ctx, TYPE_TEXT, 0);
    if list.is_null() {
        return list;
    }
    for part in pieces {
        let t = match part {
            [byte] => text::of_byte(*byte),
            _ => text::new(ctx, part),
        };
        // SAFETY: the list is owned here; the text is consumed.
        unsafe {
            if t.is_null() || !multi::push(ctx, list, t as u64, 0) {
                object::release(ctx, list);
                return std::ptr::null_mut();
            }
        }
    }
    list
}

pub(super) extern "C" fn split(ctx: *mut Ctx, t: *mut Obj, sep: *mut Obj) -> *mut Obj {
    making(ctx, |ctx| {
        // SAFETY: see the module.
        let (t, sep) = unsafe { (bytes(t), bytes(sep)) };
        if sep.is_empty() {
            ctx.raise(trap::BOUNDS, "`split` needs a non-empty separator");
            return Ptr::default();
        }
        ctx.works(t.len());
        let mut start = Some(0);
        let mut found = memmem::find_iter(t, sep);
        let pieces = std::iter::from_fn(|| {
            let from = start?;
            let end = found.next();
            start = end.map(|at| at + sep.len());
            t.get(from..end.unwrap_or(t.len()))
        });
        Ptr(collect(ctx, pieces))
    })
    .0
}

pub(super) extern "C" fn split_ws(ctx: *mut Ctx, t: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        ctx.works(bytes(t).len());
        Ptr(collect(ctx, split_words(bytes(t))))
    })
    .0
}

pub(super) extern "C" fn join(ctx: *mut Ctx, list: *mut Obj, sep: *mut Obj) -> *mut Obj {
    // SAFETY: see the module; the elements are texts or null.
    making(ctx, |ctx| unsafe {
        let sep = bytes(sep);
        let elements = multi::words(ctx, list);
        let parts = || elements.iter().map(|&e| bytes(e as *mut Obj));
        let len =
            parts().fold(sep.len().saturating_mul(elements.len().saturating_sub(1)), |n, p| n.saturating_add(p.len()));
        if len == 0 {
            return Ptr(text::empty());
        }
        ctx.works(len);
        let mut out = Builder::new(ctx, KIND_TEXT, len);
        for (i, part) in parts().enumerate() {
            if i > 0 {
                out.put(sep);
            }
            out.put(part);
        }
        Ptr(out.finish())
    })
    .0
}

/// Outside `entry` as `concat`.
pub(super) extern "C" fn int_to_text(ctx: *mut Ctx, n: i64) -> *mut Obj {
    // SAFETY: see the module.
    cycles::with_relief(unsafe { &mut *ctx }, |ctx| text::new(ctx, codec::int::format(n).as_bytes()))
}

pub(super) extern "C" fn utf8_check(ctx: *mut Ctx, t: *mut Obj) -> i64 {
    // SAFETY: see the module.
    entry(ctx, |_| match std::str::from_utf8(unsafe { bytes(t) }) {
        Ok(_) => 0,
        Err(e) if e.error_len().is_none() => 1,
        Err(_) => 2,
    })
}

pub(super) extern "C" fn parse_int(ctx: *mut Ctx, t: *mut Obj) -> Pair {
    // SAFETY: see the module.
    entry(ctx, |_| codec::int::parse_prefix(unsafe { bytes(t) }).map_or(Pair(0, 0), |n| Pair(1, n as u64)))
}
