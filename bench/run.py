#!/usr/bin/env python3
"""Side-by-side measurements, each as a ratio against the native peer in the same run.

usage: bench/run.py [compute] [passes] [http] [compiler] [runtime] [store] [--runs N] [--secs S] [--only REGEX]

compute: the kernels of bench/compute, woc run against peers/compute (Rust -O3); ratio of the medians.
passes:  the kernels of bench/passes, each with one optimisation left out (WO_OPT) or beside a kernel that cannot have
         it, against itself, interleaved; ratio of the medians, above 1 where the optimisation helps. Not among those
         that run when none is named.
http:    bench/http, an app of porch, beside axum, may_minihttp, Go's net/http and fastify: server on core 0, wrk (64
         keep-alive connections) on core 1, servers interleaved; requests per second of server CPU time; and bench/guarded
         with porch's limiter and idempotent handlers. `--only` picks figures by name. All of it takes a quarter of an
         hour, so it is not among those that run when none is named.
compiler: process time of `woc check` on hello with porch and on generated programs of 10,000 and 100,000 lines (whose
         ratio shows whether checking is linear), and the time from exec to the line `listening` of hello, run and
         built, against node printing from a one-line file.
runtime: the programs of bench/actors (messages, calls, spawning, memory, switches, timers, sockets) beside tokio, Go and
         Erlang; `--only` picks figures by name. All of it takes half an hour, so it is not among those that run when
         none is named.
store:   docs/examples/db-bench (rows, queries, loads, recovery) beside SQLite and redb on the same disk; `--only` picks
         figures by name. Not among those that run when none is named either.
Needs cargo, and wrk for http; http and runtime do without missing peers and say so. Run it on an idle machine; it prints
the spread so that noise shows.
"""
import sys
sys.dont_write_bytecode = True  # before the modules beside this file
import argparse, math, os, shutil, statistics, subprocess, tempfile, time
from porch import http
from runtime import runtime
from store import store
from support import PEERS, ROOT, WOC, build


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


MODULE = """-- Stock of warehouse {n}.
class Item{n} {{
  name: Text
  price: Int = {n}
  tags: multi Text = []
  parent: ?Item{n}
}}
type Event{n} = Idle{n} | Sold{n}(what: Text, count: Int) | Lost{n}(reason: Text)
class Shelf{n} {{
  items: map<Text, Item{n}> = {{}}
  total: Int = 0
  fn add(name: Text, price: Int) {{
    self.items[name] = Item{n} {{ name: name, price: price, tags: split(name, "-") }}
    self.total += price
  }}
  fn price_of(name: Text) -> ?Int {{
    let item = self.items[name]
    if item == nil {{ return nil }}
    return item.price
  }}
}}
pub fn weigh{n}(take e: Event{n}) -> Int {{
  return switch e {{
    case Idle{n}: 0
    case Sold{n}(what, count): len(what) * count
    case Lost{n}(reason): -len(reason)
  }}
}}
pub fn run{n}(rounds: Int) -> Int {{
  let shelf = Shelf{n} {{}}
  let sum = 0
  for i, part in map_of{n}(rounds) {{
    shelf.add("item-${{i}}", part)
    let price = shelf.price_of("item-${{i}}")
    if price != nil and price % 2 == 0 {{
      sum += price
    }} else if part > {n} {{
      sum -= 1
    }}
  }}
  let bad = try parse_float("x") / float(rounds) catch (e) 0.0
  while sum > 1_000 and bad <= 1.0 {{
    sum = sum / 2 + weigh{n}(Sold{n}("a ${{sum}}", rounds))
  }}
  return sum
}}
fn map_of{n}(rounds: Int) -> map<Int, Int> {{
  let m: map<Int, Int> = {{}}
  let i = 0
  while i < rounds {{
    m[i] = i * {n}
    i += 1
  }}
  return m
}}
"""


def generate(root, lines):
    """A project of about `lines` lines, ten files a module."""
    part = MODULE.count("\n")
    for n in range(lines // part):
        folder = os.path.join(root, f"m{n // 10}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"part{n}.wo"), "w") as file:
            file.write(MODULE.format(n=n))


def timed(command, until=None):
    """Seconds from exec to the end, or to a line that holds `until`; and the peak of resident memory in MB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if until:
        line = child.stdout.readline()
        took = time.perf_counter() - start
        if until.encode() not in line:
            sys.exit(f"{' '.join(command)}: {line!r}")
        child.terminate()
        child.stdout.read()
        child.wait()
        return took, 0
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(command)}: {output.decode()}")
    return took, usage.ru_maxrss / 1024


def compiler(runs):
    with tempfile.TemporaryDirectory() as scratch:
        hello = os.path.join(scratch, "hello")
        subprocess.run([WOC, "build", "docs/examples/hello", "-o", hello], cwd=ROOT, check=True)
        page = os.path.join(scratch, "line.js")
        with open(page, "w") as file:
            file.write('console.log("listening")\n')
        rows = {"check hello + porch": ([WOC, "check", "docs/examples/hello"], None)}
        for lines in (10_000, 100_000):
            folder = os.path.join(scratch, str(lines))
            generate(folder, lines)
            rows[f"check {lines} lines"] = ([WOC, "check", folder], None)
        rows["run hello"] = ([WOC, "run", "docs/examples/hello", "--", "0"], "listening")
        rows["built hello"] = ([hello, "0"], "listening")
        if shutil.which("node"):
            rows["node, one line"] = (["node", page], "listening")
        got = {name: [] for name in rows}
        for _ in range(runs):
            for name, (command, until) in rows.items():
                got[name].append(timed(command, until))
        print(f"compiler: {runs} runs each, interleaved; built hello has {os.path.getsize(hello) / 1e6:.1f} MB")
        for name, row in got.items():
            ms = [1000 * took for took, _ in row]
            memory = max(peak for _, peak in row)
            peak = f"   peak {memory:.0f} MB" if memory else ""
            print(f"  {name:20s} {statistics.median(ms):7.1f} ms ({min(ms):.1f}..{max(ms):.1f}){peak}")
        medians = [statistics.median(took for took, _ in got[f"check {n} lines"]) for n in (10_000, 100_000)]
        print(f"  100,000 lines take {medians[1] / medians[0]:.1f} times as long as 10,000;"
              f" {100_000 / medians[1]:.0f} lines/s")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("what", nargs="*", metavar="compute|passes|http|compiler|runtime|store")
    args.add_argument("--runs", type=int, default=6)
    args.add_argument("--secs", type=int, default=4)
    args.add_argument("--only", default="", metavar="REGEX")
    a = args.parse_args()
    what = a.what or ["compute", "compiler"]
    if unknown := set(what) - {"compute", "passes", "http", "compiler", "runtime", "store"}:
        args.error(f"unknown measurement: {', '.join(sorted(unknown))}")
    build()
    if "compute" in what:
        compute(max(5, a.runs))
    if "passes" in what:
        passes(max(5, a.runs))
    if "http" in what and not http(max(6, a.runs), a.secs, a.only):
        sys.exit(1)
    if "compiler" in what:
        compiler(max(5, a.runs))
    if "runtime" in what and not runtime(max(5, a.runs), a.only):
        sys.exit(1)
    if "store" in what and not store(max(5, a.runs), a.only):
        sys.exit(1)


main()
