#!/usr/bin/env python3
"""Durable tables under real crashes: processes that are killed, disks that fail, fill up or are slow, rows in a race.

usage: scripts/crash.py [--short] [--seed N] [--only NAME]... [--rounds N] [--woc PATH]

The programs are tests/crash/*.wo; tests/crash/fault.c, preloaded, makes system calls on the store's files fail, wait or
kill the process, where there is a C compiler. After each crash the rows and the next ids must be those of a beginning
of each actor's plan that has every step which came back, and `woc db check` finds nothing wrong (tables specification
14, verdict V). The seed is printed. The long form also runs the tests over the simulated disk with many seeds. Exit
status 0: all was well.

Where the rows of the test matrix are (`--only` names those of this script; STORE is runtime/store):

T1   kill                         T12  counters; STORE/tests/statements.rs
T2   STORE/tests/crash/files.rs   T13  keys; STORE/tests/statements.rs
T3   flips; STORE/tests/crash     T14  restrict; STORE/tests/statements.rs
T4   syncs; STORE/tests/crash     T15  histories; STORE/tests/history
T5   writes, large, full,         T16  free
     readonly; STORE/tests/crash  T17  memory, group; STORE/tests/statements.rs
T6   calls, growth; a migration:  T18  STORE/tests/durable/compaction.rs (id_3_...)
     tests/cli/migrating.rs       T19  tests/cli/migrating.rs
T7   STORE/tests/crash/power.rs   T20  tests/cli/starting.rs
T8   second                       T21  STORE/src/log/tests/damage.rs, STORE/tests/inspect.rs
T9   copies; STORE/tests/crash    T10  STORE/tests/crash/files.rs
                                  T11  STORE/tests/model
"""

import argparse, os, random, shutil, signal, subprocess, sys, time, traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "crash"))
import histories, memory
from bench import BUSY, LOG_FAILED, ROOT, Bench, harness, need
from shelves import Store


def kill_loop(bench):
    """T1"""
    rounds = bench.args.rounds or (5 if bench.short else 200)
    for shards in (1, max(4, os.cpu_count())):
        for busy in ({}, BUSY):
            with bench.place() as place:
                store, steps = Store(bench, os.path.join(place, "data")), 0
                for _ in range(rounds):
                    run = store.start(WO_SHARDS=shards, **busy)
                    need(run.begun, "no start", run.errors)
                    time.sleep(bench.rng.uniform(0.001, 0.5 if not bench.short else 0.15))
                    run.kill()
                    steps += store.took(run)
                store.check(WO_SHARDS=shards, **busy)
                need(steps > 0, f"{steps} steps in {rounds} rounds")
                need(not busy or store.is_compacted(), "nothing was compacted")


def kill_at_calls(bench):
    """T6"""
    n = 1
    while True:
        with bench.place() as place:
            store = Store(bench, os.path.join(place, "data"), actors=2)
            run = store.start(20, faults=dict(on="any", at=n, do="kill"), WO_SHARDS=1, **BUSY)
            end = run.end(60)
            store.took(run)
            if end.status == 0:
                need(n > 30 and store.is_compacted(), f"{n} calls; nothing was compacted")
                store.check()
                return
            need(end.status == -signal.SIGKILL, f"call {n}: status {end.status}", end.errors)
            # The start after it is killed, too.
            again = store.start(3, faults=dict(on="any", at=bench.rng.randrange(1, 12), do="kill"), WO_SHARDS=1)
            again.end(60)
            store.took(again)
            store.check()
        n += bench.rng.randrange(4, 16) if bench.short else 1


def kill_while_the_log_grows(bench):
    """T6: before each write that makes room ahead in a file that has been written to."""
    created, calls = 16, 0
    for n in range(created + 1, 1000, bench.rng.randrange(3, 6) if bench.short else 1):
        with bench.place() as place:
            store = Store(bench, os.path.join(place, "data"), actors=2)
            kill = dict(on="zeros", at=n, do="kill", sync="free")
            run = store.start(1300, faults=kill, WO_CHECKPOINT_BYTES=16 << 20, WO_SHARDS=1)
            end = run.end(120)
            steps = store.took(run)
            store.check()
            if end.status == 0:
                # Half a MiB at a time, by 64 KiB.
                need(calls >= (2 if bench.short else 8), f"the log grew with {calls} calls")
                return
            need(end.status == -signal.SIGKILL, f"call {n}: status {end.status}", end.errors)
            need(steps > 1000, f"call {n} came after {steps} steps")
            calls += 1


def faults(bench, on, numbers, error, words, **compaction):
    """A call that fails ends the process with 74 and a line, or keeps it from starting, or fails compaction, which is
    told; what came back is there."""
    failed = 0
    for n in numbers:
        with bench.place() as place:
            store = Store(bench, os.path.join(place, "data"), actors=2)
            run = store.start(60, faults=dict(on=on, at=n, do=error), **compaction)
            end = run.end(60)
            store.took(run)
            told = [line for line in end.errors if "compaction failed and will be tried again" in line]
            errors = [line for line in end.errors if line not in told]
            seen = f"{on} {n}: status {end.status}", end.errors, end.lines[-3:]
            need(len(told) + len(errors) == 1 and all(word in end.errors[0] for word in (words, place)), *seen)
            if told:
                need(end.status == 0, *seen)
                failed += 1
            else:
                need(end.status == (LOG_FAILED if run.begun else 2), *seen)
                need(not run.begun or "records not acknowledged" in errors[0], *seen)
            store.check()
    return failed


CALM = dict(WO_CHECKPOINT_BYTES=65536, WO_CHECKPOINT_RATIO=0)


def failing_syncs(bench):
    """T4"""
    for compaction in (CALM, BUSY):
        numbers = range(1, 21, bench.rng.randrange(4, 7) if bench.short else 1)
        faults(bench, "sync", numbers, 5, "Input/output error", **compaction)


def failing_writes(bench):
    """T5"""
    for error, words in ((5, "Input/output error"), (28, "No space left on device")):
        for compaction in (CALM, BUSY):
            numbers = range(1, 51, bench.rng.randrange(12, 20) if bench.short else 1)
            faults(bench, "write", numbers, error, words, **compaction)
    # The only call of compaction itself that changes something is the removal of a file.
    need(faults(bench, "removal", range(1, 3), 5, "Input/output error", **BUSY) == 2, "compaction did not fail")


def too_large_a_file(bench):
    """T5: the system refuses to make a file larger."""
    with bench.place() as place:
        store = Store(bench, os.path.join(place, "data"))
        first = store.start(20)
        need(first.end(60).status == 0, "status")
        store.took(first)
        limit = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh"]
        run = store.start(before=limit)
        end = run.end(120)
        need(run.begun and store.took(run), "no start", end.errors)
        need(end.status == LOG_FAILED and len(end.errors) == 1, f"status {end.status}", end.errors)
        need("File too large" in end.errors[0] and place in end.errors[0], "text", end.errors)
        store.check()
        again = store.start(100)
        need(again.end(60).status == 0, "status")
        store.took(again)
        store.check()


def full_file_system(bench):
    """T5: a small file system of its own."""
    with bench.place() as place:
        disk = os.path.join(place, "disk")
        os.mkdir(disk)
        script = f'mount -t tmpfs -o size=1400k none "{disk}" && echo ready && exec sleep 600'
        keeper = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if keeper.stdout.readline() != b"ready\n":
                return "no file system can be made here"
            enter = ["nsenter", "-t", str(keeper.pid), "-m", "--"]
            store = Store(bench, os.path.join(disk, "data"))
            run = store.start(before=enter, WO_CHECKPOINT_RATIO=0)
            end = run.end(120)
            need(run.begun and store.took(run), "no start", end.errors)
            need(end.status == LOG_FAILED and len(end.errors) == 1, f"status {end.status}", end.errors)
            need("No space left on device" in end.errors[0] and disk in end.errors[0], "text", end.errors)
            # As long as it is full, a start says so or works.
            full = store.start(-1, before=enter)
            end = full.end(60)
            need(end.status in (0, 2) and (end.status == 0) == (not end.errors), f"status {end.status}", end.errors)
            subprocess.run([*enter, "mount", "-o", "remount,size=16m", disk], check=True)
            store.check(before=enter)
            again = store.start(100, before=enter)
            need(again.end(60).status == 0, "status")
            store.took(again)
            store.check(before=enter)
        finally:
            keeper.kill()
            keeper.wait()


def read_only_directory(bench):
    """T5: no file can be made any more, so that the log cannot go on once its last one is full."""
    with bench.place() as place:
        store = Store(bench, os.path.join(place, "data"))
        first = store.start(20)
        need(first.end(60).status == 0, "status")
        store.took(first)
        before = ()
        if os.geteuid() == 0:
            # Who may do everything does it as somebody else.
            nobody = 65534
            os.chmod(bench.builder.dir, 0o755)
            for path in [place, store.data, *(os.path.join(store.data, name) for name in os.listdir(store.data))]:
                os.chown(path, nobody, nobody)
            before = ("setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", "--")
            if not shutil.which("setpriv"):
                return "setpriv is missing"
        # The next file is made when this one has a quarter of the 4 MiB at which compaction begins.
        run = store.start(before=before)
        need(run.begun, "no start", run.errors)
        os.chmod(store.data, 0o500)
        end = run.end(120)
        need(store.took(run), "no step")
        need(end.status == LOG_FAILED and len(end.errors) == 1, f"status {end.status}", end.errors)
        wanted = "creation of ", store.data, "Permission denied", "records not acknowledged"
        need(all(word in end.errors[0] for word in wanted), "text", end.errors)
        # It is said at the start, too, and what is there stays.
        names = sorted(os.listdir(store.data))
        again = store.start(20, before=before)
        end = again.end(60)
        store.took(again)
        if not again.begun:
            need(end.status == 2 and len(end.errors) == 1, f"status {end.status}", end.errors)
            need(store.data in end.errors[0], end.errors)
            need(sorted(os.listdir(store.data)) == names, names)
        os.chmod(store.data, 0o700)
        store.check(before=before)


def flipped_bits(bench):
    """T3"""
    with bench.place() as place:
        store = Store(bench, os.path.join(place, "data"), actors=2)
        run = store.start(40, WO_CHECKPOINT_BYTES=65536)
        need(run.end(60).status == 0, "status")
        store.took(run)
        names = [name for name in os.listdir(store.data) if name.endswith(".log")]
        files = {name: open(os.path.join(store.data, name), "rb").read() for name in names}
        used = {name: len(data.rstrip(b"\0")) for name, data in files.items()}
        seen = {0: 0, 2: 0}
        for _ in range(20 if bench.short else 1000):
            name = bench.rng.choice(names)
            damaged = bytearray(files[name])
            damaged[bench.rng.randrange(used[name])] ^= 1 << bench.rng.randrange(8)
            for each in os.listdir(store.data):
                os.unlink(os.path.join(store.data, each))
            for each, data in files.items():
                with open(os.path.join(store.data, each), "wb") as f:
                    f.write(damaged if each == name else data)
            checked = bench.db("check", store.data).returncode
            run = store.start(-1, sound=False)
            end = run.end(60)
            need(checked == end.status // 2, f"status {end.status}, but {checked} of woc db check", end.errors)
            need(end.status in seen, f"status {end.status}", end.errors)
            seen[end.status] += 1
            if end.status == 2:
                need(len(end.errors) == 1 and not end.lines, end.errors, end.lines)
                need(all(word in end.errors[0] for word in (store.data, ".log", "damaged", "offset ")), end.errors)
                with open(os.path.join(store.data, name), "rb") as f:
                    need(f.read() == damaged, "a refusal has changed the file")
            store.took(run)
        need(seen[2] > 0, seen)


def second_process(bench):
    """T8"""
    with bench.place() as place:
        data, link = os.path.join(place, "data"), os.path.join(place, "link")
        store = Store(bench, data)
        run = store.start()
        os.symlink("data", link)
        for path in (data, link, os.path.join(place, ".", "data", "..", "data")):
            before = time.monotonic()
            second = bench.start("kill", "0", 5, data=path)
            end = second.end(30)
            took = time.monotonic() - before
            need(took < 1 + harness.SLACK, f"refused after {took:.1f} s")
            need(end.status == 2 and not end.lines and len(end.errors) == 1, f"status {end.status}", end.lines, end.errors)
            need(all(word in end.errors[0] for word in (path, "in use", str(run.pid))), "text", end.errors)
        run.kill()
        store.took(run)
        store.check()


def race(bench, what, actors, times, shards, data, **more):
    """Runs races.wo, then starts it again to look if it has kept something; the lines of both."""
    first = bench.start("races", what, actors, times, data=data, WO_SHARDS=shards, **more).end(600)
    errors = [line for line in first.errors if data or ": WO_EPHEMERAL=1: " not in line]
    need(first.status == 0 and not errors, f"{what}: status {first.status}", errors[:5])
    need(not any("wrong" in line for line in first.lines), first.lines[:5])
    if data is None:
        return first.lines, None
    bench.check(data)
    second = bench.start("races", what, 0, 0, data=data).end(60)
    need(second.status == 0 and not second.errors, f"{what}: status {second.status}", second.errors[:5])
    need(not any("wrong" in line for line in second.lines), second.lines[:5])
    return first.lines, second.lines


def counters(bench):
    """T12, and two actors on two shards with 100,000 changes each."""
    many = 100_000
    # A log that is only a race has no need of a slow disk.
    free = dict(faults=dict(sync="free")) if bench.shim else {}
    volatile = dict(WO_EPHEMERAL=1)
    plans = [(8, 40, 4, {}), (2, 200, 1, {}), (2, many // 10, 2, volatile)]
    if not bench.short:
        plans += [(8, 10_000, 4, free), (8, 10_000, 4, volatile)]
        plans += [(2, many, 1, free), (2, many, 2, free), (2, many, 2, volatile)]
    for actors, times, shards, more in plans:
        with bench.place() as place:
            data = None if more is volatile else os.path.join(place, "data")
            for seen in race(bench, "count", actors, times, shards, data, **more):
                need(seen is None or seen[-1] == f"hot {actors * times} others {actors * times}", actors, times, seen)


def unique_keys(bench):
    """T13"""
    times = 30 if bench.short else 1000
    for shards in (1, 4):
        with bench.place() as place:
            first, second = race(bench, "keys", 8, times, shards, os.path.join(place, "data"))
            need(first == [f"sum {7 * times}", f"keys {times}"] and second == [f"keys {times}"], first, second)


def restricted_targets(bench):
    """T14"""
    for shards in (1, 4):
        with bench.place() as place:
            first, second = race(bench, "restrict", 6, 60 if bench.short else 1500, shards, os.path.join(place, "data"))
            need(first[-1] == second[-1] == "targets 1 parts 0", first, second)
            need(first[1:] == second and second[0].startswith("remade "), first, second)


def copies_have_originals(bench):
    """T9"""
    for shards in [1, 4] * (1 if bench.short else 20):
        with bench.place() as place:
            data = os.path.join(place, "data")
            run = bench.start("races", "copy", 6, 1_000_000, data=data, WO_SHARDS=shards)
            run.until("copied ")
            time.sleep(bench.rng.uniform(0.01, 0.2))
            run.kill()
            for reader in run.readers:
                reader.join(20)
            told = {line for _, line in run.lines[:-1]}
            end = bench.start("races", "copy", 0, 0, data=data).end(60)
            need(end.status == 0 and not end.errors, f"status {end.status}", end.errors)
            hot = int(end.lines[-1].removeprefix("hot "))
            copies = {int(line.removeprefix("copy ")) for line in end.lines[:-1]}
            need({int(line.removeprefix("copied ")) for line in told} <= copies, "an acknowledged copy is lost")
            need(max(copies) <= hot, f"{max(copies)} was copied, but {hot} is there")


def the_shard_stays_free(bench):
    """T16"""
    with bench.place() as place:
        count, times = os.path.join(place, "count"), 5 if bench.short else 20
        slow = dict(sync=200, count=count)
        run = bench.start("races", "write", 64, times, data=os.path.join(place, "data"), faults=slow, WO_SHARDS=1)
        end = run.end(120)
        need(end.status == 0, f"status {end.status}", end.errors)
        ticks = int(end.lines[0].removeprefix("ticks "))
        # 200 in two seconds, if nobody else wants the machine; 10 if they waited for syncs.
        need(ticks >= 25, f"{ticks} ticks while writers waited")
        need(end.lines[1:] == [f"sum {64 * times}", f"notes {64 * times}"], end.lines)
        syncs = os.path.getsize(count)
        need(64 * times >= 8 * (syncs - 8), f"{64 * times} records with {syncs} syncs")


def simulated(bench):
    """The tests over the simulated disk and the model, with many seeds; migrations that are killed at each call."""
    runs = bench.args.rounds or 10_000
    seed = str(bench.rng.randrange(1, 1 << 40))
    parts = [
        (["store", "--test", "crash", "--", "random_operations", "prefix"], dict(CRASH_RUNS=str(runs))),
        # Each of these is many crashes.
        (["store", "--test", "crash"], dict(CRASH_RUNS=str(max(runs // 500, 1)))),
        (["store", "--test", "history"], dict(HISTORIES=str(runs), HISTORY_SEED=seed)),
        (["store", "--test", "model"], dict(STORE_ROUNDS="100000", STORE_SEED=seed)),
        (["corpus", "--test", "cli", "t19_"], dict(CRASH_RUNS="1", WOC=os.path.abspath(bench.args.woc))),
    ]
    for words, settings in parts:
        print("    ", *(f"{name}={value}" for name, value in settings.items()), "cargo test -p", *words, flush=True)
        cargo = ["cargo", "test", "--quiet", "--release", "-p"]
        done = subprocess.run([*cargo, *words], cwd=ROOT, env=dict(os.environ, **settings))
        need(done.returncode == 0, "see above", words, settings)


# `shim`: it needs the C compiler; `long`: it is for the long form only.
CHECKS = {
    "kill": dict(check=kill_loop),
    "calls": dict(check=kill_at_calls, shim=True),
    "growth": dict(check=kill_while_the_log_grows, shim=True),
    "syncs": dict(check=failing_syncs, shim=True),
    "writes": dict(check=failing_writes, shim=True),
    "large": dict(check=too_large_a_file),
    "full": dict(check=full_file_system),
    "readonly": dict(check=read_only_directory),
    "flips": dict(check=flipped_bits),
    "second": dict(check=second_process),
    "counters": dict(check=counters),
    "keys": dict(check=unique_keys),
    "restrict": dict(check=restricted_targets),
    "copies": dict(check=copies_have_originals),
    "histories": dict(check=histories.histories),
    "memory": dict(check=memory.bound),
    "group": dict(check=memory.small_group),
    "free": dict(check=the_shard_stays_free, shim=True),
    "simulated": dict(check=simulated, long=True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few seconds of each")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", action="append", choices=list(CHECKS))
    parser.add_argument("--rounds", type=int, default=None, help="kills of a store; seeds of simulated crashes")
    parser.add_argument("--woc", default=os.environ.get("WOC", os.path.join(ROOT, "target/release/woc")))
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    if not os.path.exists(args.woc):
        parser.error(f"no compiler at {args.woc}: build it with `cargo build --release -p woc`, or name one with --woc")
    print(f"seed {seed}", flush=True)
    bench = Bench(args, seed)
    done = failed = 0
    try:
        for name, about in CHECKS.items():
            if args.only and name not in args.only or not args.only and args.short and about.get("long"):
                continue
            if about.get("shim") and bench.shim is None:
                print(f"skip {name}: no C compiler", flush=True)
                continue
            # Each check has its own seed, so that it can be run alone.
            bench.rng = random.Random(f"{seed} {name}")
            done += 1
            began = time.monotonic()
            try:
                skipped = about["check"](bench)
                print(f"skip {name}: {skipped}" if skipped else f"ok   {name} {time.monotonic() - began:.1f} s", flush=True)
            except Exception as e:
                failed += 1
                why = e if isinstance(e, harness.Fault) else traceback.format_exc()
                print(f"FAIL {name}: {str(why)[:2000]}\n     repeat: scripts/crash.py --seed {seed} --only {name}{' --short' * args.short}", flush=True)
    finally:
        bench.builder.remove()
    print(f"crash: {done} checks, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
