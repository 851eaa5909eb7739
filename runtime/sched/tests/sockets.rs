//! Sockets, deadlines, handles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::{actor, net, wait};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use values::ctx::Ctx;
use values::object::{self, Obj};

type Out = *mut [u64; 2];

fn text_of(t: *mut Obj) -> String {
    // SAFETY: the caller passes a live text.
    String::from_utf8_lossy(unsafe { values::text::bytes(t) }).into_owned()
}

fn write(c: &mut Ctx, h: i64, s: &[u8], ms: Option<i64>) -> Option<bool> {
    let t = values::text::new(c, s);
    let r = net::write(c, h, t, ms);
    // SAFETY: made above; `net::write` only borrows it.
    unsafe { object::release(c, t) };
    r
}

fn read(c: &mut Ctx, h: i64, max: i64, ms: Option<i64>) -> Option<String> {
    let t = net::read(c, h, max, ms);
    let s = (!t.is_null()).then(|| text_of(t));
    // SAFETY: the result of `net::read` is the caller's; null is allowed.
    unsafe { object::release(c, t) };
    s
}

/// Echoes until the end of the stream.
extern "C" fn echo(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
    let c = ctx(c);
    let h = n(m);
    while let Some(s) = read(c, h, 4096, Some(5000)) {
        if s.is_empty() || write(c, h, s.as_bytes(), None).is_none() {
            break;
        }
    }
    net::close(c, h);
}

#[test]
fn echo_over_many_connections() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        assert!(l > 2);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let client = std::thread::spawn(move || {
            let mut all: Vec<_> = (0..20).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
            for round in 0..50 {
                for (i, s) in all.iter_mut().enumerate() {
                    let text = format!("hello {i} {round}");
                    s.write_all(text.as_bytes()).unwrap();
                    let mut buf = vec![0; text.len()];
                    s.read_exact(&mut buf).unwrap();
                    assert_eq!(buf, text.as_bytes());
                }
            }
            // A request larger than every buffer, answered while it is still being sent.
            let mut s = all.pop().unwrap();
            let mut w = s.try_clone().unwrap();
            let big = vec![b'x'; 3_000_000];
            let sender = std::thread::spawn({
                let big = big.clone();
                move || {
                    w.write_all(&big).unwrap();
                    w.shutdown(std::net::Shutdown::Write).unwrap();
                }
            });
            let mut back = Vec::new();
            let _ = s.read_to_end(&mut back).unwrap();
            sender.join().unwrap();
            assert_eq!(back.len(), big.len());
        });
        for _ in 0..20 {
            let h = net::accept(c, l, None).unwrap();
            assert!(net::peer(c, h).starts_with("127.0.0.1:"));
            let a = spawn(c, 0);
            send(c, a, h);
            actor::release(a);
        }
        while !client.is_finished() {
            wait::sleep(c, 2);
        }
        let ok = client.join().is_ok();
        for _ in 0..500 {
            if sched::shard::current().unwrap().stat("descriptors_open") == Some(1) {
                break;
            }
            wait::sleep(c, 2);
        }
        assert_eq!(sched::shard::current().unwrap().stat("descriptors_open"), Some(1));
        i64::from(!ok)
    }
    let left = run(config(), main, &[echo]);
    assert_eq!((left.status, left.objects_live), (0, 0));
    assert_eq!(left.stats.actors_reclaimed, 20);
}

#[test]
fn wait_3_deadlines_are_values() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"localhost", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let start = Instant::now();
        assert_eq!(net::accept(c, l, Some(20)), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        let client = net::connect(c, b"localhost", port);
        assert_eq!(c.trap, 0);
        let server = net::accept(c, l, Some(1000)).unwrap();
        let start = Instant::now();
        assert_eq!(read(c, server, 10, Some(20)), None);
        assert!(start.elapsed() >= Duration::from_millis(20) && c.trap == 0);
        // Ready data wins over any deadline, and one read gives at most what was asked for.
        assert_eq!(write(c, client, b"abcdef", None), Some(true));
        assert_eq!(read(c, server, 4, Some(1)).as_deref(), Some("abcd"));
        assert_eq!(read(c, server, 4, None).as_deref(), Some("ef"));
        assert_eq!(read(c, server, -1, None).as_deref(), Some(""));
        // Nobody reads: a large write cannot be finished in time.
        assert_eq!(write(c, client, &vec![b'x'; 30_000_000], Some(30)), Some(false));
        net::close(c, client);
        let mut got = 0;
        while let Some(s) = read(c, server, 65_536, Some(1000)) {
            if s.is_empty() {
                break;
            }
            got += s.len();
        }
        assert!(got > 0 && got < 30_000_000);
        assert_eq!(read(c, server, 1, None).as_deref(), Some(""));
        for h in [client, 12_345_678, -1, 0x7fff_ffff_ffff] {
            assert_eq!(read(c, h, 1, None), None);
            assert_eq!(catch(c), "9: Bad file descriptor");
        }
        0
    }
    let left = run(config(), main, &[]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn fd_3_close_wakes_the_reader() {
    static LOG: Log = Log::new();
    extern "C" fn reader(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        assert_eq!(read(ctx(c), n(m), 64, Some(30_000)), None);
        LOG.put(catch(ctx(c)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"::1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let client = net::connect(c, b"::1", port);
        let server = net::accept(c, l, None).unwrap();
        assert!(net::peer(c, client).starts_with("[::1]:"));
        let a = spawn(c, 0);
        send(c, a, server);
        wait::sleep(c, 10);
        net::close(c, server);
        wait::sleep(c, 5);
        // The other side sees the end; shutting both sides ends a read of one's own.
        assert_eq!(read(c, client, 10, None).as_deref(), Some(""));
        net::shut(c, client, 2);
        net::close(c, client);
        net::close(c, client);
        net::shut(c, client, 2);
        assert_eq!(net::peer(c, client), "");
        actor::release(a);
        0
    }
    let left = run(config(), main, &[reader]);
    assert_eq!(LOG.take(), ["9: Bad file descriptor"]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn fd_5_a_dead_actors_connection_is_closed() {
    extern "C" fn dies(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let h = net::connect(c, b"127.0.0.1", u16::try_from(n(m)).unwrap());
        assert!(h > 0);
        assert_eq!(write(c, h, b"x", None), Some(true));
        c.raise(8, "gone");
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = net::port(c, l);
        let a = spawn(c, 0);
        send(c, a, port);
        let h = net::accept(c, l, None).unwrap();
        assert_eq!(read(c, h, 1, None).as_deref(), Some("x"));
        assert_eq!(read(c, h, 1, Some(1000)).as_deref(), Some(""));
        actor::release(a);
        0
    }
    let left = run(config(), main, &[dies]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_died), (0, 0, 1));
}

/// 11.12: the connection was accepted by `main` and used by the actor only.
#[test]
fn fd_5_the_one_that_only_accepted_does_not_hold() {
    extern "C" fn dies(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        assert_eq!(read(c, n(m), 1, None).as_deref(), Some("x"));
        c.raise(8, "gone");
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        for shared in [false, true] {
            let client = net::connect(c, b"127.0.0.1", port);
            let server = net::accept(c, l, None).unwrap();
            if shared {
                assert!(read(c, server, 1, Some(1)).is_none());
            }
            let a = spawn(c, 0);
            send(c, a, server);
            assert_eq!(write(c, client, b"x", None), Some(true));
            let got = read(c, client, 1, Some(50));
            assert_eq!(got.as_deref(), if shared { None } else { Some("") });
            actor::release(a);
        }
        0
    }
    let left = run(config(), main, &[dies]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_died), (0, 0, 2));
}

#[test]
fn wait_5_writes_do_not_mix() {
    extern "C" fn writer(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let letter = if addr(m).is_null() { b'a' } else { b'b' };
        assert_eq!(write(c, n(m), &vec![letter; 2_000_000], None), Some(true));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let client = net::connect(c, b"127.0.0.1", port);
        let server = net::accept(c, l, None).unwrap();
        let (a, b) = (spawn(c, 0), spawn(c, 0));
        send(c, a, client);
        let m = obj_with(c, MSG, client, a);
        actor::send(c, b, m);
        let mut all = String::new();
        while all.len() < 4_000_000 {
            all.push_str(&read(c, server, 50_000, Some(2000)).unwrap());
        }
        assert_eq!(all, "a".repeat(2_000_000) + &"b".repeat(2_000_000));
        actor::release(a);
        actor::release(b);
        0
    }
    let left = run(config(), main, &[writer]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn connect_failures_have_the_systems_or_resolvers_text() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        assert_eq!(net::listen(c, b"127.0.0.1", port), 0);
        assert_eq!(catch(c), "9: Address already in use");
        net::close(c, l);
        assert_eq!(net::connect(c, b"127.0.0.1", port), 0);
        assert_eq!(catch(c), "9: Connection refused");
        assert_eq!(net::connect(c, b"no-such-host.invalid", 80), 0);
        assert!(catch(c).starts_with("9: "));
        0
    }
    let left = run(config(), main, &[]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}
