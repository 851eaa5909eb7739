//! Bytes, digests, checksums.

use super::{Ptr, clamped, give_way, making, retained, symbol_table};
use abi::layout::{KIND_BYTES, KIND_TEXT};
use abi::trap;
use codec::PIECE;
use hmac::digest::{FixedOutput, Update};
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;
use values::ctx::{Ctx, entry};
use values::cycles;
use values::object::Obj;
use values::text::{self, Gradual, bytes};

symbol_table! {
    "bytes_of_text" = bytes_of_text,
    "text_of_bytes" = text_of_bytes,
    "bytes_len" = bytes_len,
    "bytes_at" = bytes_at,
    "bytes_slice" = bytes_slice,
    "bytes_eq" = bytes_eq,
    "bytes_concat" = bytes_concat,
    "base64_encode" = base64_encode,
    "base64_decode" = base64_decode,
    "sha1" = sha1,
    "sha256" = sha256,
    "hmac_sha256" = hmac_sha256,
    "crc32" = crc32,
    "crc32_update" = crc32_update,
}

// SAFETY, for the whole module: generated code passes the context of the running fiber and live Bytes or Texts (null
// counts as empty), which stay alive for the duration of the call and are never changed.

pub(super) extern "C" fn bytes_of_text(ctx: *mut Ctx, t: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| Ptr(text::new_bytes(ctx, unsafe { bytes(t) }))).0
}

pub(super) extern "C" fn text_of_bytes(ctx: *mut Ctx, b: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| Ptr(text::new(ctx, unsafe { bytes(b) }))).0
}

pub(super) extern "C" fn bytes_len(_: *mut Ctx, b: *mut Obj) -> i64 {
    // SAFETY: see the module.
    unsafe { bytes(b).len() as i64 }
}

pub(super) extern "C" fn bytes_at(ctx: *mut Ctx, b: *mut Obj, i: i64) -> i64 {
    entry(ctx, |ctx| {
        // SAFETY: see the module.
        match usize::try_from(i).ok().and_then(|i| unsafe { bytes(b) }.get(i)) {
            Some(&byte) => i64::from(byte),
            None => {
                ctx.raise(trap::BOUNDS, "bytes index out of range");
                0
            }
        }
    })
}

pub(super) extern "C" fn bytes_slice(ctx: *mut Ctx, b: *mut Obj, start: i64, n: i64) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        let all = bytes(b);
        let range = clamped(all.len(), start, n);
        if range.len() == all.len() && !b.is_null() {
            return Ptr(retained(b));
        }
        Ptr(text::new_bytes(ctx, all.get(range).unwrap_or_default()))
    })
    .0
}

/// Looks at every byte of inputs of equal length.
pub(super) extern "C" fn bytes_eq(ctx: *mut Ctx, a: *mut Obj, b: *mut Obj) -> u64 {
    entry(ctx, |_| {
        // SAFETY: see the module.
        let (a, b) = unsafe { (bytes(a), bytes(b)) };
        if a.len() != b.len() {
            return 0;
        }
        let difference = a.iter().zip(b).fold(0u8, |seen, (a, b)| std::hint::black_box(seen | (a ^ b)));
        u64::from(difference == 0)
    })
}

pub(super) extern "C" fn bytes_concat(ctx: *mut Ctx, a: *mut Obj, b: *mut Obj) -> *mut Obj {
    making(ctx, |ctx| {
        // SAFETY: see the module.
        let (a, b) = unsafe { (bytes(a), bytes(b)) };
        let len = a.len().saturating_add(b.len());
        if len > text::MAX_LEN {
            ctx.raise(trap::OOM, "bytes concat overflows length");
            return Ptr::default();
        }
        Ptr(text::new_with(ctx, KIND_BYTES, len, |room| {
            if let Some((front, back)) = room.split_at_mut_checked(a.len()) {
                front.copy_from_slice(a);
                back.copy_from_slice(b);
            }
        }))
    })
    .0
}

pub(super) extern "C" fn base64_encode(ctx: *mut Ctx, b: *mut Obj) -> *mut Obj {
    making(ctx, |ctx| {
        // SAFETY: see the module.
        let from = unsafe { bytes(b) };
        match codec::base64::encoded_len(from.len()).filter(|&len| len <= text::MAX_LEN) {
            Some(len) => {
                let mut out = Gradual::new(ctx, KIND_TEXT, len, give_way);
                codec::base64::encode(from, &mut out);
                Ptr(out.finish())
            }
            None => {
                ctx.raise(trap::OOM, "base64: input too large");
                Ptr::default()
            }
        }
    })
    .0
}

pub(super) extern "C" fn base64_decode(ctx: *mut Ctx, t: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| Ptr(values::decode::base64(ctx, unsafe { bytes(t) }, give_way))).0
}

/// Gives all of `data` to `each`, in pieces between which other fibers run. False: an unwind is pending.
fn in_pieces(ctx: &mut Ctx, data: *mut Obj, mut each: impl FnMut(&[u8])) -> bool {
    // SAFETY: see the module.
    let mut pieces = unsafe { bytes(data) }.chunks(PIECE);
    let mut next = pieces.next();
    while let Some(piece) = next {
        each(piece);
        next = pieces.next();
        if next.is_some() && !give_way(ctx) {
            return false;
        }
    }
    true
}

/// A digest of `data`, as Bytes.
fn digest<D: Update>(
    ctx: *mut Ctx,
    data: *mut Obj,
    start: impl FnOnce() -> Option<D>,
    end: impl FnOnce(D) -> Vec<u8>,
) -> *mut Obj {
    entry(ctx, |ctx| {
        let Some(mut state) = start() else {
            ctx.raise(trap::EXPLICIT, "internal error: hmac key");
            return Ptr::default();
        };
        if !in_pieces(ctx, data, |piece| state.update(piece)) {
            return Ptr::default();
        }
        let digest = end(state);
        Ptr(cycles::with_relief(ctx, |ctx| text::new_bytes(ctx, &digest)))
    })
    .0
}

pub(super) extern "C" fn sha1(ctx: *mut Ctx, b: *mut Obj) -> *mut Obj {
    digest(ctx, b, || Some(Sha1::default()), |state| state.finalize_fixed().to_vec())
}

pub(super) extern "C" fn sha256(ctx: *mut Ctx, b: *mut Obj) -> *mut Obj {
    digest(ctx, b, || Some(Sha256::default()), |state| state.finalize_fixed().to_vec())
}

/// Keys of any length are accepted; a refusal would be a trap, so that a change there is not silent.
pub(super) extern "C" fn hmac_sha256(ctx: *mut Ctx, key: *mut Obj, msg: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    let start = || <Hmac<Sha256> as Mac>::new_from_slice(unsafe { bytes(key) }).ok();
    digest(ctx, msg, start, |state| state.finalize_fixed().to_vec())
}

pub(super) extern "C" fn crc32(ctx: *mut Ctx, b: *mut Obj) -> i64 {
    crc32_update(ctx, 0, b)
}

pub(super) extern "C" fn crc32_update(ctx: *mut Ctx, crc: i64, data: *mut Obj) -> i64 {
    entry(ctx, |ctx| {
        let mut crc = crc as u32;
        let _ = in_pieces(ctx, data, |piece| crc = codec::crc32::update(crc, piece));
        i64::from(crc)
    })
}
