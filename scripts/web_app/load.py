"""Legs W46 to W56: time, load, descriptors, restarts."""
import json, re, time

from gate import Lag, answer, at_once, check, drain, of, same, within
from web_app.catalogue import post
from web_app.client import JSON, Shop, request, whole
from web_app.workspace import woc


def slow_leg(a):
    # Load only ever adds to the time, and two that wait for each other take 800 ms at least: one measure in time is proof.
    took = []
    while len(took) < 5 and not (took and min(took) < 0.7):
        t = time.monotonic()
        seen = at_once([lambda: a.get("/slow")[::2]] * 2)
        took.append(time.monotonic() - t)
        same("W46", "two slow requests", [(200, "slow done")] * 2, seen)
    check("W46", "at once", min(took) < 0.7, took)


def silence_legs(a):
    with Lag() as lag:
        with a.connect() as s:
            t = time.monotonic()
            out, took = drain(s), time.monotonic() - t
        check("W47", "silence is closed without a byte", out == b"" and 0.5 <= took <= 2.5 + lag.worst, (out, took))
        with a.connect() as s:
            s.sendall(request("GET", "/files/x"))
            first = answer(s)
            t = time.monotonic()
            out, took = drain(s), time.monotonic() - t
        check("W47", "so is silence after an answer", first.endswith(b"path=x") and out == b"" and 0.5 <= took <= 2.5 + lag.worst, (first, out, took))
        with a.connect() as s:
            t = time.monotonic()
            s.sendall(b"GET /products HTTP/1.1\r\nHost: a\r\n")
            out, took = drain(s), time.monotonic() - t
        s, h, b = whole(out)
        check("W48", "half a head", (s, b) == (400, '{"error":"request timed out"}') and took < 2.5 + lag.worst and of(h, "connection") == "close", (out, took))


def dribble_leg(a):
    """No byte of a request wins more time."""
    before = a.settled_fds()
    data = request("GET", "/products", "X-Pad: " + "p" * 200)
    with Lag() as lag:
        socks = [a.connect() for _ in range(200)]
        began = {s: time.monotonic() for s in socks}
        got, took = {s: b"" for s in socks}, {}
        [s.settimeout(0) for s in socks]
        at, due = 0, time.monotonic()
        while len(took) < len(socks) and time.monotonic() - due < 5:
            now = time.monotonic()
            if now >= due:
                for s in socks:
                    if not got[s] and s not in took:
                        s.send(data[at:at + 1])
                at, due = at + 1, due + 0.1
            for s in socks:
                if s not in took:
                    try:
                        d = s.recv(65536)
                    except BlockingIOError:
                        continue
                    except OSError as e:
                        d = b""
                        got[s] += str(e).encode()
                    got[s] += d
                    if not d:
                        took[s] = time.monotonic() - began[s]
            time.sleep(0.005)
    answered = sum(whole(out)[::2] == (400, '{"error":"request timed out"}') for out in got.values())
    worst = max(took.values(), default=0)
    check("W49", "200 that send a byte now and then", answered == len(took) == 200 and worst <= 1.5 + lag.worst, (answered, len(took), worst, lag.worst))
    [s.close() for s in socks]
    check("W49", "give their descriptors back", within(3, lambda: a.fds() <= before + 8), (before, a.fds()))


def soak_leg(a):
    before = a.settled_fds()
    idle, served = [], 0
    for _ in range(5):
        idle += [a.connect() for _ in range(100)]
        real = [a.connect() for _ in range(100)]
        [s.sendall(request("GET", "/products/mug", "Connection: close")) for s in real]
        served += sum(whole(drain(s))[::2] == (200, '{"name":"mug","price":9.99,"stock":5}') for s in real)
        [s.close() for s in real]
    evicted, end = 0, time.monotonic() + 5
    for s in idle:
        s.settimeout(max(end - time.monotonic(), 0.001))
        evicted += drain(s) == b""
    check("W50", "real ones are served", served >= 495, served)
    check("W50", "idle ones are sent away", evicted >= 495, evicted)
    [s.close() for s in idle]
    check("W50", "descriptors are back", within(3, lambda: a.fds() <= before + 8), (before, a.fds()))
    check("W50", "memory", a.rss() < 409_600, a.rss())
    same("W50", "served on", 200, a.get("/products/mug")[0])


def descriptor_leg(program, data):
    a = Shop(program, data, files=(64, 64), WO_SHARDS="2", WA_IDLE_MS="20000")
    idle = [a.connect() for _ in range(100)]
    check("W51", "the limit is reached", within(5, lambda: a.fds() >= 60), a.fds())
    time.sleep(0.5)
    cpu, t = a.cpu(), time.monotonic()
    time.sleep(3)
    used = (a.cpu() - cpu) / (time.monotonic() - t)
    check("W51", "no spinning at the limit", used < 0.05, used)
    [s.close() for s in idle]
    same("W51", "served when they are gone", (200, "[]"), a.get("/products")[::2])
    a.stop("W51", "stops")


def orders(data):
    status, out = woc("db", "dump", "--table", "Order", data)
    return len(out.splitlines()) if status == 0 else out


def stop_leg(program, data, port):
    """A request that was executed is answered, also while the server stops."""
    before = orders(data)
    a = Shop(program, data, port=port)
    order = request("POST", "/orders", JSON, body=b'{"product":"mug","qty":1}')
    done = []

    def client():
        with a.connect() as s:
            while True:
                try:
                    s.sendall(order)
                    out = answer(s)
                except OSError:
                    return b""
                if not out.startswith(b"HTTP/1.1 201 ") or not out.endswith(b'{"ok":true}'):
                    return out
                done.append(1)

    def stop():
        check("W53", "the load runs", within(30, lambda: len(done) > 100), len(done))
        a.stop("W53", "SIGTERM under load", busy=True)

    cut = at_once([client] * 16 + [stop])[:-1]
    check("W53", "no answer is cut", not any(cut), cut)
    same("W53", "what was executed was answered", before + len(done), orders(data))


def restart_legs(program, a, data, port):
    idle = [a.connect() for _ in range(50)]
    same("W53", "served beside 50 idle ones", 200, a.get("/products")[0])
    a.stop("W53", "SIGTERM with idle connections", busy=True)
    [s.close() for s in idle]
    stop_leg(program, data, port)
    before = orders(data)
    a = Shop(program, data, port=port)
    check("W54", "the rows are there after a restart", '"name":"mug","price":9.99,"stock":5' in a.get("/products")[2], a.get("/products"))
    order = lambda qty, key: post(a, "/orders", json.dumps({"product": "mug", "qty": qty}), f'Idempotency-Key: "{key}"')
    first, second, other = order(1, "k1"), order(1, "k1"), order(2, "k1")
    replay = lambda h: of(h, "idempotency-replayed")
    check("W55", "executed", first[::2] == (201, '{"ok":true}') and not replay(first[1]), first)
    check("W55", "replayed", second[::2] == first[::2] and replay(second[1]) == "true", second)
    same("W55", "another order under the key", (422, '{"error":"idempotency key reused with a different request"}'), other[::2])
    a.stop("W55", "stops")
    same("W55", "one row more", before + 1, orders(data))
    a = Shop(program, data, port=port, WA_LIMIT="3")
    seen = [a.get("/products/mug") for _ in range(4)]
    same("W56", "the fourth is refused", [200, 200, 200, 429], [s for s, h, b in seen])
    same("W56", "what remains", ["2", "1", "0", "0"], [of(h, "x-ratelimit-remaining") for s, h, b in seen])
    check("W56", "retry-after", re.fullmatch(r"[1-9]\d?", of(seen[3][1], "retry-after")) and not of(seen[2][1], "retry-after"), seen)
    same("W56", "who is not known is not counted", 401, a.get("/products/mug", token=None)[0])
    a.stop("W56", "stops")
    same("W56", "the store is whole", 0, woc("db", "check", data)[0])


def legs(a):
    slow_leg(a)
    silence_legs(a)
    dribble_leg(a)
    soak_leg(a)
