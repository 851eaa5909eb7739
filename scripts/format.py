#!/usr/bin/env python3
"""docs/store-format.md is enough to read a store: tests/format/decode.py, written from it, finds in stores of all kinds
what `woc db` finds, and damage at the same places.

usage: scripts/format.py [--seed N] [--changes N]    (WOC names the compiler; default: target/release/woc)

The stores are those of tests/format/*: columns of all kinds, changes, deletions, compaction, two changes of the schema,
normal ends and kills; then copies of their files with bits flipped, bytes cut off and blocks of zeros. The seed is
printed. Exit status 0: all was well.
"""

import argparse, json, os, random, re, shutil, subprocess, sys, tempfile, time, traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "scenarios"), os.path.join(ROOT, "tests", "format")]
import decode, tools
from harness import Fault, Running, environment, need

# Compaction has as much to do as it can have, in segments of a few records.
SMALL = dict(WO_CHECKPOINT_BYTES=16384, WO_CHECKPOINT_RATIO=1)


class Bench:
    def __init__(self, args):
        self.woc, self.rng, self.checks = args.woc, random.Random(args.seed), 0
        self.dir = tempfile.mkdtemp(prefix="wo-format-")
        self.data = os.path.join(self.dir, "data")
        source = os.path.join(ROOT, "tests", "format")
        shutil.copytree(os.path.join(source, "lib"), os.path.join(self.dir, "lib"))
        for name in ("first", "second", "third"):
            place = os.path.join(self.dir, name)
            shutil.copytree(os.path.join(source, name), place)
            shutil.copy(os.path.join(source, "rows.wo"), place)
            with open(os.path.join(place, "wo.toml"), "w") as f:
                f.write(f'name = "{name}"\n[deps]\nlib = {{ path = "../lib" }}\n')
            done = subprocess.run([self.woc, "build", place, "-o", os.path.join(self.dir, f"{name}.exe")], capture_output=True)
            need(done.returncode == 0, f"{name} does not compile", done.stdout + done.stderr)

    def run(self, name, first, turns, killed=False, **env):
        """A life of the store: so many turns, and a normal end or a kill."""
        argv = [os.path.join(self.dir, f"{name}.exe"), str(first), str(turns)] + ["wait"] * killed
        run = Running(argv, environment(WO_DATA=self.data, **env), self.dir)
        if killed:
            run.until("done", bound=120)
            time.sleep(self.rng.random() / 20)
            run.kill()
            return
        end = run.end(120)
        need(end.status == 0 and end.lines == ["done"], f"{name}: status {end.status}", end.errors)

    def db(self, command, data, *more):
        done = subprocess.run([self.woc, "db", command, data, *more], capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def agree(self, what, data=None):
        """Both readers find the same; the store, or None where it is damaged."""
        self.checks += 1
        data = data or self.data
        try:
            store = decode.Store(data)
        except decode.Damage as damage:
            path, offset, *why = damage.args
            status, out, _ = self.db("check", data)
            wanted = f"{path} is damaged at offset {offset}: "
            need(status == 1 and out.decode().startswith(wanted), f"{what}: {wanted}{why}, but woc db check: {status}", out)
            return None
        status, out, errors = self.db("dump", data)
        dump = tools.dump(store)
        need(status == 0 and not errors, f"{what}: woc db dump: {status}", errors)
        at = len(os.path.commonprefix([out, dump]))
        near = slice(max(at - 60, 0), at + 60)
        need(out == dump, f"{what}: woc db dump and the decoder differ at {at}", out[near], dump[near])
        status, out, errors = self.db("stat", data, "--json")
        need(status == 0 and not errors, f"{what}: woc db stat: {status}", errors)
        stat, mine = json.loads(out), tools.stat(store)
        names = [n for n in os.listdir(data) if n == "lock" or re.fullmatch(r"[0-9a-f]{16}\.(log|tmp)", n)]
        mine["files"] = [{"name": n, "bytes": os.path.getsize(os.path.join(data, n))} for n in sorted(names)]
        live = sum(table["live_bytes"] for table in mine["tables"])
        share = 1 - min(live, store.bytes) / store.bytes if store.bytes else 0
        mine["unneeded"] = float(f"{share:.4f}")
        need(stat == mine, f"{what}: woc db stat and the decoder", stat, mine)
        status, out, _ = self.db("check", data)
        need(status == 0, f"{what}: woc db check: {status}", out)
        return store


def lives(bench):
    """Stores as programs leave them. What each must have met, or nothing was tested."""
    bench.run("first", 1, 9, WO_CHECKPOINT_RATIO=0)
    store = bench.agree("a normal end")
    kinds = {bench_kind(store, c["type"]) for t in store.schema.tables for c in t["columns"]}
    need(kinds == set(range(decode.NULLABLE)), "kinds of columns", kinds)
    need(any(r > 0 for r in map(len, store.rows.values())) and store.needed == 1, "rows")
    bench.run("first", 10, 4, killed=True, WO_CHECKPOINT_RATIO=0)
    bench.agree("a kill")
    # Until one comes while records about rows of dropped segments are in front of what keeps these rows.
    for turn in range(14, 74, 6):
        bench.run("first", turn, 6, killed=True, **SMALL)
        store = bench.agree("compaction and a kill")
        if store.passed_over:
            break
    need(store.needed > 1 and store.passed_over > 0, f"compaction: {store.needed}, {store.passed_over} passed over")
    # Segments of three schemas; then those of the first ones go.
    bench.run("second", 74, 4, killed=True, WO_CHECKPOINT_BYTES=16384, WO_CHECKPOINT_RATIO=0)
    store = bench.agree("a second schema and a kill")
    need([t["class"][1] for t in store.schema.tables if t["retired"]] == ["Leaving"], "retired")
    bench.run("third", 78, 4, WO_CHECKPOINT_BYTES=16384, WO_CHECKPOINT_RATIO=0)
    store = bench.agree("a third schema")
    need(store.schemas == 3 and not any(t["retired"] for t in store.schema.tables), "schemas", store.schemas)
    shutil.copytree(bench.data, bench.data + ".schemas")
    bench.run("third", 82, 15, **SMALL)
    store = bench.agree("compaction over schemas")
    need(store.schemas == 1, "schemas", store.schemas)
    bench.run("third", 97, 3, killed=True, **SMALL)
    bench.agree("the last kill")


def bench_kind(store, number):
    return store.schema.plain(number)[1].kind


def changed(bench, data, count):
    """Copies of a store with a file changed. Every third one has lost the end of its last record."""
    seen = {"damaged": 0, "torn": 0, "whole": 0}
    names = sorted(n for n in os.listdir(data) if n.endswith(".log"))
    for n in range(count):
        copy = os.path.join(bench.dir, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(data, copy)
        how = bench.rng.choice(["flip", "flip", "zeros", "cut", "removal"]) if n % 3 else bench.rng.choice(["zeros", "cut"])
        path = os.path.join(copy, bench.rng.choice(names[-1:] + names if n % 3 else names[-1:]))
        with open(path, "rb") as f:
            file = bytearray(f.read())
        used = len(file.rstrip(b"\0"))
        at = bench.rng.randrange(used) if n % 3 else used - bench.rng.randrange(1, 29)
        if how == "flip":
            file[at] ^= 1 << bench.rng.randrange(8)
        elif how == "zeros":
            end = bench.rng.choice([at + bench.rng.randrange(1, 600), len(file)]) if n % 3 else len(file)
            file[at:end] = bytes(min(end, len(file)) - at)
        else:
            del file[at:]
        with open(path, "wb") as f:
            f.write(file)
        if how == "removal":
            os.remove(path)
        store = bench.agree(f"{how} at {at} of {os.path.basename(path)}", copy)
        seen["damaged" if store is None else "torn" if store.torn else "whole"] += 1
    need(seen["damaged"] and seen["torn"], "kinds of changes", seen)
    return seen


def tests_named(bench):
    """The tests that the document names are there."""
    with open(os.path.join(ROOT, "docs", "store-format.md")) as f:
        table = f.read().partition("## Crash here, state there")[2].partition("\n## ")[0]
    names = re.findall(r"`([a-z]+_[a-z0-9_]{12,})`", table)
    need(len(names) > 20, "names", names)
    sources = ""
    for place, _, files in os.walk(os.path.join(ROOT, "runtime", "store")):
        for name in files:
            if name.endswith(".rs"):
                with open(os.path.join(place, name)) as f:
                    sources += f.read()
    missing = [name for name in names if f"fn {name}()" not in sources]
    need(not missing, "tests of docs/store-format.md that are not there", missing)
    with open(os.path.join(ROOT, "scripts", "crash.py")) as f:
        crash = f.read()
    missing = [name for name in re.findall(r"`crash\.py ([a-z]+)`", table) if f'    "{name}": dict(check=' not in crash]
    need(not missing, "checks of docs/store-format.md that are not there", missing)
    bench.checks += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--changes", type=int, default=15, help="changed copies of each of two stores")
    parser.add_argument("--woc", default=os.environ.get("WOC", os.path.join(ROOT, "target/release/woc")))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    bench, failed = Bench(args), 0
    try:
        lives(bench)
        print("ok   lives", flush=True)
        for data in (bench.data + ".schemas", bench.data):
            print("ok   changed", changed(bench, data, args.changes), flush=True)
        tests_named(bench)
    except Exception as e:
        failed = 1
        why = e if isinstance(e, Fault) else traceback.format_exc()
        print(f"FAIL {why}\n     repeat: scripts/format.py --seed {args.seed}", flush=True)
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    print(f"format: {bench.checks} checks, {failed} failures")
    return failed


if __name__ == "__main__":
    sys.exit(main())
