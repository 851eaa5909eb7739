"""The acceptance scenarios of the runtime specification, section 11, each a process of its own.

usage: run.py [--full] [--shards 1,2,4,16,default] [--only WORD]... [--seed N] [--jobs N] [--list]
Without --full every scenario runs in its short form at a few settings; with it, at all of them and full size.
WOC names the compiler. Prints `ok`, `skip` or `FAIL` for each check, then `scenarios: N checks, M failures`.
"""

import argparse, concurrent.futures, itertools, os, random, sys, threading, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import actors, harness, scale, sockets, stop  # noqa: F401 (each registers its scenarios)

SHORT = [(1, True, None), (4, True, None)]
# One of these comes to each scenario of the short form in turn.
THIRD = [(2, False, "epoll"), (16, True, "epoll"), (None, False, None)]


def settings(entry, index, args):
    """The (shards, optimized, io) that a scenario runs at."""
    if args.full:
        ios = [None, "epoll"] + (["uring"] if args.uring else [])
        chosen = list(itertools.product(args.shards or [1, 2, 4, 16, None], [True, False], ios))
    elif args.shards:
        chosen = [(n, True, None) for n in args.shards]
    elif entry["least"]:
        chosen = [SHORT[-1]]
    else:
        chosen = SHORT + [THIRD[index % len(THIRD)]]
    if entry["shards"]:
        chosen = sorted({(n, o, i) for n in entry["shards"] for _, o, i in chosen}, key=str)
    return chosen[:1] if entry["once"] else chosen


class Runner:
    def __init__(self, builder, args):
        self.builder, self.args = builder, args
        self.checks = self.failures = 0
        self.printing = threading.Lock()

    def say(self, word, name, why=""):
        with self.printing:
            self.checks += word != "skip"
            self.failures += word == "FAIL"
            print(f"{word:4} {name}" + (f" -- {why}" if why else ""), flush=True)

    def one(self, name, entry, chosen):
        shards, optimize, io = chosen
        title = f"{name} shards={shards or 'default'} opt={int(optimize)} io={io or 'unset'}"
        if entry["needs"] and not self.builder.offers(entry["needs"]):
            return self.say("skip", title, f"this compiler does not offer {entry['needs']}")
        began, why = time.monotonic(), ""
        for attempt in range(entry["attempts"]):
            case = harness.Case(self.builder, random.Random(f"{self.args.seed} {title} {attempt}"), shards, optimize, io, self.args.full)
            try:
                entry["check"](case)
                return self.say("ok", f"{title} {time.monotonic() - began:.1f}s")
            except Exception as e:
                why = str(e) if isinstance(e, harness.Fault) else traceback.format_exc()
            finally:
                case.close()
        self.say("FAIL", title, why.replace("\n", " / "))


def shard_counts(text):
    return [None if word == "default" else int(word) for word in text.split(",")]


def uring(builder):
    """Whether a program starts with WO_IO=uring here; ENV-2 lets it refuse."""
    case = harness.Case(builder, random.Random(0), io="uring")
    try:
        return case.run("spin-short").status == 0
    finally:
        case.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--shards", type=shard_counts)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--jobs", type=int, default=3 * (os.cpu_count() or 1))
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    picked = {n: e for n, e in harness.SCENARIOS.items() if all(w in n for w in args.only)}
    if args.list:
        print("\n".join(picked))
        return 0
    if not picked:
        parser.error(f"no scenario has {args.only} in its name")
    builder = harness.Builder(os.environ["WOC"])
    args.uring = args.full and uring(builder)
    runner = Runner(builder, args)
    print(f"note seed {args.seed}", flush=True)
    runs = [(n, e, s) for i, (n, e) in enumerate(picked.items()) for s in settings(e, i, args)]
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda r: runner.one(*r), [r for r in runs if not r[1]["heavy"]]))
        for run in runs:
            if run[1]["heavy"]:
                runner.one(*run)
    finally:
        builder.remove()
    print(f"scenarios: {runner.checks} checks, {runner.failures} failures")
    # Nothing checked is nothing shown.
    return runner.failures > 0 or runner.checks == 0


if __name__ == "__main__":
    sys.exit(main())
