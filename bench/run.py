#!/usr/bin/env python3
"""Side-by-side measurements, each as a ratio against the native peer in the same run.

usage: bench/run.py [compute] [passes] [http] [--runs N] [--secs S]

compute: the kernels of bench/compute, woc run against peers/compute (Rust -O3); ratio of the medians.
passes:  the kernels of bench/passes, each with one optimisation left out (WO_OPT) or beside a kernel that cannot have
         it, against itself, interleaved; ratio of the medians, above 1 where the optimisation helps. Not among those
         that run when none is named.
http:    docs/examples/hello against an axum server with the same routes: server on core 0, wrk (64 keep-alive
         connections) on core 1, servers interleaved; requests per second of server CPU time, ratio of the medians.
Needs cargo, and wrk for http. Run it on an idle machine; it prints the spread so that noise shows.
"""
import argparse, math, os, re, shutil, socket, statistics, subprocess, sys, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = os.path.join(ROOT, "bench", "peers")
WOC = os.path.join(ROOT, "target", "release", "woc")
TICK = os.sysconf("SC_CLK_TCK")


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "woc"], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=PEERS, check=True)


def kernels(command, env=None):
    out = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout
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


# Kernel of bench/passes: what it shows, and what it is compared with: WO_OPT, or another kernel.
PASSES = [("counts", "count and drop elision", "-counts"), ("moves", "moves at the last use", "-counts"),
          ("borrow", "borrowing variables", "-borrow,-counts"), ("bounds", "bounds checks", "-checks"),
          ("nils", "nil checks", "-checks"), ("fib", "inlining", "-inline"), ("fold", "constant folding", "-fold,-checks"),
          ("append", "in-place append", "append_shared"),
          ("interpolation", "one-allocation interpolation", "interpolation_steps")]


def passes(runs):
    times = {}
    for _ in range(runs):
        for opt in ["1"] + sorted({other for _, _, other in PASSES if other.startswith("-")}):
            env = dict(os.environ, WO_OPT=opt)
            for name, rows in kernels([WOC, "run", "bench/passes", "--", "1"], env).items():
                times.setdefault((name, opt), []).extend(rows)
    print(f"passes: woc run bench/passes, {runs} times (time without the optimisation / with it)")
    for name, what, other in PASSES:
        off = times[(name, other) if other.startswith("-") else (other, "1")]
        on = times[(name, "1")]
        if {check for _, check in on} != {check for _, check in off}:
            sys.exit(f"{name}: the results differ")
        a, b = [t for t, _ in off], [t for t, _ in on]
        print(f"  {name:14s} {statistics.median(a) / statistics.median(b):6.2f}   {what:29s} {other:20s}"
              f" {statistics.median(a):7.1f} ms ({min(a):.1f}..{max(a):.1f})"
              f"   with {statistics.median(b):7.1f} ms ({min(b):.1f}..{max(b):.1f})")


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


def main():
    args = argparse.ArgumentParser()
    args.add_argument("what", nargs="*", metavar="compute|passes|http")
    args.add_argument("--runs", type=int, default=6)
    args.add_argument("--secs", type=int, default=4)
    a = args.parse_args()
    what = a.what or ["compute", "http"]
    if unknown := set(what) - {"compute", "passes", "http"}:
        args.error(f"unknown measurement: {', '.join(sorted(unknown))}")
    build()
    if "compute" in what:
        compute(max(5, a.runs))
    if "passes" in what:
        passes(max(5, a.runs))
    if "http" in what:
        http(a.runs, a.secs)


main()
