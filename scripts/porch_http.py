"""Legs P140 to P189 of porch-accept.sh: what porch/http makes of requests and answers, by way of the probe's routes."""
import base64, hashlib, json, os, shutil, subprocess, tempfile, urllib.parse

from gate import Server, check, of, parse, same

FORM = "application/x-www-form-urlencoded"
TAG = '"' + base64.b64encode(hashlib.sha256(b"the representation").digest()).decode() + '"'
ARCHIVE = bytes(range(256)) * 64


def tag_of(data):
    return '"' + base64.b64encode(hashlib.sha256(data).digest()).decode() + '"'


def quote(text):
    return urllib.parse.quote(text, safe="")


def tree(base):
    """A folder to serve, and beside it what must never be served."""
    root = os.path.join(base, "public")
    os.makedirs(os.path.join(root, "sub", "deep"))
    for name, data in {
        "a.html": b"<p>a</p>", "sub/b.css": b"b{}", "sub/deep/c.json": b"{}", "a..b": b"dots", ".hidden": b"hidden", "empty.txt": b"",
        "d e.txt": b"blank", "x.tar.gz": ARCHIVE, "y.tgz": b"y", "z.zip": b"z", "limit.bin": b"l" * 65536, "over.bin": b"o" * 65537,
        "sub\\b.css": b"CANARY",
    }.items():
        with open(os.path.join(root, name), "wb") as f:
            f.write(data)
    for place in (base, os.path.join(base, "public-not")):
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "canary.txt"), "wb") as f:
            f.write(b"CANARY")
    os.symlink("nowhere", os.path.join(root, "dangling"))
    os.mkfifo(os.path.join(root, "fifo"))
    return root


def run():
    base = tempfile.mkdtemp(prefix="porch-http")
    a = Server("P140", "tests/apps/probe", env={"PROBE_DIR": tree(base)})
    check("P140", "start", True)
    forms(a)
    multipart(a, base)
    auth(a)
    negotiation(a)
    entity_tags(a)
    preconditions(a)
    guards(a)
    files(a, base)
    hostile(a)
    a.stop("P189", "stop")
    shutil.rmtree(base)


def curl(a, target, *args):
    """What curl makes of an answer: status, header pairs, body."""
    url = f"http://127.0.0.1:{a.port}{target}"
    out = subprocess.run(["curl", "-s", "-i", "--path-as-is", "-H", "Expect:", *args, url], capture_output=True, timeout=60)
    return parse(out.stdout)


def forms(a):
    """2.2 form.wo"""
    post = lambda kind, body: json.loads(a.ask("/form", *([f"Content-Type: {kind}"] if kind else []), method="POST", body=body)[2].encode("latin-1"))
    for kind, want in [("", ""), ("Text/Plain ; charset=x", "text/plain"), ("a/b;", "a/b"), (FORM.upper(), FORM)]:
        same("P141", f"media_type of {kind!r}", want, post(kind, b"a=1")[0])
    for body, want in [
        (b"name=form+kettle&price=12.50&stock=2", {"name": "form kettle", "price": "12.50", "stock": "2"}),
        (b"a=1&a=2&b&=c&&d==e=", {"a": "2", "b": "", "": "c", "d": "=e="}),
        (b"x=%zz%4&y=%C3%A9%2b&%41=%26%3d", {"x": "%zz%4", "y": "é+", "A": "&="}),
    ]:
        same("P142", f"form_values {body}", want, post(FORM + "; charset=UTF-8", body)[1])
    for kind in ["", "application/json", "multipart/form-data", FORM + "x"]:
        same("P143", f"no form: {kind!r}", None, post(kind, b"a=1")[1])
    s, h, b = curl(a, "/form", "--data-urlencode", "q=a b&c=%+é", "-d", "n=1")
    same("P144", "curl posts a form", [FORM, {"q": "a b&c=%+é", "n": "1"}], json.loads(b.encode("latin-1")))


def multipart(a, base):
    """2.2 multipart.wo"""
    path = os.path.join(base, "public", "x.tar.gz")
    s, h, b = curl(a, "/parts?name=field", "-F", "field=mp teapot", "-F", f"file=@{path};type=Image/PNG", "-F", "none=",
                   "-F", f"odd=@{path};filename=c d.bin;type=text/plain", "-F", "field=second")
    lines = b.splitlines()
    teapot = f"9 {tag_of(b'mp teapot')}"
    check("P145", "curl posts fields and files", s == 200 and lines == [
        f'["field","",""] {teapot}', f'["file","x.tar.gz","image/png"] {len(ARCHIVE)} {tag_of(ARCHIVE)}', f'["none","",""] 0 {tag_of(b"")}',
        f'["odd","c d.bin","text/plain"] {len(ARCHIVE)} {tag_of(ARCHIVE)}', f'["field","",""] 6 {tag_of(b"second")}', f"named {teapot}"], (s, b))
    s, h, b = curl(a, "/parts", "-F", f'file=@{path};filename="a;\\"b\\\\.bin"')
    # Old versions of curl escape the quote, new ones write %22.
    name = json.JSONDecoder().raw_decode(b)[0][1] if s == 200 else b
    check("P146", "curl quotes a file name", name in ('a;"b\\.bin', 'a;%22b\\.bin'), name)
    line = b'Content-Disposition: form-data; name="a"'
    part = b"--BXB\r\n" + line + b"\r\n\r\n1\r\n"
    kind = "multipart/form-data; boundary=BXB"
    post = lambda body, kind=kind: a.ask("/parts", f"Content-Type: {kind}", method="POST", body=body)[::2]
    one = f'["a","",""] 1 {tag_of(b"1")}'
    for name, body in [("a preamble and an epilogue", b"x\r\n" + part + b"--BXB--\r\ny\r\n--BXB\r\n"), ("nothing around", part + b"--BXB--")]:
        same("P147", name, (200, one), post(body))
    for how in ['Multipart/Form-Data; charset=x; BOUNDARY="BXB"', 'multipart/form-data ;boundary=BXB;', 'multipart/form-data; a="; boundary=x"; boundary=BXB']:
        same("P148", f"boundary in {how}", (200, one), post(part + b"--BXB--", how))
    refused = (400, '{"error":"not multipart"}')
    for how in ["multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary=""', 'multipart/form-data; boundary="BXB',
                "multipart/mixed; boundary=BXB", "text/plain; boundary=BXB", "multipart/form-data; boundary=BX", "multipart/form-data; boundary=BXB; boundary=BXB"]:
        same("P149", f"no boundary in {how}", refused, post(part + b"--BXB--", how))
    for name, body in [
        ("no closing boundary", part), ("half a closing boundary", part + b"--BXB-"), ("none at all", b"x"), ("an empty part", part + b"--BXB\r\n--BXB--"),
        ("text behind a boundary", part + b"--BXBxx" + line + b"\r\n\r\n1\r\n--BXB--"), ("bare line feeds", (part + b"--BXB--").replace(b"\r", b"")),
        ("no blank line", b"--BXB\r\n" + line + b"\r\n--BXB--"), ("no disposition", b"--BXB\r\nX: y\r\n\r\n1\r\n--BXB--"),
        ("no fields", b"--BXB\r\n\r\n1\r\n--BXB--"), ("an unfinished quote", part.replace(b'"a"', b'"a') + b"--BXB--"),
        ("two names", part.replace(b'"a"', b'a; name=b') + b"--BXB--"), ("another disposition", part.replace(b"form-data", b"attachment") + b"--BXB--"), ("two dispositions", part.replace(line, line + b"\r\n" + line) + b"--BXB--"),
        ("a NUL in a name", part.replace(b'"a"', b'"a\0"') + b"--BXB--"), ("no line break before the boundary", part[:-2] + b"--BXB--"),
        ("one good, one bad", part + b"--BXB\r\nX\r\n\r\n1\r\n--BXB--"),
    ]:
        same("P150", name, refused, post(body))


def auth(a):
    """2.3 auth.wo"""
    show = lambda field: json.loads(a.ask("/auth", *([f"Authorization: {field}"] if field is not None else []))[2].encode("latin-1"))
    pair = lambda text: "Basic " + base64.b64encode(text.encode()).decode()
    for field in [None, "", "Bearer", "Bearer ", "x"]:
        same("P151", f"no auth_header in {field!r}", [None, None, None], show(field))
    same("P152", "bearer_token", [{"scheme": "bearer", "credentials": "a b"}, "a b", None], show("BeaRer  a b"))
    for field, user, word in [(pair("ada:p:w"), "ada", "p:w"), (pair(":"), "", ""), (pair("é:ü").lower()[:6] + pair("é:ü")[6:], "é", "ü")]:
        same("P153", f"basic_credentials of {field}", {"user": user, "pass": word}, show(field)[2])
    for field in [pair("ada"), "Basic YWRhOnB3=", "Basic !!!!", "Basic YWRh OnB3", "Basic =", "Bearer YWRhOnB3"]:
        same("P154", f"no basic_credentials in {field}", None, show(field)[2])
    for one, two, want in [("", "", "true"), ("abc", "abc", "true"), ("abc", "abd", "false"), ("abc", "ab", "false"), ("a%00b", "a%00c", "false")]:
        same("P155", f"ct_eq {one!r} {two!r}", want, a.ask(f"/compare?a={one}&b={two}")[2])
    for text, want in [("", "="), ("Zg==", "=f"), ("Zm8=", "=fo"), ("Zm9v", "=foo"), ("Zh==", "=f"), ("//+/", "=\xff\xff\xbf"), ("Zg", "nil"), ("Zg=a", "nil"),
                       ("Z===", "nil"), ("====", "nil"), ("_-_-", "nil"), ("Zm9v\n", "nil"), ("Zg==Zg==", "nil")]:
        same("P156", f"base64_decode {text!r}", want, a.ask(f"/base64?t={quote(text)}")[2])
    for field, status in [(None, 401), ("Bearer wr0ng!", 401), ("Bearer s3cr3", 401), ("Bearer s3cr3tt", 401), ("Basic s3cr3t", 401), ("s3cr3t", 401)]:
        s, h, b = a.ask("/bearer/x", *([f"Authorization: {field}"] if field else []))
        same("P157", f"BearerAuth refuses {field}", (401, "Bearer", '{"error":"unauthorized"}'), (s, of(h, "www-authenticate"), b))
    same("P158", "BearerAuth", (200, "principal=admin"), a.ask("/bearer/x", "Authorization: bearer s3cr3t")[::2])
    for user in [None, "ada:", "ada:p", "eve:p:w", "ada:p:w:", ":p:w"]:
        s, h, b = curl(a, "/basic/x", *(["-u", user] if user else []))
        check("P159", f"BasicAuth refuses {user}", (s, b) == (401, '{"error":"unauthorized"}')
              and of(h, "www-authenticate") == 'Basic realm="the \\"shop\\" \\\\"', (s, h, b))
    same("P160", "BasicAuth", (200, "principal=ada"), curl(a, "/basic/x", "-u", "ada:p:w")[::2])


def negotiation(a):
    """2.4 nego.wo, 7.1 and 7.2"""
    for accept, mtype, want in [
        (None, "text/html", "1000 true false"), ("*/*", "text/html", "1000 true false"), ("text/html", "text/html", "1000 true true"),
        ("text/html;q=0, */*", "text/html", "0 false false"), ("*/*;q=0.2, text/*;q=0.9, text/html;q=0.125", "text/html", "125 true true"),
        ("application/*", "application/json", "1000 true false"), ("text/plain", "text/html", "0 false false"), ("TEXT/html ; Q=1.000", "text/html", "1000 true true"),
        ("text/html;q=1.001", "text/html", "0 false false"), ('text/html;a="b,text/plain"', "text/plain", "0 false false"),
    ]:
        fields = [f"Accept: {accept}"] if accept is not None else []
        same("P161", f"accept_q, accepts, accept_names of {accept}", want, a.ask(f"/accept?type={mtype}", *fields)[2])
    offers = "text/html,application/json,text/plain"
    for accept, want in [(None, "=text/html"), ("application/json, text/html", "=text/html"), ("text/plain;q=0.2, application/json;q=0.3", "=application/json"),
                         ("text/html;q=0.9, */*", "=application/json"), ("image/png", "nil"), ("*/*;q=0", "nil"), ("text/*;q=0.1", "=text/html")]:
        fields = [f"Accept: {accept}"] if accept is not None else []
        same("P162", f"best_of {accept}", want, a.ask(f"/best?offers={offers}", *fields)[2])
    same("P163", "several Accept lines are one list", "=application/json", a.ask(f"/best?offers={offers}", "Accept: text/html;q=0.1", "Accept: application/json")[2])
    table = {
        "gzip": ["gzip", "gzip;q=1.0", "deflate,gzip", "br, gzip;q=0.8", "*", "*;q=0.5", "identity, gzip", "gzip;q=0.5", "identity;q=0", "x-gzip", "GZip",
                 "gzip ;q=0.1", "gzip;q=0.001, br", "identity;q=0.5, *", "gzip, *;q=0", "identity;q=0, *;q=0.1", "gzip;q=0.2, identity;q=0.2"],
        "identity": ["", "gzip;q=0", "gzip;q=0, *", "deflate", "identity;q=1, *;q=0", "identity;q=1, gzip;q=0.5", "identity", "notgzip", "gzip;q=1.5", "gzip;q=0.1234", "gzip;q=0.000",
                     "x-gzip;q=0, *", "br;x=\"gzip\"", "gzip;q=0, *;q=0.5"],
        "nil": ["identity;q=0, gzip;q=0", "*;q=0", "identity;q=0, *;q=0", "br, *;q=0", "deflate, identity;q=0"],
    }
    for coding, values in table.items():
        for value in values:
            got = a.ask("/encoding", f"Accept-Encoding: {value}")[2]
            same("P164", f"encoding_for {value!r}", coding if coding == "nil" else "=" + coding, got)
    same("P165", "encoding_for without the field", "=identity", a.ask("/encoding")[2])


def entity_tags(a):
    """7.3"""
    same("P166", "etag_for", TAG, of(a.ask("/tagged")[1], "etag"))
    same("P167", "with_weak_etag", "W/" + TAG, of(a.ask("/tagged/weak")[1], "etag"))
    bare = TAG[1:-1]
    for value, status in [(TAG, 304), (f"W/{TAG}", 304), ("*", 304), (f'"x", {TAG}', 304), (f'W/"a,b" ,{TAG}', 304), (f"x, {TAG}", 304), (bare, 200), (f'"{bare}x"', 200),
                          (f'"x{bare}"', 200), (f'"{bare[:-1]}"', 200), (f"w/{TAG}", 200), ('"*"', 200), ("", 200), (f'"x, {bare}"', 200), (f"{TAG}x", 200)]:
        for target in ["/tagged", "/tagged/weak"]:
            for coding in ["gzip", "identity", "gzip;q=0"]:
                s, h, b = a.ask(target, f"If-None-Match: {value}", f"Accept-Encoding: {coding}")
                check("P168", f"{target} If-None-Match {value} {coding}", s == status and of(h, "etag").endswith(TAG) and (b == "") == (s == 304), (s, h, b))
    same("P169", "two lines are one list", 304, a.ask("/tagged", 'If-None-Match: "x"', f"If-None-Match: {TAG}")[0])
    strip = lambda headers: [(k, v) for k, v in headers if k not in ("Date", "Content-Length")]
    for target in ["/tagged", "/tagged/weak", "/cors-list/vary"]:
        fields = ["Authorization: Bearer s3cr3t", "Origin: https://a.example"]
        full, cached = a.ask(target, *fields), a.ask(target, *fields, f"If-None-Match: {TAG}")
        names = [k for k, v in cached[1]]
        check("P170", f"a 304 of {target} has the fields of the 200", (full[0], cached[0]) == (200, 304) and strip(full[1]) == strip(cached[1])
              and "Date" in names and {"etag", "vary", "cache-control", "content-location", "expires"} <= set(names), (full, cached))
    for method, status in [("HEAD", 304), ("POST", 200), ("PUT", 200), ("DELETE", 200)]:
        s, h, b = a.ask("/tagged", "If-None-Match: *", method=method)
        check("P171", f"{method} with If-None-Match", s == status and of(h, "etag") == TAG, (s, h))
    s, h, b = a.ask("/tagged/404", "If-None-Match: *")
    check("P172", "a 404 stays one", (s, b) == (404, "the representation") and of(h, "etag") == TAG, (s, h, b))


def preconditions(a):
    """7.3, unsafe methods"""
    for tag, fields, status in [
        ('"a"', [], 200), (None, [], 200), ('"a"', ['If-Match: "a"'], 200), ('"a"', ['If-Match: "b", "a"'], 200), ('"a"', ["If-Match: *"], 200),
        ('"a"', ['If-Match: W/"a"'], 412), ('W/"a"', ['If-Match: W/"a"'], 412), ('"a"', ['If-Match: "ab"'], 412), ('"a"', ["If-Match: a"], 412),
        ('W/"a"', ['If-Match: "a"'], 412), (None, ["If-Match: *"], 412), (None, ['If-Match: "a"'], 412), ('"a"', ['If-None-Match: "a"'], 412), ('"a"', ['If-None-Match: W/"a"'], 412),
        ('"a"', ["If-None-Match: *"], 412), (None, ["If-None-Match: *"], 200), ('"a"', ['If-None-Match: "b"'], 200), ('"a"', ['If-Match: "a"', 'If-None-Match: "a"'], 412),
        ('"b"', ['If-Match: "a"', 'If-None-Match: "c"'], 412), ('"a"', ['If-Match: "a"', 'If-None-Match: "c"'], 200),
    ]:
        s, h, b = a.ask("/guarded" + (f"?tag={quote(tag)}" if tag else ""), *fields, method="PUT")
        check("P173", f"{fields} on {tag}", s == status and b == ("done" if status == 200 else '{"error":"precondition failed"}'), (s, b))


def guards(a):
    """2.5 secure.wo"""
    three = [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("referrer-policy", "strict-origin-when-cross-origin")]
    token = "Authorization: Bearer s3cr3t"
    for target, status in [("/cors-any/x", 200), ("/cors-any/none", 404), ("/cors-list/x", 401)]:
        s, h, b = a.ask(target)
        check("P174", f"SecurityHeaders on {target}", s == status and [x for x in h if x in three] == three, (s, h))
    allow = lambda h: [x for x in h if x[0].startswith("access-control-")]
    ask = lambda target, *fields: a.ask(target, *fields, method="OPTIONS")
    s, h, b = ask("/cors-any/x", "Origin: http://x", "Access-Control-Request-Method: PUT")
    check("P175", "a preflight of any origin", (s, b) == (204, "") and of(h, "vary") == "" and allow(h) == [
        ("access-control-allow-origin", "*"), ("access-control-allow-methods", "GET, POST, PUT, DELETE, OPTIONS"),
        ("access-control-allow-headers", "authorization, content-type"), ("access-control-max-age", "600")], (s, h))
    s, h, b = ask("/cors-list/x", "Origin: http://b.example:8080", "Access-Control-Request-Method: PUT")
    check("P176", "a preflight of a listed origin, before authentication", (s, b) == (204, "") and of(h, "vary") == "origin" and allow(h) == [
        ("access-control-allow-origin", "http://b.example:8080"), ("access-control-allow-methods", "GET"), ("access-control-allow-headers", "x-a"),
        ("access-control-max-age", "5")], (s, h))
    for origin in ["http://b.example", "https://a.example.evil", "HTTPS://a.example", "https://a.example/", "null", "*", "https://a.example, http://b.example:8080"]:
        s, h, b = ask("/cors-list/x", f"Origin: {origin}", "Access-Control-Request-Method: PUT")
        check("P177", f"a preflight of {origin}", (s, b) == (204, "") and of(h, "vary") == "origin" and not allow(h), (s, h))
        s, h, b = a.ask("/cors-list/x", f"Origin: {origin}", token)
        check("P178", f"GET of {origin}", s == 200 and of(h, "vary") == "origin" and not allow(h), (s, h))
    for target, fields, want in [("/cors-any/x", ["Origin: http://x"], [("access-control-allow-origin", "*")]), ("/cors-any/x", [], []),
                                 ("/cors-any/none", ["Origin: http://x"], [("access-control-allow-origin", "*")]),
                                 ("/cors-list/x", ["Origin: https://a.example"], [("access-control-allow-origin", "https://a.example")]), ("/cors-list/x", [], [])]:
        s, h, b = a.ask(target, *fields)
        check("P179", f"{target} with {fields}", allow(h) == want and of(h, "vary") == ("origin" if "list" in target else ""), (s, h))
    for fields in [["Origin: http://x"], ["Access-Control-Request-Method: PUT"]]:
        s, h, b = ask("/cors-any/x", *fields)
        check("P180", f"OPTIONS with {fields} alone is none", s == 204 and of(h, "allow") == "GET" and not of(h, "access-control-max-age"), (s, h))
    s, h, b = a.ask("/cors-list/vary", token)
    same("P181", "one vary of all contributors", "accept-encoding, origin", of(h, "vary"))
    for host, status in [("shop.example:8080", 200), ("shop.example", 421), ("SHOP.example:8080", 421), ("shop.example:80800", 421), ("evil", 421)]:
        s, h, b = parse(a.raw(f"GET /hosted/x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()))
        check("P182", f"HostAllow {host}", s == status and (s == 200 or b == '{"error":"misdirected request"}'), (s, b))
    for fields, hops, want in [([], "", "="), (["6.6.6.6"], "", "=6.6.6.6"), ([" 6.6.6.6 , 5.5.5.5"], "", "=6.6.6.6"), (["6.6.6.6", "5.5.5.5,4.4.4.4"], "1", "=4.4.4.4"),
                               (["6.6.6.6", "5.5.5.5,4.4.4.4"], "2", "=5.5.5.5"), (["6.6.6.6", "5.5.5.5"], "0", "=6.6.6.6"), (["6.6.6.6"], "2", "="), ([], "1", "=")]:
        got = a.ask(f"/address?hops={hops}", *[f"X-Forwarded-For: {f}" for f in fields])[2]
        same("P183", f"client_ip, forwarded_ip of {fields}, {hops or 'no'} hops", want, got)


# Ways out of the folder that is served; `/canary.txt` stands beside it.
TRAVERSALS = [
    "../canary.txt", "..%2fcanary.txt", "..%2Fcanary.txt", "%2e%2e/canary.txt", "%2E%2E/canary.txt", "%2e%2e%2fcanary.txt", ".%2e/canary.txt",
    "%2e./canary.txt", "%252e%252e/canary.txt", "%252e%252e%252fcanary.txt", "..%252fcanary.txt", "..\\canary.txt", "..%5ccanary.txt",
    "%2e%2e%5ccanary.txt", "..%255ccanary.txt", "sub/../../canary.txt", "sub/..%2f..%2fcanary.txt", "sub%2f..%2f..%2fcanary.txt", "./../canary.txt",
    "%2e/%2e%2e/canary.txt", "//../canary.txt", "..//canary.txt", "%2f..%2fcanary.txt", "../canary.txt%00", "..%00/canary.txt", "a.html%00/../../canary.txt",
    "..%c0%afcanary.txt", "%c0%ae%c0%ae/canary.txt", "..;/canary.txt", "../public-not/canary.txt", "..%2fpublic-not%2fcanary.txt", "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "%2fetc%2fpasswd", "..%u2215canary.txt", "....//canary.txt", "..../canary.txt",
]


def files(a, base):
    """2.6 files.wo"""
    for target, kind, body in [
        ("/static/a.html", "text/html; charset=utf-8", "<p>a</p>"), ("/static/sub/b.css", "text/css; charset=utf-8", "b{}"),
        ("/static/sub%2Fdeep/c.json", "application/json", "{}"), ("/static/a..b", "application/octet-stream", "dots"),
        ("/static/.hidden", "application/octet-stream", "hidden"), ("/static/empty.txt", "text/plain; charset=utf-8", ""),
        ("/static/d%20e.txt", "text/plain; charset=utf-8", "blank"), ("/static/limit.bin", "application/octet-stream", "l" * 65536),
    ]:
        s, h, b = a.ask(target)
        check("P184", target, (s, of(h, "content-type"), b) == (200, kind, body) and not of(h, "content-disposition"), (s, h, b[:100]))
        check("P184", f"HEAD {target}", a.ask(target, method="HEAD")[::2] == (200, ""))
    for name, kind in [("x.tar.gz", "application/gzip"), ("y.tgz", "application/gzip"), ("z.zip", "application/zip")]:
        s, h, b = curl(a, f"/static/{name}")
        check("P185", f"{name} is an attachment", s == 200 and of(h, "content-disposition") == "attachment" and of(h, "content-type") == kind, (s, h))
    same("P185", "every byte of it", ARCHIVE, curl(a, "/static/x.tar.gz")[2].encode("latin-1"))
    for target in ["/static", "/static/", "/static/none", "/static/sub", "/static/sub/", "/static/sub/deep", "/static/a.html/x", "/static/dangling", "/static/fifo", "/static/%20",
                   "/static/" + "x" * 300, "/static/" + "x" * 6000, "/static/" + "x/" * 3000, "/static-uncaught", "/static/A.HTML", "/static/%2Fa.html", "/static/sub%2F%2Fb.css", "/static/sub%5Cb.css"]:
        same("P186", f"{target[:40]} is none", 404, a.ask(target)[0])
    s, h, b = a.ask("/static/over.bin")
    check("P187", "a file over the limit is 500 and logged", (s, b) == (500, '{"error":"internal error"}')
          and f"porch: file over the limit of 65536 bytes: {base}/public/over.bin\n" in a.log(), (s, b, a.log()[-300:]))
    for t in TRAVERSALS:
        out = a.raw(f"GET /static/{t} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode("latin-1"))
        s, h, b = parse(out)
        check("P188", f"traversal {t}", s in (400, 404) and b"CANARY" not in out and b"root:" not in out, out[:300])
    for t in TRAVERSALS[:4] + TRAVERSALS[7:9]:
        s, h, b = curl(a, f"/static/{t}")
        check("P188", f"curl {t}", s in (400, 404) and "CANARY" not in b, (s, b))
    for target in ["//evil.com/", "/%5Cevil.com/", "/%2F%2Fevil.com/", "/static//evil.com/", "//evil.com/static/a.html/", "/static/sub"]:
        s, h, b = a.ask(target)
        check("P188", f"no redirect from {target}", s == 404 and not of(h, "location"), (s, h))
    for name, kind in [("a.woff2", "font/woff2"), ("a.svg", "image/svg+xml"), ("a.HTML", "application/octet-stream"), ("a.js", "text/javascript")]:
        same("P188", f"content_type {name}", kind, a.ask(f"/type?name={name}")[2])


def hostile(a):
    """1.4: bodies of 1 MiB and heads of 64 KiB take linear time."""
    mib = 1 << 20
    boundary = "multipart/form-data; boundary=B"
    part = b"\r\n--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1"
    for target, kind, name, body in [
        ("/form", FORM, "escapes", b"a=" + b"%41" * (mib // 3 - 1)), ("/form", FORM, "plus signs", b"+" * mib), ("/form", FORM, "ampersands", b"&" * mib),
        ("/form", FORM, "percent signs", b"%" * mib), ("/form", FORM, "pairs", b"a=&" * (mib // 3)), ("/parts", boundary, "parts", part * (mib // 60) + b"\r\n--B--"),
        ("/parts", boundary, "boundaries", b"\r\n--B" * (mib // 5)), ("/parts", boundary, "halves of them", b"\r\n--" * (mib // 4)),
        ("/parts", boundary, "parameters", part[:-5] + b";" * (mib - 100) + b"\r\n\r\n\r\n--B--"),
        ("/parts", boundary, "part fields", b"--B" + b"\r\na:" * (mib // 4 - 10) + b"\r\n\r\n\r\n--B--"),
    ]:
        before = a.cpu()
        s = a.ask(target, f"Content-Type: {kind}", method="POST", body=body)[0]
        used = a.cpu() - before
        check("P189", f"1 MiB of {name}", s in (200, 400) and used < 1, (s, used))
    for target, field, count in [("/accept?type=a/b", "Accept", 7), ("/encoding", "Accept-Encoding", 7), ("/tagged", "If-None-Match", 7), ("/cors-list/x", "Origin", 7),
                                 ("/address?hops=1", "X-Forwarded-For", 7), ("/auth", "Authorization", 1), ("/form", "Content-Type", 1)]:
        for filling in [",", '"', ";", 'W/"a",', "a;q=0.1,", " "]:
            text = filling * (8000 // len(filling))
            lines = f"{field}: x{text}\r\n" * count
            before = a.cpu()
            out = a.raw(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n".encode())
            used = a.cpu() - before
            check("P189", f"{field} full of {filling!r}", out.startswith(b"HTTP/1.1 ") and out[9:12] in (b"200", b"400", b"401", b"405") and used < 0.5, (out[:200], used))
