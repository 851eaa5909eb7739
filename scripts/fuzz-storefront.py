#!/usr/bin/env python3
"""Pipelines of random requests to the storefront, each of which has one right answer.

usage: scripts/fuzz-storefront.py [--seconds 60] [--seed N] [--clients 8]   (WOC names the compiler)

A client sends some requests over one connection, cut at random places: of every method and route, with bodies of either
framing, expectations, HTTP/1.0, HEAD, handlers that sleep or trap, refusals, upgrades that nobody takes; at times the last
is cut short, at times the client resets. What has to come back is known: one answer per request, in order, up to the
first that closes the connection, then the end. At last the server has to stop with status 0, everything given back, and a
log that tells of no trap but those asked for. Prints the seed; exit 1 on a finding.
"""
import argparse, os, random, re, select, shutil, socket, struct, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
sys.path.insert(0, "scripts")
os.environ.setdefault("WOC", os.path.join(ROOT, "target", "release", "woc"))
from gate import check, finish, same
from web_app.client import AUTH, Shop
from web_app.workspace import woc

HOST, EXPECT = b"Host: a", b"Expect: 100-continue"
LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~\x80-\xff]*")
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


class Want:
    """A request's bytes and what answers it; `body` is nil where any will do."""

    def __init__(self, data, status, body, closes, head, interim=False):
        self.data, self.status, self.body, self.closes, self.head, self.interim = data, status, body, closes, head, interim


def error(text):
    return b'{"error":"%s"}' % text


def chunked(r, body):
    out, at = b"", 0
    while at < len(body):
        n = min(len(body) - at, r.choice([1, 2, 7, 100, 5000, 70000]))
        if len(body) > 1000:
            n = max(n, 1000)
        n = min(n, len(body) - at)
        size = b"%x" % n if r.random() < 0.5 else b"%05X" % n
        out += size + r.choice([b"", b"", b";a", b" ;a=b", b';q="x;y"']) + b"\r\n" + body[at:at + n] + b"\r\n"
        at += n
    return out + r.choice([b"0", b"000"]) + b"\r\n" + r.choice([b"", b"", b"T: v\r\n"]) + b"\r\n"


class Maker:
    """One request: fields that any may have, and then what it asks for."""

    def __init__(self, r, n):
        self.r, self.n, self.fields, self.version, self.closes = r, n, [HOST, AUTH], b"1.1", False
        if r.random() < 0.1:
            self.version, self.closes = b"1.0", r.random() < 0.4
            if not self.closes:
                self.fields.append(b"Connection: keep-alive")
        elif r.random() < 0.06:
            self.fields.append(b"Connection: " + r.choice([b"close", b"Close, x", b"x,close"]))
            self.closes = True
        if r.random() < 0.3:
            self.fields.append(b"X-Pad: " + b"p" * r.choice([0, 1, 50, 3000]))
        if r.random() < 0.1:
            self.fields.append(r.choice([b"Upgrade: h2c", b"Upgrade: websocket", b"Cookie: a=b"]))
        if r.random() < 0.1:
            self.fields.append(EXPECT)
        r.shuffle(self.fields)

    def want(self, method, target, status, body, *extra, closes=False, sent=b""):
        lead = b"\r\n" * self.r.choice([0, 0, 0, 0, 1, 4])
        head = b"\r\n".join([method + b" " + target + b" HTTP/" + self.version, *self.fields, *extra])
        interim = EXPECT in self.fields and self.version == b"1.1" and sent != b""
        return Want(lead + head + b"\r\n\r\n" + sent, status, body, closes or self.closes, method == b"HEAD", interim)

    def target(self, method):
        query = b"n=%d&%%zz+" % self.n
        return self.want(method, b"/target?" + query, 200, b'{"path":"/target","host":"a","query":"%s"}' % query)

    def framed(self, body):
        if self.version == b"1.1" and self.r.random() < 0.5:
            return b"Transfer-Encoding: " + self.r.choice([b"chunked", b"Chunked"]), chunked(self.r, body)
        return b"Content-Length: %d" % len(body), body

    def echo(self):
        body = self.r.choice([b"", b"x", b"%d " % self.n * 20, b"y" * 5000, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", b"\0\r\n" * 70_000])
        framing, sent = self.framed(body)
        return self.want(b"POST", b"/echo", 200, body, framing, sent=sent)

    def stranger(self):
        """Without a token, and at times with a body that nobody asks for."""
        self.fields.remove(AUTH)
        if self.r.random() < 0.5:
            return self.want(b"GET", b"/echo", 401, error(b"unauthorized"))
        framing, sent = self.framed(b"b" * self.r.choice([1, 5000]))
        w = self.want(b"POST", b"/echo", 401, error(b"unauthorized"), framing, sent=sent)
        w.closes, w.interim = w.closes or w.interim, False
        return w

    def other_host(self):
        self.fields[self.fields.index(HOST)] = b"Host: b"
        return self.want(b"GET", b"/target", 421, error(b"misdirected request"))

    def route(self):
        return self.want(*self.r.choice([
            (b"GET", b"/nowhere", 404, error(b"not found")), (b"HEAD", b"/nowhere", 404, error(b"not found")),
            (b"BREW", b"/echo", 405, error(b"method not allowed")), (b"PUT", b"/products?x", 405, error(b"method not allowed")),
            (b"OPTIONS", b"*", 204, b""), (b"OPTIONS", b"/echo", 204, b""), (b"GET", b"/files/a%2Fb//c", 200, b"path=a/b/c"),
            (b"GET", b"//api/%70ing/", 200, b"pong via=api-group"), (b"GET", b"http://a", 404, error(b"not found")),
            (b"GET", b"/nego", 200, b'{"ok":true}'), (b"GET", b"/to", 400, None), (b"GET", b"/to?to=/x", 302, b""),
            (b"DELETE", b"/products/none", 404, error(b"not found")), (b"GET", b"/products", 200, None)]))

    def boom(self):
        return self.want(self.r.choice([b"GET", b"HEAD"]), b"/boom", 500, None, closes=True)

    def refused(self):
        return self.want(b"GET", *self.r.choice([
            (b"/a%00", 400, error(b"malformed request")), (b"/a#b", 400, error(b"malformed request")),
            (b"/", 400, error(b"malformed request"), b"no colon"), (b"/", 400, error(b"malformed request"), HOST),
            (b"/", 400, error(b"malformed request"), b"Content-Length: 5, 5"), (b"/", 400, error(b"malformed request"), b" x: y"),
            (b"/", 413, error(b"body too large"), b"Content-Length: 1048577"), (b"/" + b"a" * 8200, 414, error(b"request target too long")),
            (b"/", 431, error(b"header section too large"), *[b"X: y"] * 101)]), closes=True)


def request(r, n):
    m = Maker(r, n)
    kinds = [(20, lambda: m.target(b"GET")), (8, lambda: m.target(b"HEAD")), (25, m.echo), (6, m.stranger), (4, m.other_host),
             (25, m.route), (2, lambda: m.want(b"GET", b"/slow", 200, b"slow done")), (3, m.boom), (2, m.refused)]
    return r.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()


def exchange(port, data, r, reset):
    """What comes back; nil after a reset."""
    cuts = sorted(r.randrange(len(data) + 1) for _ in range(r.choice([0, 0, 1, 3, 20])))
    pieces = [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        out = b""
        for piece in pieces:
            while piece:
                readable, writable, _ = select.select([s], [s], [], 30)
                if not readable and not writable:
                    return out + b"<stalled>"
                if readable:
                    d = s.recv(65536)
                    if not d:
                        return out
                    out += d
                if writable:
                    piece = piece[s.send(piece[:1 << 16]):]
            if r.random() < 0.3:
                time.sleep(0.001)
            if reset and r.random() < 0.3:
                break
        if reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return None
        s.shutdown(socket.SHUT_WR)
        try:
            while d := s.recv(65536):
                out += d
        except TimeoutError:
            return out + b"<no end>"
        return out


def fault(wants, out):
    """What is wrong with the answers, or nil."""
    for i, w in enumerate(wants):
        if w.interim and out.startswith(INTERIM):
            out = out[len(INTERIM):]
        if w.status == 0:
            break
        head, blank, out = out.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        if not blank or not lines[0].startswith(b"HTTP/1.1 %d " % w.status):
            return f"answer {i}: wanted {w.status}, got {head[:300]!r}"
        if not all(LINE.fullmatch(line) for line in lines[1:]):
            return f"answer {i}: a field line {lines!r}"
        names = [line.split(b":")[0].lower() for line in lines[1:]]
        if len(set(names)) != len(names) or not {b"date", b"connection", b"x-frame-options"} <= set(names):
            return f"answer {i}: fields {names}"
        if (b"Connection: close" in lines) != w.closes:
            return f"answer {i}: connection of {head!r}"
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        if (length is None) != (w.status == 204):
            return f"answer {i}: length of {head!r}"
        n = int(length[1]) if length else 0
        body, out = (b"", out) if w.head else (out[:n], out[n:])
        if w.body is not None and (n != len(w.body) or not w.head and body != w.body) or not w.head and len(body) != n:
            return f"answer {i}: body {body[:300]!r} of {n}"
        if w.closes:
            break
    return f"bytes behind the last answer: {out[:300]!r}" if out else None


def one_round(port, r):
    """Nil, or what was sent and what was wrong with the answer."""
    wants = [request(r, n) for n in range(r.choice([1, 2, 3, 5, 10, 30]))]
    if r.random() < 0.2:
        last = wants[-1]
        last.data = last.data[:r.randrange(len(last.data))]
        # A refusal may come before its request has ended.
        last.status = None if last.status in (400, 401, 413, 414, 431) else 0
    data = b"".join(w.data for w in wants)
    try:
        out = exchange(port, data, r, r.random() < 0.1)
    except OSError as e:
        return f"{e!r}", wants
    if out is None or wants[-1].status is None:
        return None
    why = fault(wants, out)
    return (f"{why}\nsent {data[:6000]!r}\ngot {out[:4000]!r}", wants) if why else None


def client(port, seed, end, counts, findings):
    r = random.Random(seed)
    while time.monotonic() < end and not findings:
        counts.append(1)
        found = one_round(port, r)
        if found:
            findings.append(found[0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--seed", type=int, default=int(time.time()))
    ap.add_argument("--clients", type=int, default=8)
    a = ap.parse_args()
    print(f"seed {a.seed}", flush=True)
    place = tempfile.mkdtemp(prefix="fuzz-storefront-")
    try:
        program = os.path.join(place, "web-app")
        same("Z1", "build", (0, ""), woc("build", "docs/examples/web-app", "-o", program))
        shop = Shop(program, os.path.join(place, "data"), WA_IDLE_MS="20000")
        counts, findings, end = [], [], time.monotonic() + a.seconds
        half = threading.Timer(a.seconds / 2, lambda: memory.append(shop.rss()))
        memory = []
        half.start()
        threads = [threading.Thread(target=client, args=(shop.port, a.seed * 1000 + i, end, counts, findings)) for i in range(a.clients)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        half.cancel()
        print(f"{len(counts)} connections, rss {memory} then {shop.rss()} kB", flush=True)
        check("Z2", "every answer is the right one", not findings, "")
        print(*findings[:1], sep="\n")
        odd = [line for line in shop.log().splitlines() if "trap=" in line and not re.match(r"porch: 500 GET /boom request=\S+ trap=1 at handle", line)]
        same("Z3", "no trap but those asked for", [], odd[:3])
        check("Z4", "no more memory than half way", not memory or shop.rss() < memory[0] + 16384, (memory, shop.rss()))
        shop.stop("Z5", "stops, with everything given back")
    finally:
        shutil.rmtree(place)
    finish("fuzz-storefront")


main()
