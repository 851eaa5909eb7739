#!/usr/bin/env python3
"""Side-by-side measurements, each as a ratio against the native peer in the same run.

usage: bench/run.py [compute] [http] [start] [--runs N] [--secs S]

compute: the kernels of bench/compute, woc run against peers/compute (Rust -O3); ratio of the medians.
http:    docs/examples/hello against an axum server with the same routes: server on core 0, wrk (64 keep-alive
         connections) on core 1, servers interleaved; requests per second of server CPU time, ratio of the medians.
start:   from exec to the first line: docs/examples/hello built and by woc run, interleaved with /bin/echo and, where
         it is installed, node with a program of one line; ratio of the medians to /bin/echo.
Needs cargo, and wrk for http. Run it on an idle machine; it prints the spread so that noise shows.
"""
import argparse, math, os, re, shutil, socket, statistics, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(ROOT, "bench", "peers")
WOC = os.path.join(ROOT, "target", "release", "woc")
TICK = os.sysconf("SC_CLK_TCK")


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "woc"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=PEERS, check=True)


def kernels(command):
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in out.splitlines():
        name, _rep, ms, check = line.split(maxsplit=3)
        rows.setdefault(name, []).append((float(ms), check))
    return rows


def compute(runs):
    ours = kernels([WOC, "run", "bench/compute", "--", str(runs)])
    peer = kernels([os.path.join(PEERS, "target", "release", "peer-compute"), str(runs)])
    against = {"map1m": "map1m_foldhash"}
    logs = []
    print(f"compute: woc run bench/compute -- {runs}, beside peers/compute {runs} (ratio to Rust)")
    for name, rows in ours.items():
        base = peer[against.get(name, name)]
        if rows[0][1] != base[0][1] and not (name == "nbody5m" and math.isclose(float(rows[0][1]), float(base[0][1]))):
            sys.exit(f"{name}: the results differ: {rows[0][1]} and {base[0][1]}")
        a = [r[0] for r in rows]
        b = [r[0] for r in base]
        ratio = statistics.median(a) / statistics.median(b)
        logs.append(math.log(ratio))
        print(f"  {name:10s} {ratio:5.2f}   ours {statistics.median(a):7.1f} ms ({min(a):.1f}..{max(a):.1f})"
              f"   Rust {statistics.median(b):7.1f} ms ({min(b):.1f}..{max(b):.1f})")
    print(f"  geometric mean {math.exp(statistics.mean(logs)):.2f}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def serve_once(command, secs):
    port = free_port()
    server = subprocess.Popen(["taskset", "-c", "0"] + [c.replace("PORT", str(port)) for c in command], cwd=ROOT,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/hello/bob"
    try:
        for _ in range(200):
            try:
                body = urllib.request.urlopen(url, timeout=1).read()
                break
            except OSError:
                time.sleep(0.02)
        else:
            sys.exit(f"{command[0]} did not start")
        if body != b'{"hello":"bob"}':
            sys.exit(f"{command[0]} answered {body!r}")
        wrk = ["taskset", "-c", "1", "wrk", "-t1", "-c64"]
        subprocess.run(wrk + ["-d1s", url], capture_output=True, check=True)
        before = cpu_seconds(server.pid)
        out = subprocess.run(wrk + [f"-d{secs}s", url], capture_output=True, check=True, text=True).stdout
        spent = cpu_seconds(server.pid) - before
        if "Non-2xx" in out:
            sys.exit(f"{command[0]}: {out}")
        total = int(re.search(r"(\d+) requests in", out)[1])
        return total / spent, float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    finally:
        server.terminate()
        server.wait()


def http(runs, secs):
    if not shutil.which("wrk"):
        sys.exit("http needs wrk (Debian package wrk)")
    servers = {"hello": [WOC, "run", "docs/examples/hello", "--", "PORT"],
               "axum": [os.path.join(PEERS, "target", "release", "peer-axum"), "PORT"]}
    rows = {name: [] for name in servers}
    for _ in range(runs):
        for name, command in servers.items():
            rows[name].append(serve_once(command, secs))
    print(f"http: GET /hello/:name, 64 connections, {runs} x {secs} s, requests per second of server CPU time")
    base = statistics.median(r[0] for r in rows["axum"])
    for name, got in rows.items():
        per_cpu = [r[0] for r in got]
        print(f"  {name:6s} {statistics.median(per_cpu) / base:5.2f}   {statistics.median(per_cpu):9.0f}/cpu-s"
              f" ({min(per_cpu):.0f}..{max(per_cpu):.0f})   {statistics.median(r[1] for r in got):9.0f}/s")


def first_line(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = process.stdout.readline()
    spent = time.perf_counter() - begin
    process.kill()
    process.wait()
    if not line:
        sys.exit(f"{command[0]} printed nothing")
    return spent * 1e3


def start(runs):
    with tempfile.TemporaryDirectory() as dir:
        built = os.path.join(dir, "hello")
        subprocess.run([WOC, "build", "docs/examples/hello", "-o", built], cwd=ROOT, check=True)
        commands = {"echo": ["/bin/echo", "listening"], "built": [built, "0"],
                    "run": [WOC, "run", "docs/examples/hello", "--", "0"]}
        if shutil.which("node"):
            commands["node"] = ["node", "-e", "console.log('listening')"]
        rows = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                rows[name].append(first_line(command))
        size = os.path.getsize(built)
    print(f"start: exec to the first line, {runs} runs; the built hello has {size / 1e6:.1f} MB")
    base = statistics.median(rows["echo"])
    for name, ms in rows.items():
        print(f"  {name:6s} {statistics.median(ms) / base:5.1f}   {statistics.median(ms):7.1f} ms"
              f" ({min(ms):.1f}..{max(ms):.1f})")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("what", nargs="*", metavar="compute|http|start")
    args.add_argument("--runs", type=int, default=6)
    args.add_argument("--secs", type=int, default=4)
    a = args.parse_args()
    what = a.what or ["compute", "http", "start"]
    if unknown := set(what) - {"compute", "http", "start"}:
        args.error(f"unknown measurement: {', '.join(sorted(unknown))}")
    build()
    if "compute" in what:
        compute(max(5, a.runs))
    if "http" in what:
        http(a.runs, a.secs)
    if "start" in what:
        start(max(21, a.runs))


main()
