#!/usr/bin/env python3
"""Mutation fuzzing of porch's HTTP parser through a running hello server.

usage: scripts/fuzz-http.py [--seconds 600] [--seed N]   (WOC names the compiler; default target/release/woc)

Each round sends mutated requests over fresh connections, in random pieces, and ends the write side. Whatever was sent,
every answer on the wire must be a well-formed response with a known status other than a 5xx that porch makes for a
trap, the connection must end, and the server must go on serving. Prints the seed; exit 1 with the bytes on a finding.
"""
import argparse, os, random, re, signal, socket, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SEEDS = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HEAD /hello/x%20y?a=1&b=%41+c HTTP/1.1\r\nHost: a:80\r\nAccept: */*\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n",
    b'POST /greet HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{"name":"bit"}',
    b'POST /greet HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7;x=y\r\n{"name"\r\n7\r\n:"bit"}\r\n0\r\nT: v\r\n\r\n',
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nGET http://b/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b'POST /greet HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}',
    b"\r\n\r\nDELETE /greet HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nX-Empty:\r\n\r\n",
]
TOKENS = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"%00", b"%2F", b"%", b"/", b"//", b"?", b"#", b"\x7f", b"\xff", b"0",
          b"18446744073709551616", b"9223372036854775807", b"-1", b"+1", b"0x1", b"Host: b\r\n", b"Content-Length: 5\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
          b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"GET ", b"\r\n\r\n", b"ffffffffffffffff\r\n", b";", b"a" * 9000, b"X: y\r\n" * 110]
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]+\r\n")


def mutate(r):
    data = bytearray(b"".join(r.choice(SEEDS) for _ in range(r.randint(1, 3))))
    for _ in range(r.randint(0, 6)):
        at = r.randrange(len(data) + 1)
        kind = r.randrange(5)
        if kind == 0:
            data[at:at] = r.choice(TOKENS)
        elif kind == 1:
            del data[at:at + r.randint(1, 12)]
        elif kind == 2 and at < len(data):
            data[at] = r.randrange(256)
        elif kind == 3:
            end = min(len(data), at + r.randint(1, 30))
            data[at:at] = data[at:end]
        else:
            data[at:at + r.randint(0, 4)] = r.choice(TOKENS)
    return bytes(data)


def exchange(port, data, r):
    s = socket.create_connection(("127.0.0.1", port), timeout=10)
    try:
        at = 0
        while at < len(data):
            step = r.choice([1, 3, 17, len(data), len(data)])
            s.sendall(data[at:at + step])
            at += step
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    out = b""
    try:
        while True:
            d = s.recv(65536)
            if not d:
                return out, True
            out += d
    except TimeoutError:
        return out, False
    except OSError:
        return out, True
    finally:
        s.close()


def fault(out, ended):
    if not ended:
        return "the connection did not end"
    rest = out
    while rest:
        m = STATUS.match(rest)
        if not m:
            return "bytes that are no response"
        status = int(m[1])
        if status in (500, 502, 503):
            return f"status {status}"
        head, sep, rest = rest.partition(b"\r\n\r\n")
        if not sep:
            return "a head without an end"
        n = re.search(rb"\r\nContent-Length: (\d+)", head)
        if n and not rest.startswith(b"HTTP/1.1 "):  # an answer to HEAD has a length but no body
            rest = rest[int(n[1]):]
    return None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seconds", type=float, default=600)
    ap.add_argument("--seed", type=int, default=int(time.time()))
    a = ap.parse_args()
    print(f"seed {a.seed}", flush=True)
    r = random.Random(a.seed)
    woc = os.environ.get("WOC", os.path.join(ROOT, "target", "release", "woc"))
    server = subprocess.Popen([woc, "run", "docs/examples/hello", "--", "0"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        end, rounds = time.time() + a.seconds, 0
        while time.time() < end:
            data = mutate(r)
            out, ended = exchange(port, data, r)
            rounds += 1
            why = fault(out, ended)
            if why is None and server.poll() is not None:
                why = f"the server ended with {server.returncode}"
            if why is None and rounds % 200 == 0:
                out, ended = exchange(port, b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", r)
                if not out.endswith(b'{"ok":true}'):
                    why = "the server no longer serves"
            if why:
                print(f"finding after {rounds} requests: {why}\nsent {data!r}\ngot {out[:2000]!r}")
                return 1
        server.send_signal(signal.SIGTERM)
        status = server.wait(timeout=5)
        print(f"{rounds} requests, no finding, stop status {status}")
        return 0 if status == 0 else 1
    finally:
        if server.poll() is None:
            server.kill()


sys.exit(main())
