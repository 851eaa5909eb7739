#!/usr/bin/env bash
# Acceptance gate of porch itself: tests/apps/probe, an app with every hook and builder, driven by real clients.
# usage: scripts/porch-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `porch: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" P00 python3 curl
exec python3 - <<'PY'
import os, re, signal, socket, struct, subprocess, sys, threading, time

sys.path.insert(0, "scripts")
import porch_http
from gate import WOC, Lag, Server, check, drain, finish, of, parse, same, within


def Probe(env={}, files=4096):
    return Server("P01", "tests/apps/probe", env=env, files=(files, files))


a = Probe()
check("P01", "start", True)

# --- routing (spec 4.4) ---
for leg, target, status, fragment in [
    ("P02", "/show", 200, "path=/show raw=/show"),
    ("P03", "/show/", 200, "path=/show/"),
    ("P04", "//show//x", 200, "p.one=x"),
    ("P05", "/show/a%20b", 200, "p.one=a b"),
    ("P06", "/show/a%2Fb", 200, "p.one=a/b"),
    ("P07", "/show/1/x/2", 200, "p.one=1 p.two=2"),
    ("P08", "/files/a/b%2Fc//d", 200, "p.path=a/b/c/d"),
    ("P09", "/files", 200, "p.path= "),
    ("P10", "/files/../x", 200, "p.path=../x"),
    ("P11", "/star/q/x", 404, "not found"),
    ("P12", "/star/*/x", 404, "not found"),
    ("P13", "/SHOW", 404, "not found"),
    ("P14", "/first/exact", 200, "first"),
    ("P15", "/%73how", 200, "raw=/%73how"),
    ("P16", "/show?a=1&a=2&b&c=%41+x&d=%zz&=e", 200, "q.a=2 q.b= q.c=A x q.d=%zz q.=e"),
    ("P17", "http://other/show", 200, "host=other"),
    ("P18", "//evil.example/show", 404, "not found"),
    ("P19", "/x%2Fapi/ping", 404, "not found"),
]:
    s, h, b = a.ask(target)
    check(leg, f"route {target}", s == status and fragment in b + " ", (s, b))
s, h, b = a.ask("/show/one/x/none/y")
check("P20", "captures of a pattern that does not match stay out", s == 404, b)
for leg, pattern, path, want in [
    ("P21", "/a/:b", "/a/c", "true b=c"), ("P22", "/a/:b", "/a", "false"), ("P23", "/a/*r", "/a/b/c", "true r=b/c"),
    ("P24", "/a/*r", "/a", "true r="), ("P25", "/*r/a", "/x/a", "false"), ("P26", "/", "//", "true"),
    ("P27", "/a/", "a", "true"), ("P28", "/:a/:a", "/1/2", "true a=2"), ("P29", "/a/*", "/a/b", "false"),
    ("P30", "/:a/b", "/x/c", "false"),
]:
    same(leg, f"route_match {pattern} {path}", want, a.ask(f"/match?pattern={pattern}&path={path}")[2])

# --- groups (4.5) ---
for leg, target, status, via in [
    ("P31", "/api/ping", 200, "early,late,api"), ("P32", "//api//ping/", 200, "early,late,api"),
    ("P33", "/%61pi/ping", 200, "early,late,api"), ("P34", "/users/7/show", 200, "early,late,user"),
    ("P35", "/show", 200, "early,late"),
]:
    s, h, b = a.ask(target)
    check(leg, f"chain of {target}", s == status and b.endswith(f"via={via}"), (s, b))
for leg, target, after in [("P36", "/api/none", "abg"), ("P37", "/api", "abg"), ("P38", "/apix", "ab"), ("P39", "/", "ab")]:
    same(leg, f"afters of {target}", after, of(a.ask(target)[1], "x-after"))

# --- middleware and afters (4.1, 4.3) ---
s, h, b = a.ask("/show", "X-Deny: late")
check("P40", "a middleware answers early", (s, b) == (403, '{"error":"denied by late"}') and of(h, "x-after") == "ab", (s, h, b))
same("P41", "an early answer comes before the route", 403, a.ask("/nowhere", "X-Deny: early")[0])
s, h, b = a.ask("/api/none", "X-Deny: api")
check("P42", "a group's middleware answers without a route", s == 403 and of(h, "x-after") == "abg", (s, h))
s, h, b = a.ask("/show", "X-Trap: late")
check("P43", "a middleware traps", s == 500 and '"request_id":"' in b and of(h, "x-request-id") in b and of(h, "x-after") == "ab", (s, h, b))
s, h, b = a.ask("/show", "X-Trap: after-a")
check("P44", "an after traps", s == 500 and sorted(k for k, v in h) == ["Connection", "Content-Length", "Date", "content-type"], (s, h))
s, h, b = a.ask("/boom", "X-Trap: after-b")
check("P45", "handler and after trap", s == 500 and of(h, "content-type") == "application/json", (s, h))
s, h, b = a.ask("/show", "X-Twist: b")
check("P46", "an after sets a bad name", s == 500 and "bad name" not in str(h), (s, h))
check("P47", "the log names trap and place", re.search(r"porch: 500 GET /show request=\d+-\d+-1 trap=8 at after:\d+: asked for\n  at Stamp.after", a.log()), a.log()[-600:])
check("P48", "trap text stays inside", "asked" not in b, b)
check("P49", "Logging", "\nGET /show\n" in a.log() and "GET /a\\x0ab\n" in (a.ask("/a%0ab"), a.log())[1], a.log()[:300])

# --- refusals of the parser run the afters of the path, once it is known (4.1) ---
for leg, lines, after in [("P131", b"GET /api/x HTTP/1.1\r\nHost: a b", b"abg"), ("P132", b"GET /%2561pi/x HTTP/1.1\r\nHost: a b", b"ab"),
                          ("P133", b"G@T /api HTTP/1.1\r\nHost: a", b"ab")]:
    out = a.raw(lines + b"\r\n\r\n")
    check(leg, "afters of a refusal", out.startswith(b"HTTP/1.1 400") and b"\r\nx-after: " + after + b"\r\n" in out, out)

# --- builders (2.1) ---
J = "application/json"
for leg, what, status, kind, body in [
    ("P50", "ok_text", 200, "text/plain; charset=utf-8", "t"), ("P51", "ok_html", 200, "text/html; charset=utf-8", "<p>h</p>"),
    ("P52", "ok_json", 200, J, "{}"), ("P53", "created_json", 201, J, "{}"), ("P54", "no_content", 204, "", ""),
    ("P55", "not_found", 404, J, '{"error":"not found"}'), ("P56", "bad_request", 400, J, '{"error":"a \\"b\\"\\n"}'),
    ("P57", "unauthorized", 401, J, '{"error":"unauthorized"}'), ("P58", "conflict", 409, J, '{"error":"c"}'),
    ("P59", "method_not_allowed", 405, J, '{"error":"method not allowed"}'),
    ("P60", "server_error", 500, J, '{"error":"internal error"}'), ("P61", "json_error", 418, J, '{"error":"teapot"}'),
    ("P62", "redirect", 302, "", ""),
]:
    s, h, b = a.ask(f"/build/{what}")
    extra = {"method_not_allowed": ("allow", "GET, PUT"), "redirect": ("location", "/there?x=1")}.get(what)
    check(leg, what, (s, of(h, "content-type"), b) == (status, kind, body) and (not extra or of(h, extra[0]) == extra[1]), (s, h, b))
s, h, b = a.ask("/vary")
check("P63", "add_vary and set_header", of(h, "vary") == "accept, origin" and of(h, "x-one") == "2", h)
s, h, b = a.ask("/build/ok_text")
same("P64", "order of the head", ["content-type", "x-after", "Date", "Connection", "Content-Length"], [k for k, v in h])

# --- response splitting (3.6) ---
for leg, to in [("P65", "%0d%0aSet-Cookie:%20x=1"), ("P66", "//evil.example"), ("P67", "/a%5Cb"), ("P68", "/a%00b"), ("P69", "%0ax"),
                ("P300", "/%09/evil.example"), ("P301", "%20//evil.example"), ("P302", "%01//evil.example"), ("P303", "%09//evil.example")]:
    s, h, b = a.ask(f"/to?to={to}")
    check(leg, f"redirect {to}", s == 500 and not of(h, "location") and not of(h, "set-cookie"), (s, h))
for leg, name, value in [("P70", "x", "a%0d%0aSet-Cookie:%20y=1"), ("P71", "x%0d%0ay", "v"), ("P72", "x%20y", "v"), ("P73", "", "v"),
                         ("P74", "x", "a%00b"), ("P75", "x:", "v"), ("P76", "x", "a%0db")]:
    s, h, b = a.ask(f"/inject?name={name}&value={value}")
    check(leg, f"header {name!r} {value!r}", s == 500 and not of(h, "x") and not of(h, "set-cookie"), (s, h))
for leg, name, value in [("P304", "Content-Length", "99"), ("P305", "Transfer-Encoding", "chunked"), ("P306", "Connection", "x"), ("P307", "Date", "never")]:
    s, h, b = a.ask(f"/inject?name={name}&value={value}")
    mine = [v for k, v in h if k.lower() == name.lower()]
    want = {"Content-Length": ["5"], "Transfer-Encoding": [], "Connection": ["close"], "Date": ["never"]}[name]
    same(leg, f"one {name}, whatever case a handler gives it", (200, want, "never"), (s, mine, b))
same("P77", "an ordinary header", "a b", of(a.ask("/inject?name=x&value=a+b")[1], "x"))
for name in ["content-length", "Content-Length", "TRANSFER-ENCODING", "Connection"]:
    s, h, b = a.ask(f"/inject?name={name}&value=999")
    check("P77", f"{name} is not the handler's to say", (s, b) == (200, "never") and "999" not in str(h) and not of(h, "transfer-encoding"), (s, h, b))
same("P77", "Date is", "999", of(a.ask("/inject?name=Date&value=999")[1], "date"))

# --- bodies that may not be (3.6, H22) ---
two = lambda target, method=b"GET": a.raw(method + b" " + target + b" HTTP/1.1\r\nHost: a\r\n\r\nGET /show HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
for leg, n in [("P78", 204), ("P79", 304)]:
    out = two(b"/status/%d" % n)
    head, _, rest = out.partition(b"\r\n\r\n")
    check(leg, f"{n} has no body", head.startswith(b"HTTP/1.1 %d " % n) and b"ength" not in head and rest.startswith(b"HTTP/1.1 200"), out[:300])
out = two(b"/status/205")
head, _, rest = out.partition(b"\r\n\r\n")
check("P281", "205 has an empty body (RFC 9110 15.3.6)", head.startswith(b"HTTP/1.1 205 ") and head.endswith(b"Content-Length: 0") and rest.startswith(b"HTTP/1.1 200"), out[:300])
for leg, n in [("P80", 100), ("P81", 199), ("P82", 600), ("P83", 0), ("P84", -5), ("P85", 999999)]:
    same(leg, f"status {n}", 500, a.ask(f"/status/{n}")[0])
same("P86", "status 599", (599, "oops"), a.ask("/status/599")[::2])
for leg, target in [("P87", b"/show"), ("P88", b"/nowhere"), ("P89", b"/boom"), ("P90", b"/big"), ("P91", b"/verbs")]:
    get = parse(a.raw(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    out = a.raw(b"HEAD " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    s, h, b = parse(out)
    length = lambda headers: of(headers, "content-length")
    close = target == b"/boom" or length(h) == length(get[1])
    check(leg, f"HEAD {target.decode()}", s == get[0] and b == "" and close, (s, h, b))
out = two(b"/headed", b"HEAD")
check("P92", "a HEAD route of its own, then GET", b"Content-Length: 9\r\n\r\nHTTP/1.1 200" in out, out[:300])
same("P93", "an OPTIONS route", (200, "opted"), a.ask("/opted", method="OPTIONS")[::2])
s, h, b = a.ask("/verbs", method="POST")
check("P94", "405 lists methods in order", s == 405 and of(h, "allow") == "GET, PUT, DELETE, PATCH", (s, h))
s, h, b = a.ask("/verbs", method="OPTIONS")
check("P95", "OPTIONS lists them too", s == 204 and of(h, "allow") == "GET, PUT, DELETE, PATCH" and b == "", (s, h))
s, h, b = a.ask("*", method="OPTIONS")
check("P96", "OPTIONS *", s == 204 and of(h, "allow") == "POST, GET, PUT, DELETE, PATCH, HEAD, OPTIONS", (s, h))
same("P97", "an unknown method", 405, a.ask("/show", method="BREW")[0])
check("P98", "a route for all methods", "method=BREW" in a.ask("/any", method="BREW")[2])
for method in ["PUT", "DELETE", "PATCH"]:
    same("P99", f"{method} route", method.lower(), a.ask("/verbs", method=method)[2])

# --- connection life (3.8), Expect (3.5), hijack ---
s, h, b = parse(two(b"/closing"))
check("P100", "connection: close of a handler", b == "last" and of(h, "connection") == "close" and of(h, "content-length") == "4" and of(h, "date").startswith("Sun, 06 Nov 1994"), (h, b))
out = two(b"/take")
check("P101", "a hijacked connection", out.endswith(b"\r\n\r\nraw:/take") and out.count(b"HTTP/1.1") == 1, out)
ask = lambda target: b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n"
out = a.raw(ask(b"/first/x") * 3 + ask(b"/take"))
check("P312", "a hijacked connection whose answers are all there first", out.count(b"HTTP/1.1 200") == 3 and out.endswith(b"raw:/take"), out)
with a.connect() as s:
    # The answers cannot wait for a handler that sleeps longer than this client waits.
    s.sendall(ask(b"/first/x") * 3 + ask(b"/asleep"))
    out = b""
    while out.count(b"HTTP/1.1 200") < 3 or not out.endswith(b"first"):
        try:
            d = s.recv(65536)
        except TimeoutError:
            d = b""
        if not d:
            break
        out += d
check("P313", "answers do not wait for the handler behind them", out.count(b"HTTP/1.1 200") == 3, out)
post = lambda *f: ("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + "".join(x + "\r\n" for x in f) + "\r\n").encode()


def expecting(*fields):
    """What comes before the body is sent, and after."""
    s = a.connect()
    with s:
        s.sendall(post("Content-Length: 4", *fields))
        first = s.recv(65536)
        if first.startswith(b"HTTP/1.1 100"):
            s.sendall(b"body")
            return first, s.recv(65536)
        return first + drain(s), b""


first, second = expecting()
check("P102", "100 before the body", first == b"HTTP/1.1 100 Continue\r\n\r\n" and second.endswith(b"body"), (first, second))
first, second = expecting("X-Deny: early")
check("P103", "a refusal of the early part", first.startswith(b"HTTP/1.1 403") and b"100 Continue" not in first and b"Connection: close" in first, first)
first, second = expecting("X-Deny: late")
check("P104", "a refusal of the late part", first.startswith(b"HTTP/1.1 100") and second.startswith(b"HTTP/1.1 403"), (first, second))
out = a.raw(post("Content-Length: 4", "Connection: close") + b"body")
check("P105", "no 100 when the body is there", out.startswith(b"HTTP/1.1 200") and out.endswith(b"body"), out)
first, second = expecting("X-Trap: early")
check("P106", "a trap of the early part", first.startswith(b"HTTP/1.1 500") and b"100 Continue" not in first, first)

# --- large and slow input, linear work ---
patient = Probe({"PROBE_READ_MS": "60000"})  # no client of a loaded machine misses that deadline


def timed(data):
    before = patient.cpu()
    out = patient.raw(data, 60)
    return out, patient.cpu() - before


chunked = lambda n: b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * n + b"0\r\n\r\n"
out, small = timed(chunked(100_000))
out, large = timed(chunked(800_000))
check("P107", "chunks of one byte take linear time", len(parse(out)[2]) == 800_000 and large < 16 * max(small, 0.05), (len(out), small, large))
body = os.urandom(1 << 20)
s, h, b = patient.ask("/echo", method="POST", body=body)
check("P108", "a body of 1 MiB", s == 200 and b.encode("latin-1") == body, (s, len(b)))
same("P109", "a body beyond it", 413, parse(patient.raw(chunked(1_048_577), 60))[0])
n = 10_000
s = patient.connect(60)
with s:
    data = b"GET /first/x HTTP/1.1\r\nHost: a\r\n\r\n" * (n - 1) + b"GET /first/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    push = threading.Thread(target=s.sendall, args=(data,))
    push.start()
    out = drain(s)
    push.join()
same("P110", "10,000 pipelined requests", n, out.count(b"\r\n\r\nfirst"))
before = a.settled_fds()
socks = [a.connect() for _ in range(100)]
began = time.time()
line = b"GET /show HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000
gone, latency, at = set(), 0, 0
with Lag() as lag:
    while len(gone) < len(socks) and time.time() - began < 6:
        for s in socks:
            try:
                s.send(line[at:at + 1]) if s not in gone else None
            except OSError:
                gone.add(s)
        at += 1
        if at % 10 == 5:
            t = time.time()
            a.ask("/show")
            latency = max(latency, time.time() - t)
        time.sleep(0.1)
    answers = {drain(s)[:12] for s in socks}
    took = time.time() - began
check("P111", "a byte now and then does not keep a connection", took < 7 + lag.worst and answers <= {b"HTTP/1.1 400", b""} and latency < 1 + lag.worst, (took, answers, latency, lag.worst))
for s in socks:
    s.close()
for _ in range(200):
    s = a.connect()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.sendall(b"GET /first/x HTTP/1.1\r\nHost: a\r\n\r\n" * 50 + b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab")
    s.close()
check("P112", "after 200 resets descriptors are given back", within(10, lambda: a.fds() <= before), (before, a.fds()))
same("P112", "and the next is served", 200, a.ask("/show")[0])
check("P113", "a vanished client is not an error", "trap=9" not in a.log(), a.log()[-300:])

# --- answers to pipelined requests (3.3, 3.6) ---
def segments(s):
    """Segments with data that came: `tcpi_data_segs_in` of `struct tcp_info`."""
    return struct.unpack_from("I", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 152)[0]


def answers(s, n):
    """What comes until there are `n` answers of `/first/x` or `/slow`, or an end."""
    out = b""
    while len(re.findall(rb"\r\n\r\n(?:first|slow)", out)) < n:
        d = s.recv(65536)
        if not d:
            break
        out += d
    return out


one = b"GET /first/x HTTP/1.1\r\nHost: a\r\n\r\n"
with a.connect() as s:
    s.sendall(one * 64)
    out = answers(s, 64)
    check("P230", "answers to requests that came together share writes", out.count(b"HTTP/1.1 200") == 64 and segments(s) < 64, (out[-200:], segments(s)))
for leg, name, first, second in [
    ("P231", "an answer does not wait for the rest of a head", one[:9], one[9:]),
    ("P232", "an answer does not wait for a body", b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfi", b"rst"),
    ("P233", "an answer does not wait for a chunk", b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfi", b"rst\r\n0\r\n\r\n"),
]:
    with a.connect() as s:
        s.sendall(one + first)
        out = answers(s, 1)
        s.sendall(second)
        check(leg, name, out.count(b"HTTP/1.1 200") == 1 and answers(s, 1).count(b"HTTP/1.1 200") == 1, out)
with a.connect() as s:
    s.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
    out = answers(s, 2)
    check("P234", "nor for a handler that takes its time", out.count(b"slow") == 2 and segments(s) == 2, (out, segments(s)))
with a.connect() as s:
    s.sendall(one + b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    out = answers(s, 1)
    while b"100 Continue" not in out:
        out += s.recv(65536)
    s.sendall(b"first")
    out += answers(s, 1)
    check("P235", "an answer stands before 100 Continue", re.findall(rb"HTTP/1.1 (\d+)", out) == [b"200", b"100", b"200"], out)
with a.connect() as s:
    s.sendall(one + b"GET /take HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nmore")
    out = drain(s)
    check("P236", "an answer stands before what a handler writes", out.startswith(b"HTTP/1.1 200") and out.count(b"HTTP/1.1 200") == 1 and out.endswith(b"raw:/take"), out)
for leg, name, last in [("P237", "a refusal", b"BAD\r\n\r\n"), ("P238", "a trap", b"GET /boom HTTP/1.1\r\nHost: a\r\n\r\n")]:
    with a.connect() as s:
        s.sendall(one * 3 + last + one)
        out = drain(s)
        check(leg, f"answers before {name} are sent", out.count(b"\r\n\r\nfirst") == 3 and out.count(b"HTTP/1.1") == 4, out)
with a.connect() as s:
    s.sendall(one * 3 + one[:20])
    s.shutdown(socket.SHUT_WR)
    out = drain(s)
    check("P239", "answers before an end of the stream are sent", out.count(b"\r\n\r\nfirst") == 3, out)


# --- an answer does not depend on those before it on the connection (3.6) ---
alone = lambda raw: re.sub(rb"Date: [^\r]*", b"Date: now", raw).replace(b"Connection: close", b"Connection: keep-alive")
targets = ["/build/ok_text", "/build/ok_text", "/build/ok_json", "/vary", "/build/no_content", "/status/304", "/status/404", "/to?to=/x",
           "/build/ok_json", "/first/x", "/show?a=1", "/none", "/first/x"]
ask = lambda target, field="": f"GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n".encode()
apart = b"".join(a.raw(ask(t, "Connection: close\r\n")) for t in targets)
in_turn = a.raw(b"".join(ask(t) for t in targets[:-1]) + ask(targets[-1], "Connection: close\r\n"))
same("P280", "answers on one connection and on their own", alone(apart), alone(in_turn))


# --- an answer does not depend on how the request came (3.1) ---
def slowly(data, size):
    s = patient.connect()
    with s:
        try:
            for at in range(0, len(data), size):
                s.sendall(data[at:at + size])
                time.sleep(0.0005)
        except OSError:
            pass
        return drain(s)


head = lambda line, *fields: "\r\n".join([line, *fields, "Connection: close", "", ""]).encode()
for n, (name, data) in enumerate([
    ("a good head", head("GET /first/x HTTP/1.1", "Host: a", "X: 1", "X:  2\t ")),
    ("empty lines before it", b"\r\n\r\n" + head("GET /first/x HTTP/1.1", "Host: a")),
    ("five of them", b"\r\n" * 5 + head("GET /first/x HTTP/1.1", "Host: a")),
    ("a bare line feed behind another version", b"GET /first/x HTTP/2.0\r\nA: b\nHost: a\r\n\r\n"),
    ("a bad field before too many", head("GET /first/x HTTP/1.1", "Host: a", "bad line", *["X: 1"] * 120)),
    ("a bad field before a large head", head("GET /first/x HTTP/1.1", "Host: a", "bad line", *["X: " + "x" * 3000] * 30)),
    ("two blanks in a long line", head("GET  /first/" + "x" * 9000 + " HTTP/1.1", "Host: a")),
    ("a long line of another version", head("GET /first/" + "x" * 9000 + " HTTP/3.0", "Host: a")),
    ("a carriage return at the start of a field", head("GET /first/x HTTP/1.1", "Host: a", "\rX: 1")),
    ("a head that ends early", b"GET /first/x HTTP/1.1\r\n\r\nHost: a\r\n\r\n"),
    ("a version cut short", b"GET /first/x HTTP/1.\r\n\r\n"),
    ("no version", b"GET /first/x\r\n\r\n"),
]):
    whole = patient.raw(data)
    same(f"P{240 + n}", f"{name}, whole and in pieces", (parse(whole)[0], parse(whole)[2]), (lambda r: (parse(r)[0], parse(r)[2]))(slowly(data, max(1, len(data) // 600))))
patient.stop("P253", "stop")

# --- handlers that misbehave ---
for leg, target in [("P114", "/recurse"), ("P115", "/boom")]:
    s, h, b = a.ask(target)
    check(leg, f"{target} answers 500", s == 500 and "internal error" in b, (s, b))
check("P116", "stack overflow is named", "trap=3 at deep:" in a.log(), a.log()[-300:])
spin = [a.connect() for _ in range(2)]
for s in spin:
    s.sendall(b"GET /spin HTTP/1.1\r\nHost: a\r\n\r\n")
check("P117", "the loops run", within(10, lambda: a.log().count("GET /spin\n") == 2), a.log()[-300:])
t = time.time()
good = all(a.ask("/show")[0] == 200 for _ in range(20))
check("P117", "others are served while handlers loop", good and time.time() - t < 5, time.time() - t)
for s in spin:
    s.close()
a.stop("P118", "a stop with handlers that loop", 4, busy=True)

a = Probe({"WO_HEAP_MB": "16"})
s, h, b = a.ask("/eat")
check("P119", "a handler without memory answers 500", s == 500 and "trap=4 at " in a.log(), (s, a.log()[-300:]))
same("P120", "and the next is served", 200, a.ask("/show")[0])
a.stop("P121", "stop")

# --- everything given back ---
# One shard counts its objects as of now; an app that has not ended yet is passed over by the least.
a = Probe({"WO_SHARDS": "1"})
live = [int(a.ask("/live")[2]) for _ in range(40)]
check("P390", "apps of ended connections leave no object behind, without a collection", min(live[20:]) <= min(live[:20]), live)
a.stop("P391", "stop")
# Without huge pages, whose 2 MiB come and go by themselves; the first connections also outlast what compiling left.
a = Probe({"MIMALLOC_ALLOW_THP": "0"})
one = b"GET /boom HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /show HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
# Pages that wait to be given back come on top of what is used, so that the least of some waves counts.
waves = []
for wave in range(8):
    for i in range(800):
        a.raw(one[i % 2])
    time.sleep(0.1)
    waves.append((a.rss(), a.fds()))
least = lambda part, i: min(w[i] for w in part)
check("P122", "memory and descriptors flat over 4,000 connections",
      least(waves[5:], 0) < least(waves[2:5], 0) + 1024 and least(waves[5:], 1) <= least(waves[2:5], 1), waves)
lazy = [a.connect() for _ in range(10)]
for s in lazy:
    s.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
check("P123", "the answers are under way", within(10, lambda: a.log().count("GET /big\n") == 10), a.log()[-300:])
a.stop("P123", "a stop while clients do not read", 4, busy=True)
for s in lazy:
    s.close()
a = Probe()
s = a.connect()
s.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
half = a.connect()
half.sendall(b"GET /show HTT")
# The first middleware has told of it.
check("P124", "the request is in hand", within(10, lambda: "GET /slow\n" in a.log()), a.log())
began = time.time()
a.p.send_signal(signal.SIGTERM)
out = drain(s)
check("P124", "a request in hand is answered at a stop", out.startswith(b"HTTP/1.1 200") and b"Connection: close" in out, out)
check("P125", "half a request is dropped", drain(half) == b"" and time.time() - began < 3, time.time() - began)
a.stop("P126", "stop")

a = Probe(files=64)
crowd = [a.connect() for _ in range(100)]
check("P127", "the limit is reached", within(10, lambda: "descriptor limit" in a.log()), a.log()[-300:])
before = a.cpu()
time.sleep(2)
used = a.cpu() - before
check("P127", "no spinning at the descriptor limit", used < 0.1, used)
for s in crowd:
    s.close()
t = time.time()
same("P128", "served when descriptors are free again", 200, a.ask("/show")[0])
check("P129", "the limit is logged once", a.log().count("descriptor limit") == 1, a.log()[-300:])
a.stop("P130", "stop")

# --- forms, authentication, negotiation, guards, files (2.2 to 2.6, 7): P140 to P189 ---
porch_http.run()

# --- problem details (3.6) ---
a = Probe()
PROBLEM = "application/problem+json"
for leg, accept, want in [("P210", PROBLEM, True), ("P211", "text/html, Application/Problem+JSON;q=0.5", True), ("P212", "*/*", False),
                          ("P213", "application/*", False), ("P214", PROBLEM + ";q=0", False), ("P215", "application/problem+jsonx", False)]:
    s, h, b = a.ask("/nowhere", "Accept: " + accept)
    form = (PROBLEM, "accept", '{"type":"about:blank","title":"Not Found","status":404,"detail":"not found"}')
    plain = ("application/json", "", '{"error":"not found"}')
    same(leg, f"404 for {accept}", (404, *(form if want else plain)), (s, of(h, "content-type"), of(h, "vary"), b))
s, h, b = a.ask("/boom", "Accept: " + PROBLEM)
id = of(h, "x-request-id")
same("P216", "a trap, with the request's id", (500, PROBLEM, f'{{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"internal error","request_id":"{id}"}}'),
     (s, of(h, "content-type"), b))
same("P217", "a refusal after the head was read", (413, PROBLEM), (lambda s, h, b: (s, of(h, "content-type")))(*a.ask("/echo", "Accept: " + PROBLEM, "Content-Length: 1048577", method="POST")))
same("P218", "an error that is not porch's", (599, "", "oops"), (lambda s, h, b: (s, of(h, "content-type"), b))(*a.ask("/status/599", "Accept: " + PROBLEM)))
same("P219", "JSON that is no error", (200, "application/json", "{}"), (lambda s, h, b: (s, of(h, "content-type"), b))(*a.ask("/build/ok_json", "Accept: " + PROBLEM)))
same("P220", "detail is escaped", '{"type":"about:blank","title":"Bad Request","status":400,"detail":"a \\"b\\"\\n"}', a.ask("/build/bad_request", "Accept: " + PROBLEM)[2])
a.stop("P221", "stop")

# --- head hooks (4.1, 4.2), one connection at a time (3.9) ---
a = Server("P260", "tests/apps/single")
both = "after=True first=%d second=%d"
for leg, what, target, fields, status, marks in [
    ("P260", "an answer", "/", (), 200, both), ("P261", "no route", "/none", (), 404, both),
    ("P262", "no method", "/", ("X-Method: 1",), 405, both),
    ("P263", "a trap", "/", ("X-Trap: handler",), 500, both), ("P264", "a refusal", "/", ("Content-Length: x",), 400, both),
    ("P265", "a group's route", "/api/ping", (), 200, both + " api=%d"), ("P266", "a group without a route", "/api/none", (), 404, both + " api=%d"),
]:
    s, h, b = a.ask(target, *fields, method="PUT" if "X-Method: 1" in fields else "GET")
    names = "first, second, api" if "api" in marks else "first, second"
    same(leg, f"head hooks of {what}", (status, (marks % ((status,) * marks.count("%"))).replace("True", "true"), names),
         (s, of(h, "x-head"), of(h, "vary")))
s, h, b = a.ask("/api/ping", "X-Trap: api")
check("P267", "a head hook traps", s == 500 and sorted(k for k, v in h) == ["Connection", "Content-Length", "Date", "content-type"], (s, h))
two = a.raw(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /api/ping HTTP/1.1\r\nHost: a\r\n\r\n")
check("P268", "what is buffered is answered, then the connection closes", two.count(b"HTTP/1.1 200") == 2
      and two.count(b"Connection: keep-alive") == 1 and two.endswith(b"ping"), two)
with a.connect() as first, a.connect() as second:
    first.sendall(b"GET / HT")
    second.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    second.settimeout(0.5)
    early = drain(second)
    first.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")
    second.settimeout(15)
    check("P269", "the second connection waits for the first", early == b"<no end>" and drain(first).endswith(b"home") and drain(second).endswith(b"home"), early)
a.stop("P270", "stop")

# --- an app per connection, and no memory for all of them (3.9) ---
a = Server("P200", "tests/apps/crowded", env={"WO_HEAP_MB": "48"})
before = a.fds()
crowd = [a.connect(3) for _ in range(40)]
for s in crowd:
    s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
answers = []
for s in crowd:
    try:
        answers.append(s.recv(12))
    except ConnectionResetError:
        answers.append(b"")
check("P200", "connections beyond the memory are closed, the others served",
      0 < answers.count(b"HTTP/1.1 200") < 40 and set(answers) == {b"HTTP/1.1 200", b""}, answers)
for s in crowd:
    s.close()
check("P201", "their descriptors are given back", within(5, lambda: a.fds() <= before), (before, a.fds()))
same("P202", "then there is room again", (200, "100000"), a.ask("/")[::2])
check("P203", "and the log says why", "porch: app not built: trap=4 at build:" in a.log() or "porch: connection dropped: trap=4" in a.log(), a.log()[-300:])
a.stop("P204", "stop")

# --- a log that cannot be written costs no answer (4.3) ---
with open("/dev/full", "w") as full:
    p = subprocess.Popen([WOC, "run", "tests/apps/probe"], stdout=subprocess.PIPE, stderr=full)
try:
    port = int(p.stdout.readline().rsplit(b":", 1)[1])
    for leg, target, status in [("P308", b"/show", b"200"), ("P309", b"/boom", b"500"), ("P310", b"/status/204", b"204")]:
        with socket.create_connection(("127.0.0.1", port), timeout=15) as s:
            s.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            out = drain(s)
        check(leg, f"{target} with a full disk behind the log", out.startswith(b"HTTP/1.1 " + status), out)
    p.send_signal(signal.SIGTERM)
    same("P311", "stop", 0, p.wait(8))
finally:
    p.kill()

finish("porch")
PY
