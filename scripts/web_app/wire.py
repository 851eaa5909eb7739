"""Legs W41 to W45, W52: requests byte by byte, those to refuse and those to take."""
import re, select, time

from gate import answer, check, drain, of, same
from web_app.catalogue import post
from web_app.client import AUTH, request, whole


def raw_rows():
    """Name, bytes, status."""
    def echo(*lines, body=b"", first=b"POST /echo HTTP/1.1"):
        return first + b"\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body

    H, chunked = b"Host: a", b"Transfer-Encoding: chunked"
    hidden = b"0\r\n\r\nGET /products HTTP/1.1\r\nHost: a\r\n" + AUTH + b"\r\n\r\n"
    for value in [b"21000000000000000000", b"9223372036854775808", b"18446744073709551621", b"0x10", b"+5", b"-5", b"-0", b"1_0", b"5.0",
                  "٥".encode(), b"", b"5 5", b"5,5", b"5;", b"\x005"]:
        yield f"Content-Length: {value}", echo(H, AUTH, b"Content-Length: " + value, body=b"xxxxx"), 400
    for one, two in [(b"0", b"5"), (b"5", b"0"), (b"5", b"5")]:
        yield f"lengths {one} and {two}", echo(H, AUTH, b"Content-Length: " + one, b"Content-Length: " + two, body=b"xxxxx"), 400
    for length in (b"0", b"5", b"43"):
        yield f"length {length}, then coding", echo(H, AUTH, b"Content-Length: " + length, chunked, body=hidden), 400
        yield f"coding, then length {length}", echo(H, AUTH, chunked, b"Content-Length: " + length, body=hidden), 400
    for size in [b"1000000000000000f", b"10000000000000005", b"0x5", b"+5", b"-5", b"1_0", b"5.0", "٥".encode(), b" 5", b"\t5", b";x", b"", b"5 x", b"g", b"5\r;x", b"5\x0b;x", b"5;\rx"]:
        # Whoever takes it for five finds five bytes, whoever takes it for none the end.
        yield f"chunk size {size}", echo(H, AUTH, chunked, body=size + b"\r\nabcde\r\n0\r\n\r\n"), 400
        yield f"chunk size {size}, the end", echo(H, AUTH, chunked, body=size + b"\r\n\r\n" + hidden[5:]), 400
    yield "a chunk without its end", echo(H, AUTH, chunked, body=b"5\r\nabcdeX0\r\n\r\n"), 400
    yield "a chunk line that LF ends", echo(H, AUTH, chunked, body=b"5\nabcde\r\n0\r\n\r\n"), 400
    yield "a size without digits, then a request", echo(H, AUTH, chunked, body=b";x\r\n" + hidden), 400
    for line in [b"Content-Length : 5", b"Transfer-Encoding : chunked", b"Host : a", b"NoColonHere", b": x", b"X-A\x00: x", b"X A: x", b"X-\xe9: x"]:
        yield f"field {line}", echo(H, AUTH, line, body=b"xxxxx"), 400
    for value in [b"ab\x00cd", b"ab\rcd", b"ab\x01cd", b"ab\x7fcd", b"\x00"]:
        yield f"value {value}", echo(H, AUTH, b"X-A: " + value), 400
    yield "lines that LF ends", b"GET /products HTTP/1.1\nHost: a\n" + AUTH + b"\n\n", 400
    yield "no Host", echo(AUTH), 400
    yield "two Hosts", echo(H, H, AUTH), 400
    for host in [b"a b", b"a/b", b"a?b", b"a#b", b"u@a", b"a,a", b"a\tb"]:
        yield f"Host: {host}", echo(b"Host: " + host, AUTH), 400
    yield "a folded field", echo(H, AUTH, b"X-A: b", b" c: d"), 400
    yield "a field folded with a tab", echo(H, AUTH, b"X-A: b", b"\tc: d"), 400
    yield "a length hidden by folding", echo(b" Content-Length: 5", H, AUTH, body=b"GET /"), 400
    yield "a blank before the request line", b" " + echo(H, AUTH), 400
    for target in [b"/a b", b"/a\x01", b"/a\x7f", b"/a\xc3\xa9", b"/a#b", b"/a%00", b"/%0", b"products", b"*", b"ftp://a/x", b"http:///x", b"", b"/a\tb"]:
        yield f"target {target}", echo(H, AUTH, first=b"GET " + target + b" HTTP/1.1"), 400
    for first in [b"GET  /products HTTP/1.1", b"GET /products  HTTP/1.1", b"GET /products", b"G@T /products HTTP/1.1", b"GET /products HTTP/1.1 ",
                  b"GET /products HTTP/x.1", b"GET /products HTTP/11", b"GET /products http/1.1", b"GET /products HTTP/1.10", b"\x16\x03\x01\x02\x00"]:
        yield f"first line {first}", echo(H, AUTH, first=first), 400
    yield "a long line", echo(H, AUTH, first=b"GET /" + b"a" * 9000 + b" HTTP/1.1"), 414
    yield "a large head", echo(H, AUTH, *[b"X%d: " % i + b"v" * 800 for i in range(90)]), 431
    yield "101 fields", echo(H, AUTH, *[b"X%d: v" % i for i in range(99)]), 431
    yield "a body too long", echo(H, AUTH, b"Content-Length: 1048577"), 413
    yield "a chunk too long", echo(H, AUTH, chunked, body=b"100001\r\n"), 413
    yield "gzip, chunked", echo(H, AUTH, b"Transfer-Encoding: gzip, chunked"), 501
    yield "chunked twice", echo(H, AUTH, b"Transfer-Encoding: chunked, chunked", body=hidden), 501
    yield "chunked in two fields", echo(H, AUTH, chunked, chunked, body=hidden), 501
    for value in [b"chunked, gzip", b"identity", b"xchunked", b"", b"\x0bchunked", b"chunked;q=1", b'"chunked"']:
        yield f"Transfer-Encoding: {value}", echo(H, AUTH, b"Transfer-Encoding: " + value, body=hidden), 400
    yield "a coding in HTTP/1.0", echo(H, AUTH, chunked, body=hidden, first=b"POST /echo HTTP/1.0"), 400
    yield "HTTP/2.0", echo(H, AUTH, first=b"GET /products HTTP/2.0"), 505
    yield "HTTP/0.9", echo(H, AUTH, first=b"GET /products HTTP/0.9"), 505
    yield "the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505
    yield "CONNECT", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n" + AUTH + b"\r\n\r\n", 501
    yield "Expect: tea", echo(H, AUTH, b"Expect: tea", b"Content-Length: 1", body=b"x"), 417


def raw_legs(a):
    for name, data, status in raw_rows():
        out = a.raw(data)
        s, h, b = whole(out)
        good = s == status and out.count(b"HTTP/1.1 ") == 1
        good = good and of(h, "connection") == "close" and of(h, "x-frame-options") == "DENY" and b.startswith('{"error":"')
        check("W41", name, good, (status, out[:400]))
    bare = lambda data: re.sub(rb"Date: [^\r]*", b"", a.raw(data))
    rows = {name: data for name, data, _ in raw_rows()}
    for length in (b"0", b"5", b"43"):
        same("W41", f"both orders of length {length} and coding", bare(rows[f"length {length}, then coding"]), bare(rows[f"coding, then length {length}"]))
    # The limits themselves are allowed.
    edge = [b"Host: a", AUTH, b"Connection: close"] + [b"X%d: v" % i for i in range(97)]
    same("W41", "100 fields", 200, whole(a.raw(b"GET /target HTTP/1.1\r\n" + b"\r\n".join(edge) + b"\r\n\r\n"))[0])
    same("W41", "a body of the largest size", (200, "x" * 1048576), a.get("/echo", method="POST", body=b"x" * 1048576)[::2])
    for target, status, want in [
        ("//evil.example/x", 404, '{"error":"not found"}'), ("//evil.example/target", 404, '{"error":"not found"}'),
        ("//target?q=%41", 200, '{"path":"//target","host":"a","query":"q=%41"}'),
        ("/target?x", 200, '{"path":"/target","host":"a","query":"x"}'), ("http://evil/target", 421, '{"error":"misdirected request"}'),
    ]:
        same("W41", f"{target} keeps its host", (status, want), a.get(target)[::2])


def valid_raw_legs(a):
    def kept(name, data, want):
        """The answer, and then another on the same connection."""
        with a.connect() as s:
            s.sendall(data)
            first = answer(s)
            s.sendall(request("GET", "/target?again"))
            second = answer(s)
        good = first.startswith(b"HTTP/1.1 200 ") and b"Connection: keep-alive" in first and first.endswith(want) and b'"query":"again"' in second
        check("W42", name, good, (first, second))

    head = b"Host: a\r\n" + AUTH + b"\r\n"
    chunked = b"POST /echo HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n"
    kept("chunks with an extension", chunked + b"5;ext=1;q=\"a;b\"\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", b"hello world")
    kept("leading zeros", chunked + b"0000000000000000000005\r\nhello\r\n000\r\n\r\n", b"hello")
    kept("sizes in either case, a trailer", chunked + b"A\r\n0123456789\r\na\r\nabcdefghij\r\n0\r\nX-T: 1\r\n\r\n", b"0123456789abcdefghij")
    kept("Chunked", chunked.replace(b"chunked", b"Chunked") + b"1\r\nx\r\n0\r\n\r\n", b"x")
    kept("absolute form", b"GET http://a/target?abs HTTP/1.1\r\nHost: evil\r\n" + AUTH + b"\r\n\r\n", b'{"path":"/target","host":"a","query":"abs"}')
    kept("empty lines ahead", b"\r\n\r\n" + request("GET", "/files/x"), b"path=x")
    kept("blanks around values", b"GET /files/x HTTP/1.1\r\nHost: \t a \t\r\n" + AUTH + b"  \r\nContent-Length:  0 \r\n\r\n", b"path=x")
    kept("bytes above ASCII in a value", b"GET /files/x HTTP/1.1\r\n" + head + "X-A: é\r\n\r\n".encode(), b"path=x")
    out = a.raw(request("GET", "/files/x", version="1.0"))
    check("W42", "HTTP/1.0 closes", whole(out)[::2] == (200, "path=x") and b"Connection: close" in out, out)
    out = a.raw(b"GET /files/x HTTP/1.0\r\n" + AUTH + b"\r\n\r\n")
    check("W42", "HTTP/1.0 needs no Host", whole(out)[::2] == (421, '{"error":"misdirected request"}'), out)
    kept("HTTP/1.0 that asks to stay", request("GET", "/files/x", "Connection: Keep-Alive", version="1.0"), b"path=x")


def split_legs(a):
    body = b"b" * 120
    data = request("POST", "/echo", "X-Pad: " + "p" * 60, body=body)
    want = b"\r\n\r\n" + body
    with a.connect() as s:
        for i in range(len(data)):
            s.send(data[i:i + 1])
            # So that the server sees each by itself, mostly.
            time.sleep(0.001)
        out = answer(s)
    check("W43", f"{len(data)} bytes, one by one", out.startswith(b"HTTP/1.1 200 ") and out.endswith(want), out)
    bad = []
    with a.connect() as s:
        for cut in range(1, len(data)):
            s.sendall(data[:cut])
            time.sleep(0.002)
            s.sendall(data[cut:])
            out = answer(s)
            if not (out.startswith(b"HTTP/1.1 200 ") and out.endswith(want)):
                bad.append((cut, out))
                break
    check("W43", "every split in two", not bad, bad)
    out = a.raw(b"".join(request("GET", f"/target?n={i}") for i in (1, 2)) + request("GET", "/target?n=3", "Connection: close"))
    same("W44", "three in one write, in order", ["1", "2", "3"], re.findall(r'"query":"n=(\d)"', out.decode()))
    check("W44", "three answers", out.count(b"HTTP/1.1 200 OK\r\n") == 3, out)


def expect_legs(a):
    body = b"e" * 65536

    def expecting(*fields, expect="100-Continue", **head):
        """What comes before the body is sent, and what after it."""
        data = request("POST", "/echo", f"Expect: {expect}", "Connection: close", *fields, body=body, **head)
        with a.connect() as s:
            s.sendall(data[:-len(body)])
            first = b""
            while b"\r\n\r\n" not in first:
                d = s.recv(65536)
                if not d:
                    break
                first += d
            if first != b"HTTP/1.1 100 Continue\r\n\r\n":
                return first + drain(s), b""
            s.sendall(body)
            return first, drain(s)

    first, second = expecting()
    check("W45", "100, then 200", first.startswith(b"HTTP/1.1 100 ") and whole(second)[::2] == (200, body.decode()), (first[:200], second[:200]))
    for name, status, head in [("no token", 401, {"token": None}), ("another host", 421, {"host": "evil"})]:
        first, second = expecting(**head)
        check("W45", f"{name}: {status} and no 100", first.startswith(b"HTTP/1.1 %d " % status) and b"100 Continue" not in first and b"Connection: close" in first, first)
    data = request("POST", "/echo", "Expect: 100-continue", body=body, version="1.0")
    with a.connect() as s:
        s.sendall(data[:-len(body)])
        early = select.select([s], [], [], 0.3)[0]
        s.sendall(body)
        out = drain(s)
    check("W45", "HTTP/1.0: no 100", not early and whole(out)[::2] == (200, body.decode()), out[:200])


def large_legs(a):
    cpu = a.cpu()
    same("W52", "1 MiB of [", 400, post(a, "/products", "[" * (1 << 20))[0])
    check("W52", "takes no time to speak of", a.cpu() - cpu < 1, a.cpu() - cpu)
    same("W52", "a byte too many", (413, '{"error":"body too large"}'), a.get("/echo", method="POST", body=b"x" * 1_048_577)[::2])
    same("W52", "served on", 200, a.get("/products")[0])


def legs(a, patient):
    """`patient` is a server whose deadlines leave a client time for every byte."""
    raw_legs(a)
    valid_raw_legs(a)
    split_legs(patient)
    expect_legs(patient)
    large_legs(a)
