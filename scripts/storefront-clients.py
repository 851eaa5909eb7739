#!/usr/bin/env python3
"""The storefront gives four independent HTTP clients the same answers.

usage: scripts/storefront-clients.py [--all]   (WOC names the compiler; default: target/release/woc)

Each client sends the same 40 requests to a storefront with an empty store: Python's http.client and curl always, the
`requests` library and Node's fetch where they are installed; --all requires them, and installs `requests` into a
throw-away environment if need be. The statuses must be those that stand beside the requests, and the transcripts equal
byte for byte but for dates, request ids and `Connection`. Prints `ok` and `FAIL` lines, then `storefront-clients: N checks, M failures`.
"""
import argparse, base64, hashlib, http.client, json, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
sys.path.insert(0, "scripts")
os.environ.setdefault("WOC", os.path.join(ROOT, "target", "release", "woc"))
from gate import WOC, check, finish, same
from web_app.client import TOKEN, Shop
from web_app.workspace import woc

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
TAG = '"' + base64.b64encode(hashlib.sha256(b'{"v":1}').digest()).decode() + '"'


def script():
    """The requests: method, target, content type, body, more fields, status of the answer."""
    mug = '{"name":"mug","price":9.99,"stock":5}'
    order = '{"product":"mug","qty":2}'
    parts = "".join(f'--B x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in
                    [("name", "Krug ü/1"), ("price", "30"), ("stock", "1")]) + "--B x--\r\n"
    key = lambda k: {"idempotency-key": k}
    rows = [
        ("GET", "/products", None, None, {}, 200), ("POST", "/products", JSON, mug, {}, 201), ("POST", "/products", JSON, mug, {}, 409),
        ("POST", "/products", JSON, "{oops", {}, 400), ("POST", "/products", JSON, "", {}, 400),
        ("POST", "/products", FORM + "; charset=UTF-8", "name=form+kettle&price=12.50&stock=2", {}, 201),
        ("POST", "/products", FORM, "name=x&price=abc&stock=1", {}, 400),
        ("POST", "/products", 'multipart/form-data; boundary="B x"', parts, {}, 201),
        ("GET", "/products", None, None, {}, 200), ("HEAD", "/products", None, None, {}, 200),
        ("OPTIONS", "/products", None, None, {}, 204), ("PUT", "/products", JSON, mug, {}, 405), ("BREW", "/products", None, None, {}, 405),
        ("GET", "/products/form%20kettle", None, None, {}, 200), ("GET", "/products/none", None, None, {}, 404),
        ("GET", "/products/Krug%20%C3%BC%2F1", None, None, {}, 200), ("HEAD", "/products/none", None, None, {}, 404),
        ("POST", "/orders", JSON, order, key("k1"), 201), ("POST", "/orders", JSON, order, key("k1"), 201),
        ("POST", "/orders", JSON, order, key('"k1"'), 201), ("POST", "/orders", JSON, '{"product":"mug","qty":3}', key("k1"), 422),
        ("POST", "/orders", JSON, order, {}, 201), ("POST", "/orders", JSON, '{"product":"none","qty":1}', key("k2"), 404),
        ("POST", "/orders", JSON, order, key("k 3"), 400), ("DELETE", "/products/mug", None, None, {}, 409),
        ("DELETE", "/products/form%20kettle", None, None, {}, 200), ("DELETE", "/products/form%20kettle", None, None, {}, 404),
        ("GET", "/files/a/b%2Fc", None, None, {}, 200), ("GET", "/etag-probe", None, None, {}, 200),
        ("GET", "/etag-probe", None, None, {"if-none-match": TAG}, 304), ("GET", "/etag-probe", None, None, {"if-none-match": '"x"'}, 200),
        ("GET", "/nego", None, None, {"accept": "text/html"}, 406),
        ("POST", "/echo", "text/plain", "".join(chr(32 + i % 95) for i in range(100_000)), {}, 200),
        ("POST", "/echo", "text/plain", "\0\r\n\r\nü€", {}, 200), ("GET", "/target?a=%26&b=+", None, None, {}, 200),
        ("GET", "/to?to=/here", None, None, {}, 302), ("GET", "/to?to=//evil.example", None, None, {}, 500),
        ("GET", "/products", None, None, {"origin": "http://x"}, 200), ("GET", "//api/ping", None, None, {}, 200),
        ("GET", "/boom", None, None, {}, 500),
    ]
    made = []
    for method, target, kind, body, fields, status in rows:
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "*/*", **fields, **({"content-type": kind} if kind else {})}
        data = None if body is None else body.encode()
        made.append({"method": method, "target": target, "headers": headers, "data": data, "status": status})
    return made


# Each client gives status, header pairs and body of every answer, in order.

def by_http_client(port, requests, place):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for r in requests:
        c.request(r["method"], r["target"], r["data"], {**r["headers"], "host": "a"})
        a = c.getresponse()
        yield a.status, a.getheaders(), a.read()
    c.close()


def by_curl(port, requests, place):
    out = os.path.join(place, "curl-out")
    for r in requests:
        fields = [x for k, v in r["headers"].items() for x in ("-H", f"{k}: {v}")]
        how = ["-I"] if r["method"] == "HEAD" else ["-X", r["method"]]
        body = ["--data-binary", "@-"] if r["data"] is not None else []
        command = ["curl", "-sS", "-q", "-m", "30", "--http1.1", "--path-as-is", "-D", out, *how, "-H", "host: a", *fields, *body]
        done = subprocess.run([*command, f"http://127.0.0.1:{port}{r['target']}"], input=r["data"] or b"", capture_output=True)
        if done.returncode:
            raise SystemExit(f"curl {r['method']} {r['target']}: {done.stderr.decode()}")
        with open(out, "rb") as f:
            # The last head: a body may have been announced by a 100.
            lines = f.read().decode("latin-1").strip().split("\r\n\r\n")[-1].split("\r\n")
        body = b"" if r["method"] == "HEAD" else done.stdout
        yield int(lines[0].split(" ")[1]), [tuple(line.split(": ", 1)) for line in lines[1:]], body


REQUESTS = """
import base64, json, sys
import requests
with requests.Session() as s:
    s.trust_env = False
    for r in json.load(open(sys.argv[2])):
        data = None if r["body"] is None else base64.b64decode(r["body"])
        a = s.request(r["method"], f"http://127.0.0.1:{sys.argv[1]}{r['target']}", data=data, headers={**r["headers"], "host": "a"},
                      allow_redirects=False, timeout=30)
        print(json.dumps({"status": a.status_code, "headers": list(a.headers.items()), "body": base64.b64encode(a.content).decode()}))
"""


def by_program(command, port, requests, place):
    path = os.path.join(place, "requests.json")
    with open(path, "w") as f:
        json.dump([{**r, "data": None, "body": None if r["data"] is None else base64.b64encode(r["data"]).decode()} for r in requests], f)
    done = subprocess.run([*command, str(port), path], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stderr}")
    for line in done.stdout.splitlines():
        a = json.loads(line)
        yield a["status"], a["headers"], base64.b64decode(a["body"])


def python_with_requests(required, place):
    """A Python that has the library, or nil."""
    if subprocess.run([sys.executable, "-c", "import requests"], capture_output=True).returncode == 0:
        return sys.executable
    if not required:
        return None
    venv = os.path.join(place, "venv")
    subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True)
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(python):
        return None
    done = subprocess.run([python, "-m", "pip", "install", "-q", "requests"], capture_output=True)
    return python if done.returncode == 0 else None


def clients(required, place):
    found = [("http.client", by_http_client), ("curl", by_curl if shutil.which("curl") else None)]
    python = python_with_requests(required, place)
    by_requests = lambda *a: by_program([python, "-c", REQUESTS], *a)
    node = shutil.which("node")
    by_fetch = lambda *a: by_program([node, "scripts/web_app/fetch.mjs"], *a)
    for name, client in [("requests", python and by_requests), ("fetch", node and by_fetch)]:
        if client or required:
            found.append((name, client))
        else:
            print(f"skip {name}: not installed; --all requires it", flush=True)
    return found


def transcript(answers):
    """Bytes of each answer, without what differs from run to run, and without what depends on whether the client said
    that it wants to keep the connection."""
    out = []
    for status, headers, body in answers:
        ids = re.findall(rb'"request_id":"([\d-]+)"', body)
        fields = {}
        for k, v in headers:
            if k.lower() not in ("date", "x-request-id", "connection"):
                fields[k.lower()] = ", ".join([fields[k.lower()], v] if k.lower() in fields else [v])
        if ids:
            body = body.replace(ids[0], b"ID")
            fields["content-length"] = f"{int(fields['content-length']) - len(ids[0])} without the id"
        head = "".join(f"{k}: {v}\n" for k, v in sorted(fields.items()))
        out.append(f"{status}\n{head}\n".encode("latin-1") + body)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    place = tempfile.mkdtemp(prefix="storefront-clients-")
    try:
        program = os.path.join(place, "web-app")
        status, out = woc("build", "docs/examples/web-app", "-o", program)
        same("C1", "build", (0, ""), (status, out))
        requests, first = script(), None
        same("C2", "the script", 40, len(requests))
        for name, client in clients(args.all, place):
            if not client:
                check("C3", name, False, "is not installed")
                continue
            data = os.path.join(place, name)
            a = Shop(program, data, WA_IDLE_MS="20000")
            answers = list(client(a.port, requests, place))
            a.stop("C3", f"{name}: the server stops", busy=True)
            same("C3", f"{name}: statuses", [r["status"] for r in requests], [s for s, h, b in answers])
            _, rows = woc("db", "dump", "--table", "Order", data)
            same("C3", f"{name}: orders", 2, len(rows.splitlines()))
            seen = transcript(answers)
            if not first:
                first = seen
                continue
            apart = [(requests[i]["method"], requests[i]["target"], x, y) for i, (x, y) in enumerate(zip(first, seen)) if x != y]
            check("C4", f"{name} has the transcript of http.client", len(first) == len(seen) and not apart, apart[:1])
    finally:
        shutil.rmtree(place)
    finish("storefront-clients")


main()
