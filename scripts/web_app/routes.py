"""Legs W25 to W40, R01: the route table, groups, tags, negotiation, headers of every answer, errors."""
import json, re

from gate import check, of, same
from web_app.client import request, whole

PROBLEM = "application/problem+json"
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


def legs(a):
    method_legs(a)
    head_legs(a)
    route_legs(a)
    error_legs(a)
