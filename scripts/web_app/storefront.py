"""Legs W1 to W59: the storefront, built as its users build it, with real clients on real sockets."""
import glob, json, os, re, signal, socket, subprocess, threading, time

import gate
from gate import WOC, Server, check, drain, of, same, skipped
from web_app.workspace import Workspace, edit, woc

TOKEN = "s3cr3t"
AUTH = f"Authorization: Bearer {TOKEN}".encode()
JSON = "Content-Type: application/json"
PROBLEM = "application/problem+json"


class Shop(Server):
    """The storefront with a store of its own, or one that another has left."""

    def __init__(self, app, data, files=(8192, 8192), port="0", **env):
        env = {"WA_TOKEN": TOKEN, "WA_IDLE_MS": "600", "WO_DATA": data, **env}
        super().__init__("W7", os.path.join(app, "target", "web-app"), port, env=env, files=files)

    def get(self, target, *fields, method="GET", body=b"", **head):
        """Status, header pairs, body of one request on a connection of its own; the length must be what the head says."""
        return whole(self.raw(request(method, target, *fields, "Connection: close", body=body, **head)), method)


def request(method, target, *fields, body=b"", host="a", token=TOKEN, version="1.1"):
    head = [f"{method} {target} HTTP/{version}", f"Host: {host}", f"Content-Length: {len(body)}", *fields]
    if token:
        head.append(f"Authorization: Bearer {token}")
    return "".join(line + "\r\n" for line in head).encode("latin-1") + b"\r\n" + body


def whole(raw, method="GET"):
    status, headers, body = gate.parse(raw)
    bodiless = method == "HEAD" or status in (204, 304)
    length = 0 if bodiless else int(of(headers, "content-length") or -1)
    return (status, headers, body) if len(body) == length else (0, headers, f"{len(body)} bytes of {length}: {raw[:500]!r}")


def answer(s):
    """One answer with a length, off a connection that stays."""
    out = b""
    while b"\r\n\r\n" not in out:
        d = s.recv(1)
        if not d:
            return out
        out += d
    length = int(re.search(rb"(?i)\r\ncontent-length: (\d+)", out)[1])
    while length:
        d = s.recv(length)
        if not d:
            return out + b"<cut>"
        out += d
        length -= len(d)
    return out


class Lag:
    """How late this machine wakes a thread that sleeps, at worst, while the block runs: what bounds on time are widened by."""

    def __enter__(self):
        self.worst, self.on = 0.0, True
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while self.on:
            t = time.monotonic()
            time.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - t - 0.01)

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


def at_once(jobs):
    """What each of the jobs gives, in threads that a barrier lets go together."""
    barrier, out = threading.Barrier(len(jobs)), [None] * len(jobs)

    def one(i):
        barrier.wait()
        out[i] = jobs[i]()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(jobs))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return out


def within(seconds, holds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# --- building (W1 to W7) ---

def build(space):
    app = space.app("web-app")
    status, out = woc(app)
    built = os.access(os.path.join(app, "target", "web-app"), os.X_OK)
    good = status == 0 and built and os.path.exists(os.path.join(app, "wo.lock"))
    check("W1", "woc builds the app and locks porch", good, (status, out))
    if not good:
        gate.finish("web-app")
    return app


def compile_legs(space):
    same("W2", "woc on porch says nothing", (0, ""), woc(space.porch))
    bad = space.app("web-app", "web-app-internal")
    edit(os.path.join(bad, "main.wo"), "-- web-app <port>:", "use porch/internal\n-- web-app <port>:")
    status, out = woc(bad)
    check("W3", "internal modules stay internal", status == 1 and "main.wo:1:1" in out and "WO-E108" in out, (status, out))
    bad = space.app("web-app", "web-app-junk")
    edit(os.path.join(bad, "wo.toml"), 'version = "0.1.0"', 'version = "0.1.0"\nkind = "junk"')
    status, out = woc(bad)
    check("W4", "an unknown kind", status == 2 and "WO-E109" in out and "junk" in out, (status, out))
    for name in ("hello", "chat"):
        app = space.app(name)
        status, out = woc(app)
        built = os.access(os.path.join(app, "target", name), os.X_OK)
        check("W5", f"woc builds {name}", status == 0 and built, (status, out))


def code_of(path):
    """The source without comments and texts."""
    with open(path) as f:
        return re.sub(r'--[^\n]*|"(?:\\.|[^"\\])*"', "", f.read())


def static_legs(space):
    middleware = os.path.join(space.porch, "middleware")
    limiter = code_of(os.path.join(middleware, "limiter.wo"))
    touches = re.findall(r"\b(?:from|insert|delete|select|RateLimitCounter|IdempotencyKey|rate_limit_counters|idempotency_keys)\b", limiter)
    same("W6", "the limiter touches no table", [], touches)
    with open(os.path.join(middleware, "limiter.wo")) as f:
        same("W6", "nor names one", [], re.findall("rate_limit_counters|idempotency_keys", f.read()))
    store = code_of(os.path.join(middleware, "store.wo"))
    declared = re.findall(r"^\s*(?:pub )?(class|typedef|type|interface|fn|const|test)\b", store, re.M)
    same("W6", "store.wo declares its two classes", ["class"] * 2, declared)
    swallowed = [(os.path.basename(f), found) for f in sorted(glob.glob(os.path.join(middleware, "*.wo")))
                 for found in re.findall(r"[^\n]*\bcatch \(\w+\)\s*(?:nil\b|\{\s*(?:nil\s*)?\})", code_of(f))]
    same("W6", "no failure is swallowed", [], swallowed)


def gc_leg(space, app):
    for path in (space.porch, app, space.path("hello"), space.path("chat")):
        status, out = woc("dump", "gc", path)
        traced = [line.split()[0] for line in out.splitlines() if line.split()[1:2] == ["gc"]]
        # Programs without middleware have no pool.
        want = ["Pool"] if path in (space.porch, app) else []
        same("W58", f"what is traced in {os.path.basename(path)}", (0, want), (status, traced))


def start_legs(space, app):
    program = os.path.join(app, "target", "web-app")

    def run(*args, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("WO_DATA", "WO_EPHEMERAL", "WA_TOKEN")}
        done = subprocess.run([program, *args], env={**clean, **env}, capture_output=True, text=True, timeout=30)
        return done.returncode, done.stdout, done.stderr

    status, out, err = run("0", WA_TOKEN=TOKEN)
    check("W7", "no store, no start", status == 2 and "WO_DATA" in err and out == "", (status, out, err))
    for leg, name, args, env in [
        ("W57", "no port", [], {"WA_TOKEN": TOKEN}), ("W57", "two ports", ["0", "0"], {"WA_TOKEN": TOKEN}),
        ("W57", "no number", ["8o"], {"WA_TOKEN": TOKEN}), ("W57", "a port too large", ["65536"], {"WA_TOKEN": TOKEN}),
        ("W57", "no token", ["0"], {}), ("W57", "an empty token", ["0"], {"WA_TOKEN": ""}),
        ("W57", "WA_LIMIT=x", ["0"], {"WA_TOKEN": TOKEN, "WA_LIMIT": "x"}),
        ("W57", "WA_IDLE_MS=-1", ["0"], {"WA_TOKEN": TOKEN, "WA_IDLE_MS": "-1"}),
    ]:
        status, out, err = run(*args, WO_DATA=space.path("unused"), **env)
        check(leg, name, (status, out) == (2, "") and "usage: " in err, (status, out, err))
    for name, target in [("hello", "/health"), ("chat", "/")]:
        other = Server("W7", os.path.join(space.path(name), "target", name), "0")
        same("W7", f"{name} needs no store", 200, other.ask(target)[0])
        other.stop("W7", f"{name} stops")


# --- the catalogue (W8 to W24) ---

def form(text, kind="application/x-www-form-urlencoded"):
    return {"method": "POST", "body": text.encode()}, "Content-Type: " + kind


def multipart(fields, end="--BXB--\r\n"):
    parts = "".join(f'--BXB\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields)
    return {"method": "POST", "body": (parts + end).encode()}, 'Content-Type: multipart/form-data; boundary=BXB'


def post(a, target, text, *fields):
    return a.get(target, JSON, *fields, method="POST", body=text.encode())


def catalogue_legs(a):
    for leg, token in [("W8", None), ("W9", "wr0ng!")]:
        s, h, b = a.get("/products", token=token)
        check(leg, f"token {token}", (s, b) == (401, '{"error":"unauthorized"}'), (s, b))
    same("W10", "no products", (200, "[]"), a.get("/products")[::2])
    s, h, b = post(a, "/products", '{"name":"mug","price":9.99,"stock":5}')
    check("W11", "create", (s, b, of(h, "content-type")) == (201, '{"name":"mug","price":9.99,"stock":5}', "application/json"), (s, h, b))
    same("W12", "duplicate", (409, '{"error":"product name already exists"}'), post(a, "/products", '{"name":"mug","price":1,"stock":1}')[::2])
    same("W13", "a whole price", (201, '{"name":"plate","price":12.0,"stock":1}'), post(a, "/products", '{"name":"plate","price":12,"stock":1}')[::2])
    for text in ["{oops", "", "[]", "{}", '{"name":"x","price":1}', '{"name":1,"price":1,"stock":1}', '{"name":"","price":1,"stock":1}',
                 '{"name":"x","price":1,"stock":1.5}', '{"name":"x","price":"1","stock":1}', "{" * 5000]:
        same("W14", f"body {text[:40]!r}", (400, '{"error":"body must be {name, price, stock}"}'), post(a, "/products", text)[::2])
    urlencoded = "application/x-www-form-urlencoded"
    for leg, text, kind, status, want in [
        ("W15", "name=form+kettle&price=12.50&stock=2", urlencoded + "; charset=UTF-8", 201, '{"name":"form kettle","price":12.5,"stock":2}'),
        ("W16", "name=x&price=abc&stock=1", urlencoded, 400, '{"error":"price must be a number"}'),
        ("W16", "name=x&price=inf&stock=1", urlencoded, 400, '{"error":"price must be a number"}'),
        ("W16", "name=x&price=1&stock=2x", urlencoded, 400, '{"error":"stock must be a number"}'),
        ("W16", "name=x&price=1&stock=", urlencoded, 400, '{"error":"stock must be a number"}'),
        ("W16", "name=x&price=1", urlencoded, 400, '{"error":"form needs name, price, stock"}'),
        ("W16", "", urlencoded, 400, '{"error":"form needs name, price, stock"}'),
        ("W16", "name=x&price=1&stock=1", "application/JSON", 400, '{"error":"body must be {name, price, stock}"}'),
    ]:
        how, field = form(text, kind)
        same(leg, f"form {text!r}", (status, want), a.get("/products", field, **how)[::2])
    teapot = [("name", "mp teapot"), ("price", "30"), ("stock", "1")]
    for leg, name, (how, field), status, want in [
        ("W17", "multipart", multipart(teapot), 201, '{"name":"mp teapot","price":30.0,"stock":1}'),
        ("W18", "no closing marker", multipart(teapot, end=""), 400, '{"error":"unreadable multipart body"}'),
        ("W18", "a part too few", multipart(teapot[:2]), 400, '{"error":"multipart needs name, price, stock"}'),
        ("W18", "price", multipart([("name", "x"), ("price", "1,5"), ("stock", "1")]), 400, '{"error":"price must be a number"}'),
    ]:
        same(leg, name, (status, want), a.get("/products", field, **how)[::2])
    listed = [("form kettle", 12.5, 2), ("mp teapot", 30.0, 1), ("mug", 9.99, 5), ("plate", 12.0, 1)]
    want = "[" + ",".join(json.dumps(dict(zip(("name", "price", "stock"), p)), separators=(",", ":")) for p in listed) + "]"
    same("W19", "list, by name", (200, want), a.get("/products")[::2])
    same("W20", "show", (200, '{"name":"mug","price":9.99,"stock":5}'), a.get("/products/mug")[::2])
    same("W20", "show, escaped", (200, '{"name":"form kettle","price":12.5,"stock":2}'), a.get("/products/form%20kettle")[::2])
    same("W21", "show none", (404, '{"error":"not found"}'), a.get("/products/none")[::2])
    same("W22", "order", (201, '{"ok":true}'), post(a, "/orders", '{"product":"mug","qty":2}')[::2])
    for text, status, want in [
        ("{oops", 400, "body must be {product, qty}"), ('{"product":"mug"}', 400, "body must be {product, qty}"),
        ('{"qty":1}', 400, "body must be {product, qty}"), ('{"product":"mug","qty":0}', 400, "qty must be positive"),
        ('{"product":"mug","qty":-3}', 400, "qty must be positive"), ('{"product":"none","qty":1}', 404, "not found"),
    ]:
        same("W22", f"order {text}", (status, json.dumps({"error": want}, separators=(",", ":"))), post(a, "/orders", text)[::2])
    refused = '{"error":"orders still reference this product"}'
    same("W23", "delete what orders refer to", (409, refused), a.get("/products/mug", method="DELETE")[::2])
    same("W23", "delete", (200, '{"deleted":true}'), a.get("/products/plate", method="DELETE")[::2])
    same("W23", "delete again", 404, a.get("/products/plate", method="DELETE")[0])
    same("W23", "served on", 200, a.get("/products/mug")[0])
    s, h, b = a.get("/products", method="PUT")
    check("W24", "405", (s, b) == (405, '{"error":"method not allowed"}') and of(h, "allow") == "GET, POST", (s, h, b))


def race_legs(a):
    """What only rows decide, never a look before the write."""
    many = [lambda: post(a, "/products", '{"name":"rare","price":1,"stock":1}')[0]] * 32
    same("W59", "32 creations of one name", [201] + [409] * 31, sorted(at_once(many)))
    odd = []
    for i in range(20):
        post(a, "/products", json.dumps({"name": f"r{i}", "price": 1, "stock": 1}))
        order = lambda: post(a, "/orders", json.dumps({"product": f"r{i}", "qty": 1}))[0]
        delete = lambda: a.get(f"/products/r{i}", method="DELETE")[0]
        seen = sorted(at_once([order] * 3 + [delete] * 3))
        kept = a.get(f"/products/r{i}")[0]
        # Either an order came first and the product stays, or a deletion did and nothing was ordered.
        if (seen, kept) not in [([200, 404, 404, 404, 404, 404], 404), ([201, 201, 201, 409, 409, 409], 200)]:
            odd.append((seen, kept))
    check("W59", "orders and deletions of one product", not odd, odd[:3])


# --- routes (W25 to W36) ---

# Each path with what its methods answer to an empty body; GET stands for HEAD, too.
ROUTES = [
    ("/products", {"GET": 200, "POST": 400}), ("/products/none", {"GET": 404, "DELETE": 404}), ("/orders", {"POST": 400}),
    ("/files/x", {"GET": 200}), ("/files", {"GET": 200}), ("/etag-probe", {"GET": 200}), ("/nego", {"GET": 200}),
    ("/slow", {"GET": 200}), ("/echo", {"POST": 200}), ("/target", {"GET": 200}), ("/to", {"GET": 400}), ("/to?to=/x", {"GET": 302}),
    ("/api/ping", {"GET": 200}), ("/boom", {"GET": 500}), ("/", {}), ("/product", {}), ("/products/a/b", {}), ("/api", {}),
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW", "get"]


def method_legs(a):
    for path, takes in ROUTES:
        allow = ", ".join(takes)
        bad = []
        for method in METHODS:
            s, h, b = a.get(path, method=method)
            as_if = "GET" if method == "HEAD" else method
            if as_if in takes:
                want = (takes[as_if], "")
            elif not takes:
                want = (404, "")
            else:
                want = (204 if method == "OPTIONS" else 405, allow)
            if (s, of(h, "allow")) != want or s == 204 and b:
                bad.append((method, want, s, of(h, "allow"), b[:100]))
        check("W25", f"methods of {path}", not bad, bad)


def head_legs(a):
    for path, takes in ROUTES:
        if "GET" not in takes or path == "/boom":
            continue
        get, head = a.get(path), a.get(path, method="HEAD")
        same("W26", f"HEAD {path}", (get[0], of(get[1], "content-length"), ""), (head[0], of(head[1], "content-length"), head[2]))
        out = a.raw(request("HEAD", path) + request("GET", path, "Connection: close"))
        first, rest = out.split(b"\r\n\r\n", 1)
        s, h, b = whole(rest)
        check("W26", f"HEAD, then GET {path}", first.startswith(b"HTTP/1.1 %d " % get[0]) and (s, b) == (get[0], get[2]), out)


def names_of(headers, without=("connection", "date", "content-length")):
    return [(k.lower(), v) for k, v in headers if k.lower() not in without]


def route_legs(a):
    s, h, b = a.get("/products", method="OPTIONS")
    check("W27", "OPTIONS", (s, b) == (204, "") and of(h, "allow") == "GET, POST" and not of(h, "content-length"), (s, h, b))
    for leg, target, want in [("W28", "/files/a/b/c", "path=a/b/c"), ("W28", "/files/a%2Fb//c", "path=a/b/c"), ("W29", "/files", "path="),
                              ("W29", "/files/", "path=")]:
        same(leg, target, (200, want), a.get(target)[::2])
    for target, status in [("/api/ping", 200), ("//api/ping", 200), ("/api//ping/", 200), ("/%61pi/ping", 200), ("/apix", 404), ("/x%2Fapi/ping", 404)]:
        s, h, b = a.get(target)
        check("W30", target, s == status and (s == 404 or b == "pong via=api-group"), (s, b))
    s, plain, b = a.get("/etag-probe")
    tag = of(plain, "etag")
    check("W31", "a strong tag", (s, b) == (200, '{"v":1}') and re.fullmatch('"[A-Za-z0-9+/=]{44}"', tag), (s, plain, b))
    for value, status in [(tag, 304), (f'"other", {tag}', 304), ("W/" + tag, 304), ("*", 304), (tag.strip('"'), 200), (tag[:-1] + 'x"', 200)]:
        s, h, b = a.get("/etag-probe", f"If-None-Match: {value}")
        good = s == status and b == ("" if status == 304 else '{"v":1}')
        check("W32", f"If-None-Match: {value}", good and names_of(h) == names_of(plain) and of(h, "date"), (s, h, plain, b))
    for accept, status, want in [("text/html", 406, '{"error":"json only"}'), ("application/*", 200, '{"ok":true}'),
                                 ("application/json;q=0, */*", 406, '{"error":"json only"}'), ("*/*;q=0.001", 200, '{"ok":true}')]:
        same("W33", f"Accept: {accept}", (status, want), a.get("/nego", f"Accept: {accept}")[::2])
    security = ["nosniff", "DENY", "strict-origin-when-cross-origin"]
    for target in ("/products", "/nowhere", "/boom"):
        h = a.get(target)[1]
        values = [v for k, v in h if k in ("x-content-type-options", "x-frame-options", "referrer-policy")]
        same("W34", f"security headers of {target}", security, values)
    for host in ("evil", "a:80", "A", "a.evil"):
        same("W35", f"Host: {host}", (421, '{"error":"misdirected request"}'), a.get("/products", host=host)[::2])
    s, h, b = a.get("/products", "Origin: http://x", "Access-Control-Request-Method: POST", method="OPTIONS", token=None)
    cors = [(k, v) for k, v in h if k.startswith("access-control-")]
    names = ["allow-origin", "allow-methods", "allow-headers", "max-age"]
    check("W36", "preflight", (s, b) == (204, "") and [k[15:] for k, _ in cors] == names and cors[0][1] == "*", (s, h, b))
    s, h, b = a.get("/products", "Origin: http://x")
    check("W37", "a cross-origin GET", s == 200 and of(h, "access-control-allow-origin") == "*", (s, h))
    same("W37", "and one of the same origin", "", of(a.get("/products")[1], "access-control-allow-origin"))


# --- errors (W38 to W40) ---

def error_legs(a):
    problem = {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "not found"}
    s, h, b = a.get("/nowhere", f"Accept: {PROBLEM}")
    good = s == 404 and of(h, "content-type") == PROBLEM and of(h, "vary") == "accept" and json.loads(b) == problem
    check("W38", "a problem, where it is asked for", good, (s, h, b))
    for accept in ("*/*", "application/*", f"{PROBLEM};q=0", "application/json"):
        s, h, b = a.get("/nowhere", f"Accept: {accept}")
        check("W38", f"Accept: {accept}", (s, b, of(h, "content-type")) == (404, '{"error":"not found"}', "application/json"), (s, h, b))
    s, h, b = a.get("/boom")
    seen = re.fullmatch(r'\{"error":"internal error","request_id":"([\d-]+)"\}', b)
    logged = seen and f"porch: 500 GET /boom request={seen[1]} trap=1 at " in a.log()
    good = s == 500 and logged and of(h, "x-request-id") == seen[1] and of(h, "x-frame-options") == "DENY"
    check("W39", "a trap", good, (s, h, b, a.log()[-500:]))
    same("W39", "served on", 200, a.get("/products")[0])
    for to in ["%0d%0aSet-Cookie:%20x=1", "//evil.example", "/%5Cevil.example", "%5C%5Cevil.example", "/a%00b", "%0a", "%0d"]:
        s, h, b = a.get(f"/to?to={to}")
        check("W40", f"redirect to {to}", s == 500 and not of(h, "location") and not of(h, "set-cookie"), (s, h))
    s, h, b = a.get("/to?to=/here%20?x=1")
    check("W40", "a redirect", (s, of(h, "location"), b) == (302, "/here ?x=1", ""), (s, h, b))
    same("W40", "to nowhere", 400, a.get("/to")[0])
    for target in ["//evil.com/", "/%5Cevil.com/", "/%2F%2Fevil.com/", "//evil.com//products/"]:
        s, h, b = a.get(target)
        check("R01", f"no slash is added or taken: {target}", s == 404 and not of(h, "location"), (s, h))


# --- raw requests (W41 to W45) ---

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
    for size in [b"1000000000000000f", b"10000000000000005", b"0x5", b"+5", b"-5", b"1_0", b"5.0", "٥".encode(), b" 5", b"\t5", b";x", b"", b"5 x", b"g"]:
        yield f"chunk size {size}", echo(H, AUTH, chunked, body=size + b"\r\nabcde\r\n0\r\n\r\n"), 400
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
    kept("HTTP/1.0 that asks to stay", request("GET", "/files/x", "Connection: Keep-Alive", version="1.0"), b"path=x")


def split_legs(a):
    body = b"b" * 120
    data = request("POST", "/echo", "X-Pad: " + "p" * 60, body=body)
    want = b"\r\n\r\n" + body
    with a.connect() as s:
        for i in range(len(data)):
            s.send(data[i:i + 1])
        out = answer(s)
    check("W43", f"{len(data)} bytes, one by one", out.startswith(b"HTTP/1.1 200 ") and out.endswith(want), out)
    bad = []
    with a.connect() as s:
        for cut in range(1, len(data)):
            s.sendall(data[:cut])
            time.sleep(0.001)
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
    out = a.raw(request("POST", "/echo", "Expect: 100-continue", body=body, version="1.0"))
    check("W45", "HTTP/1.0: no 100", whole(out)[::2] == (200, body.decode()), out[:200])


# --- time and load (W46 to W53) ---

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
            t = time.monotonic()
            s.sendall(b"GET /products HTTP/1.1\r\nHost: a\r\n")
            out, took = drain(s), time.monotonic() - t
        s, h, b = whole(out)
        check("W48", "half a head", (s, b) == (400, '{"error":"request timed out"}') and took < 2.5 + lag.worst and of(h, "connection") == "close", (out, took))


def dribble_leg(a):
    """No byte of a request wins more time."""
    before = settled(a)
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


def settled(a):
    """Descriptors of the server without connections."""
    least = a.fds()
    for _ in range(10):
        time.sleep(0.03)
        least = min(least, a.fds())
    return least


def soak_leg(a):
    before = settled(a)
    idle, served = [], 0
    for _ in range(5):
        idle += [a.connect() for _ in range(100)]
        real = [a.connect() for _ in range(100)]
        [s.sendall(request("GET", "/products/mug", "Connection: close")) for s in real]
        served += sum(whole(drain(s))[::2] == (200, '{"name":"mug","price":9.99,"stock":5}') for s in real)
        [s.close() for s in real]
    evicted = sum(drain(s) == b"" for s in idle)
    check("W50", "real ones are served", served >= 495, served)
    check("W50", "idle ones are sent away", evicted >= 495, evicted)
    [s.close() for s in idle]
    check("W50", "descriptors are back", within(3, lambda: a.fds() <= before + 8), (before, a.fds()))
    check("W50", "memory", a.rss() < 409_600, a.rss())
    same("W50", "served on", 200, a.get("/products/mug")[0])


def descriptor_leg(app, space):
    a = Shop(app, space.path("data-51"), files=(64, 64), WO_SHARDS="2", WA_IDLE_MS="20000")
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


def large_legs(a):
    same("W52", "1 MiB of [", 400, post(a, "/products", "[" * (1 << 20))[0])
    same("W52", "a byte too many", (413, '{"error":"body too large"}'), a.get("/echo", method="POST", body=b"x" * 1_048_577)[::2])
    same("W52", "served on", 200, a.get("/products")[0])


# --- restarts (W53 to W56) ---

def orders(data):
    status, out = woc("db", "dump", "--table", "Order", data)
    return len(out.splitlines()) if status == 0 else out


def restart_legs(app, a, data, port):
    idle = [a.connect() for _ in range(50)]
    same("W53", "served beside 50 idle ones", 200, a.get("/products")[0])
    a.stop("W53", "SIGTERM with idle connections", busy=True)
    [s.close() for s in idle]
    before = orders(data)
    a = Shop(app, data, port=port)
    check("W54", "the rows are there after a restart", '"name":"mug","price":9.99,"stock":5' in a.get("/products")[2], a.get("/products"))
    order = lambda qty, key: post(a, "/orders", json.dumps({"product": "mug", "qty": qty}), f'Idempotency-Key: "{key}"')
    first, second, other = order(1, "k1"), order(1, "k1"), order(2, "k1")
    replay = lambda h: of(h, "idempotency-replayed")
    check("W55", "executed", first[::2] == (201, '{"ok":true}') and not replay(first[1]), first)
    check("W55", "replayed", second[::2] == first[::2] and replay(second[1]) == "true", second)
    same("W55", "another order under the key", (422, '{"error":"idempotency key reused with a different request"}'), other[::2])
    a.stop("W55", "stops")
    same("W55", "one row more", before + 1, orders(data))
    a = Shop(app, data, port=port, WA_LIMIT="3")
    seen = [a.get("/products/mug") for _ in range(4)]
    same("W56", "the fourth is refused", [200, 200, 200, 429], [s for s, h, b in seen])
    same("W56", "what remains", ["2", "1", "0", "0"], [of(h, "x-ratelimit-remaining") for s, h, b in seen])
    check("W56", "retry-after", re.fullmatch(r"[1-9]\d?", of(seen[3][1], "retry-after")) and not of(seen[2][1], "retry-after"), seen)
    same("W56", "who is not known is not counted", 401, a.get("/products/mug", token=None)[0])
    a.stop("W56", "stops")
    same("W56", "the store is whole", 0, woc("db", "check", data)[0])


def run():
    space = Workspace()
    app = build(space)
    data = space.path("data")
    port = os.environ.get("WA_PORT", "0")
    a = Shop(app, data, port=port)
    limit = threading.Thread(target=descriptor_leg, args=(app, space))
    limit.start()
    for legs in (catalogue_legs, race_legs, method_legs, head_legs, route_legs, error_legs, raw_legs, valid_raw_legs, split_legs,
                 expect_legs, large_legs, slow_leg, silence_legs, dribble_leg, soak_leg):
        legs(a)
    restart_legs(app, a, data, port)
    limit.join()
    compile_legs(space)
    start_legs(space, app)
    static_legs(space)
    gc_leg(space, app)
