#!/usr/bin/env python3
"""Programs under load, stopped at a random moment, again and again.

usage: scripts/stress.py [--runs N] [--shards 1,2,4,16,default] [--scenario NAME]... [--seed N] [--jobs N]
                         [--reductions 1,4000,...] [--mailbox 2,1024,...] [--woc PATH] [--only-run N] [--keep DIR]

Each run is a process of its own: a program of tests/stress at a shard count, with a slice, a mailbox cap, a moment and a kind
of end that follow from the seed, which is printed. Most get SIGTERM, a few SIGINT, and one in eight returns from `main` by
itself. A run is good when the program ends with status 0 within 3 s, says nothing wrong, writes nothing to stderr but the
counters (and reports of actors that die on purpose), leaves no object, and has every message that was sent before the stop
was noticed: the programs count and compare, and print `complete` when all is there.
A run that fails leaves its output and the command that repeats it in a directory of its own. Exit status 0: all were good.
"""

import argparse, concurrent.futures, json, os, random, shlex, signal, sys, tempfile, threading, time, traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "scenarios"))
import harness

# What each program prints after `ready`: at a stop, and when it ends by itself. `reports`: actors die on purpose. `cap`: the least
# mailbox cap that it takes. `uses`: parts of the compiler that may be missing, its build flags. `may`: stderr lines to overlook.
PROGRAMS = {
    "kinds": dict(stop=["complete 360"]),
    "relay": dict(stop=["complete 24"]),
    "deaths": dict(stop=["complete 16"], reports=True, cap=1024),
    "waits": dict(cap=64),
    "timers": dict(cap=64),
    "reclaim": dict(itself=["left 0"], polls=5),
    "rings": dict(stop=["complete 6"], may="call cycle", cap=1024),
    "sockets": dict(path=True, uses=["unix"]),
    "parked-callers": dict(folder="tests/scenarios", bare=True, uses=["tables"], cap=256),
}
LIMIT = 3.0


def plan(seed, name, shards, number, args):
    """What the run does; the same for the same seed."""
    rng = random.Random(f"{seed} {name} {shards} {number}")
    plan = dict(
        optimize=rng.random() < 0.8,
        io=rng.choice([None, None, "epoll"]),
        reductions=rng.choice(args.reductions),
        mailbox=rng.choice(args.mailbox),
        store=rng.random() < 0.5,
        seed=rng.randrange(1 << 40),
        after=rng.choice([0, rng.uniform(0, 0.02), rng.uniform(0, 0.1), rng.uniform(0.05, 0.6)]),
        end=rng.choice(["TERM"] * 6 + ["INT", "itself"]),
    )
    if plan["end"] == "itself":
        plan["after"] = rng.randrange(0, 400)
    return plan


def one(builder, name, shards, plan, slack):
    """One run; raises a fault, with the program's output."""
    about = PROGRAMS[name]
    case = harness.Case(builder, random.Random(0), shards, plan["optimize"], plan["io"])
    try:
        itself = plan["end"] == "itself"
        program_args = [] if about.get("bare") else [plan["seed"], plan["after"] if itself else "stop"]
        if about.get("bare") and itself:
            program_args = [plan["after"]]
        if about.get("path"):
            program_args.append(os.path.join(case.dir, "socket"))
        flags = [part.upper() for part in about.get("uses", []) if builder.offers(part)]
        overlook = [about["may"]] if "may" in about else []
        env = dict(WO_REDUCTIONS=plan["reductions"], WO_MAILBOX=max(plan["mailbox"], about.get("cap", 1)))
        if "TABLES" in flags and plan["store"] and builder.offers("store"):
            env["WO_DATA"] = os.path.join(case.dir, "data")
        elif "TABLES" in flags:
            env["WO_EPHEMERAL"] = 1
            overlook.append("WO_EPHEMERAL")
        p = case.start(name, *program_args, flags=flags, folder=about.get("folder", "tests/stress"), **env)
        try:
            began = time.monotonic()
            first = [] if about.get("bare") and itself else ["ready"]
            if first:
                p.line("ready")
            if itself:
                bound = plan["after"] / 1000 + LIMIT + about.get("polls", 0)
                e = p.end(bound + slack + 10)
                took = time.monotonic() - began
            else:
                time.sleep(plan["after"])
                p.signal(signal.SIGTERM if plan["end"] == "TERM" else signal.SIGINT)
                bound = LIMIT
                e = p.end(bound + slack + 10)
                took = e.after_signal
            e.errors = [x for x in e.errors if not any(word in x for word in overlook)]
            e.clean(first + about.get("itself" if itself else "stop", []), reports=about.get("reports", False))
            harness.need(took <= bound + slack, f"took {took:.2f} s, bound {bound:.2f} s")
            if about.get("reports"):
                reports = sum(x.startswith("fiber trap ") for x in e.errors)
                harness.need(reports == int(e.stats["actors_died"]), "reports and deaths differ", reports, e.stats)
            return took
        except harness.Fault as fault:
            p.kill()
            for reader in p.readers:
                reader.join(5)
            fault.output = ([t for _, t in p.lines], [t for _, t in p.errors])
            raise
    finally:
        case.close()


def keep(where, title, command, plan, fault):
    place = os.path.join(where, title.replace(" ", "_").replace("=", "-"))
    os.makedirs(place, exist_ok=True)
    out, err = getattr(fault, "output", ([], []))
    for name, text in [("stdout", "\n".join(out)), ("stderr", "\n".join(err)), ("why", str(fault)),
                       ("plan", json.dumps(plan, indent=1)), ("repeat", command)]:
        with open(os.path.join(place, name), "w") as f:
            f.write(text + "\n")
    return place


def numbers(text):
    return [None if w == "default" else int(w) for w in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each program at each shard count")
    parser.add_argument("--shards", type=numbers, default=[1, 2, 4, 16])
    parser.add_argument("--scenario", action="append", choices=sorted(PROGRAMS))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--reductions", type=numbers, default=[4000, 4000, 50, 1])
    parser.add_argument("--mailbox", type=numbers, default=[1024, 1024, 64, 2])
    parser.add_argument("--slack", type=float, default=harness.SLACK, help="seconds added to each bound, for a busy machine")
    parser.add_argument("--woc", default=os.environ.get("WOC", os.path.join(ROOT, "target/release/woc")))
    parser.add_argument("--only-run", type=int, help="this run of each only, as a failure's `repeat` has it")
    parser.add_argument("--keep", default=None, help="where failing runs are left; default: a new directory")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    if not os.path.exists(args.woc):
        parser.error(f"no compiler at {args.woc}: build it with `cargo build --release -p woc`, or name one with --woc")
    if args.runs < 1:
        parser.error("--runs is at least 1")
    print(f"seed {seed}", flush=True)
    builder = harness.Builder(args.woc)
    where = args.keep or tempfile.mkdtemp(prefix="wo-stress-")
    done, failed, worst, lock = 0, 0, {}, threading.Lock()

    def run(job):
        nonlocal done, failed
        name, shards, number = job
        chosen = plan(seed, name, shards, number, args)
        title = f"{name} shards={shards or 'default'} run={number}"
        try:
            took = one(builder, name, shards, chosen, args.slack)
            with lock:
                worst[name, shards] = max(worst.get((name, shards), 0), took)
        except Exception as e:
            fault = e if isinstance(e, harness.Fault) else harness.Fault(traceback.format_exc())
            words = ["scripts/stress.py", "--seed", seed, "--scenario", name, "--shards", shards or "default", "--only-run", number,
                     "--reductions", ",".join(map(str, args.reductions)), "--mailbox", ",".join(map(str, args.mailbox)), "--woc", args.woc]
            command = shlex.join(map(str, words))
            with lock:
                failed += 1
                place = keep(where, title, command, chosen, fault)
                print(f"FAIL {title} {chosen}\n     {str(fault)[:1000]}\n     output in {place}\n     repeat: {command}", flush=True)
        with lock:
            done += 1

    chosen = args.scenario or list(PROGRAMS)
    jobs = [(name, shards, number) for number in ([args.only_run] if args.only_run is not None else range(args.runs))
            for name in chosen for shards in args.shards]
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(run, jobs))
    finally:
        builder.remove()
    for (name, shards), took in sorted(worst.items(), key=str):
        print(f"ok   {name} shards={shards or 'default'}: slowest end {took:.2f} s")
    if not failed and args.keep is None:
        os.rmdir(where)
    print(f"stress: {done} checks, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
