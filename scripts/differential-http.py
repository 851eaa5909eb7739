#!/usr/bin/env python3
"""Mutated requests, read by porch and by independent parsers: what porch takes for k requests must be the same k to them.

usage: scripts/differential-http.py [--seconds 60] [--seed N]   (WOC names the compiler; default: target/release/woc)

Needs Node, whose server is one peer; h11 is another where Python has it. A peer may refuse what porch takes, and porch may
refuse what a peer takes; but requests that both take have the same methods, targets and bodies, so that nobody between a
client and porch sees other requests than porch does. Prints the seed and how many requests the inputs held; exit 1 with
the bytes on a difference.
"""
import argparse, base64, collections, json, os, random, re, signal, socket, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
sys.path.insert(0, "scripts")
os.environ.setdefault("WOC", os.path.join(ROOT, "target", "release", "woc"))
from web_app.probes import build

try:
    import h11
except ImportError:
    h11 = None

H = b" HTTP/1.1\r\nHost: a\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SEEDS = [
    b"GET /" + H + b"\r\n", b"HEAD /x?a=1" + H + b"Accept: */*\r\n\r\n", b"POST /p" + H + b"Content-Length: 5\r\n\r\nhello",
    b"POST /p" + H + CHUNKED + b"\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n", b"POST /p" + H + CHUNKED + b"\r\n0\r\n\r\n",
    b"OPTIONS *" + H + b"\r\n", b"GET http://b/x" + H + b"\r\n", b"PUT /e" + H + b"Content-Length: 0\r\nExpect: 100-continue\r\n\r\n",
    b"DELETE /d" + H + b"Connection: close\r\n\r\n",
    b"POST /p" + H + b"Content-Length: 43\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n...",
]
TOKENS = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b"\x0b", b"\x0c", b":", b",", b";", b"%00", b"/", b"#", b"\x7f", b"\xff", b"\x85", b"\xa0",
          b"0", b"00", b"5", b"a", b"+", b"-", b"_", b"0x", b'"', b"Host: b\r\n", b"Content-Length: 5\r\n", b"content-length:0\r\n", CHUNKED,
          b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\tchunked \r\n", b"Transfer_Encoding: chunked\r\n", b"Connection: keep-alive\r\n",
          b"HTTP/1.1", b"HTTP/1.2", b"GET ", b"\r\n\r\n", b"0\r\n\r\n", b"chunked", b", chunked", b" ;ext", b"X: y\r\n", b"\r\n ", b"\r\n\t"]


def mutate(r):
    data = bytearray(b"".join(r.choice(SEEDS) for _ in range(r.randint(1, 3))))
    for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3, 5])):
        at = r.randrange(len(data) + 1)
        kind = r.randrange(6)
        if kind <= 1:
            data[at:at] = r.choice(TOKENS)
        elif kind == 2:
            del data[at:at + r.randint(1, 6)]
        elif kind == 3 and at < len(data):
            data[at] = r.randrange(256)
        elif kind == 4:
            data[at:at] = data[at:at + r.randint(1, 20)]
        else:
            data[at:at + r.randint(0, 3)] = r.choice(TOKENS)
    return bytes(data)


def origin(target):
    """Without scheme and authority, nor an empty query, which porch does not tell from none."""
    form = re.match(r"(?i)https?://[^/?]+(.*)", target)
    path = form[1] if form else target
    return (path if path.startswith(("/", "*")) else "/" + path).removesuffix("?")


def over_tcp(port, data):
    """The requests that a server tells of, and whether it refused what came behind them."""
    out = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536):
                out += piece
    except OSError as e:
        if isinstance(e, TimeoutError):
            raise
    seen = []
    while out:
        head, _, out = out.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        if status == 100:
            continue
        if status != 200:
            return seen, status
        n = int(re.search(rb"(?i)\r\ncontent-length: (\d+)", head)[1])
        if out.startswith(b"{"):
            told = json.loads(out[:n].decode("latin-1"))
            seen.append((told["method"], origin(told["target"]), told["body"]))
            out = out[n:]
        else:
            seen.append(("HEAD",))
    return seen, 0


def by_h11(data):
    c, seen = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), []
    try:
        c.receive_data(data)
        c.receive_data(b"")
        while True:
            e = c.next_event()
            if isinstance(e, h11.Request):
                method, target, body = e.method.decode("latin-1"), origin(e.target.decode("latin-1")), b""
            elif isinstance(e, h11.Data):
                body += bytes(e.data)
            elif isinstance(e, h11.EndOfMessage):
                seen.append(("HEAD",) if method == "HEAD" else (method, target, base64.b64encode(body).decode()))
                c.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                c.send(h11.EndOfMessage())
                if c.our_state is h11.MUST_CLOSE:
                    return seen, 0
                c.start_next_cycle()
            else:
                return seen, 0
    except h11.RemoteProtocolError:
        return seen, 400


def differs(porch, peer):
    (mine, refused), (theirs, peer_refused) = porch, peer
    n = min(len(mine), len(theirs))
    return mine[:n] != theirs[:n] or len(mine) > n and not peer_refused or len(theirs) > n and not refused


def run(a, porch, node):
    r, held = random.Random(a.seed), collections.Counter()
    ports = [int(p.stdout.readline().rsplit(b":", 1)[-1]) for p in (porch, node)]
    peers = {"node": lambda data: over_tcp(ports[1], data)} | ({"h11": by_h11} if h11 else {})
    end = time.monotonic() + a.seconds
    while time.monotonic() < end:
        data = mutate(r)
        mine = over_tcp(ports[0], data)
        held[len(mine[0])] += 1
        faults = [(name, got) for name, peer in peers.items() if differs(mine, got := peer(data))]
        if faults or mine[1] >= 500 and mine[1] not in (501, 505):
            print(f"finding: {data!r}\nporch {mine}\n{faults}")
            return 1
    porch.send_signal(signal.SIGTERM)
    status = porch.wait(timeout=10)
    print(f"{sum(held.values())} inputs by {', '.join(peers)}; with n requests: {dict(sorted(held.items()))}; stop status {status}")
    return status


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=60)
    ap.add_argument("--seed", type=int, default=int(time.time()))
    a = ap.parse_args()
    print(f"seed {a.seed}", flush=True)
    program, out = build("seen")
    if not program:
        raise SystemExit(out)
    env = dict(os.environ, WO_EPHEMERAL="1")
    with subprocess.Popen([program], stdout=subprocess.PIPE, env=env) as porch, subprocess.Popen(["node", "scripts/web_app/seen.mjs"], stdout=subprocess.PIPE) as node:
        try:
            return run(a, porch, node)
        finally:
            porch.kill()
            node.kill()


sys.exit(main())
