//! Sockets: argument checks before `sched::net`.

use super::{Pair, Ptr, path, shim, text};
use sched::{net, unix};
use values::ctx::{Ctx, entry};
use values::object::Obj;

/// Host and port; `None` with a pending trap 6.
fn endpoint<'a>(ctx: &mut Ctx, host: *const Obj, port: i64) -> Option<(&'a [u8], u16)> {
    let host = path(ctx, host)?;
    if let Ok(port) = u16::try_from(port) {
        return Some((host, port));
    }
    ctx.raise(abi::trap::BOUNDS, "port out of range");
    None
}

extern "C" fn listen(ctx: *mut Ctx, host: *const Obj, port: i64) -> i64 {
    entry(ctx, |ctx| endpoint(ctx, host, port).map_or(0, |(host, port)| net::listen(ctx, host, port)))
}

extern "C" fn connect(ctx: *mut Ctx, host: *const Obj, port: i64) -> i64 {
    entry(ctx, |ctx| endpoint(ctx, host, port).map_or(0, |(host, port)| net::connect(ctx, host, port)))
}

/// The path of a unix socket; `None` with a pending trap 6.
fn unix_path(ctx: &mut Ctx, p: *const Obj) -> Option<unix::Path> {
    let path = unix::Path::new(path(ctx, p)?);
    if path.is_none() {
        ctx.raise(abi::trap::BOUNDS, "unix socket path too long");
    }
    path
}

extern "C" fn listen_unix(ctx: *mut Ctx, p: *const Obj) -> i64 {
    entry(ctx, |ctx| unix_path(ctx, p).map_or(0, |p| unix::listen(ctx, p)))
}

extern "C" fn connect_unix(ctx: *mut Ctx, p: *const Obj) -> i64 {
    entry(ctx, |ctx| unix_path(ctx, p).map_or(0, |p| unix::connect(ctx, p)))
}

extern "C" fn send_fd(ctx: *mut Ctx, conn: i64, h: i64) -> i64 {
    entry(ctx, |ctx| i64::from(unix::send_fd(ctx, conn, h)))
}

extern "C" fn recv_fd(ctx: *mut Ctx, conn: i64) -> Pair {
    entry(ctx, |ctx| unix::recv_fd(ctx, conn).map_or_else(Pair::default, |h| Pair(1, h.cast_unsigned())))
}

extern "C" fn port(ctx: *mut Ctx, h: i64) -> i64 {
    entry(ctx, |ctx| net::port(ctx, h))
}

extern "C" fn accept(ctx: *mut Ctx, h: i64) -> i64 {
    entry(ctx, |ctx| net::accept(ctx, h, None).unwrap_or(0))
}

extern "C" fn accept_dl(ctx: *mut Ctx, h: i64, ms: i64) -> Pair {
    entry(ctx, |ctx| net::accept(ctx, h, Some(ms)).map_or_else(Pair::default, |h| Pair(1, h.cast_unsigned())))
}

extern "C" fn read(ctx: *mut Ctx, h: i64, max: i64) -> *mut Obj {
    entry(ctx, |ctx| Ptr(net::read(ctx, h, max, None))).0
}

extern "C" fn read_dl(ctx: *mut Ctx, h: i64, max: i64, ms: i64) -> *mut Obj {
    entry(ctx, |ctx| Ptr(net::read(ctx, h, max, Some(ms)))).0
}

extern "C" fn write(ctx: *mut Ctx, h: i64, t: *const Obj) {
    entry(ctx, |ctx| {
        if text(ctx, t).is_some() {
            let _ = net::write(ctx, h, t, None);
        }
    });
}

extern "C" fn write_dl(ctx: *mut Ctx, h: i64, t: *const Obj, ms: i64) -> i64 {
    entry(ctx, |ctx| i64::from(text(ctx, t).is_some() && net::write(ctx, h, t, Some(ms)) == Some(true)))
}

extern "C" fn close(ctx: *mut Ctx, h: i64) {
    entry(ctx, |ctx| net::close(ctx, h));
}

extern "C" fn shut(ctx: *mut Ctx, h: i64, how: i64) {
    entry(ctx, |ctx| net::shut(ctx, h, how));
}

extern "C" fn peer(ctx: *mut Ctx, h: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        let name = net::peer(ctx, h);
        Ptr(shim::text(ctx, name.as_bytes()))
    })
    .0
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("net.listen", listen as *const u8),
        ("net.port", port as *const u8),
        ("net.accept", accept as *const u8),
        ("net.accept_dl", accept_dl as *const u8),
        ("net.read", read as *const u8),
        ("net.read_dl", read_dl as *const u8),
        ("net.write", write as *const u8),
        ("net.write_dl", write_dl as *const u8),
        ("net.close", close as *const u8),
        ("net.shut", shut as *const u8),
        ("net.peer", peer as *const u8),
        ("net.connect", connect as *const u8),
        ("net.listen_unix", listen_unix as *const u8),
        ("net.connect_unix", connect_unix as *const u8),
        ("net.send_fd", send_fd as *const u8),
        ("net.recv_fd", recv_fd as *const u8),
    ]
}
