"""The store's figures: docs/examples/db-bench beside SQLite (WAL, synchronous=FULL) and redb (peers/store), all on the disk
of bench/out. Every run is a process with a store of its own; the programs of one figure take turns. What waits for
nothing is pinned to core 1; what waits for the disk has both cores and one shard."""
import json, os, re, shutil, statistics, subprocess, tempfile, time
from runtime import UNITS, measure, processor
from support import PEERS, ROOT, WOC

LIMIT_S = 180
PEER = os.path.join(PEERS, "target", "release", "peer-store")
ROWS = 1_000_000
UNITS |= {"writes_per_s": " writes/s meanwhile", "open_ms": " ms to open", "log_bytes": " B of files"}

# A figure: its name; whether it waits for the disk; what our program is asked for, and what a peer, if it has it.
FIGURES = [
    ("insert, volatile", False, ["insert", ROWS, 1], None),
    ("insert, volatile, 64 writers", False, ["insert", ROWS, 64], None),
    ("count += 1, volatile", False, ["update", 10 * ROWS], None),
    ("lookup by unique text, 1M rows", False, ["lookup", ROWS, ROWS], ["lookup", ROWS, ROWS]),
    ("resident memory of a row", False, ["memory", ROWS], None),
    ("insert, durable, one writer", True, ["insert", 4_000, 1], ["insert", 4_000]),
    ("insert, durable, 8 writers", True, ["insert", 20_000, 8], ["insert", 4_000]),
    ("insert, durable, 64 writers", True, ["insert", 100_000, 64], ["insert", 4_000]),
    ("insert, durable, 512 writers", True, ["insert", 400_000, 512], ["insert", 4_000]),
    ("count += 1, durable", True, ["update", 4_000], None),
    ("lookup while 64 writers insert", True, ["mixed", 100_000, 64, 3_000], None),
]


class Place:
    """A directory for one run, and how to start the programs with it."""

    def __init__(self, ours, out, durable):
        self.ours, self.durable, self.out = ours, durable, out

    def __enter__(self):
        self.dir = tempfile.mkdtemp(dir=self.out)
        self.store = os.path.join(self.dir, "store")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def start(self, who, asked):
        env = dict(os.environ, WO_SHARDS="1")
        for name in ("WO_DATA", "WO_EPHEMERAL"):
            env.pop(name, None)
        env |= {"WO_DATA": self.store} if self.durable else {"WO_EPHEMERAL": "1"}
        command = [self.ours] if who == "ours" else [PEER, who, self.dir]
        cores = "0,1" if self.durable else "1"
        return subprocess.Popen(["taskset", "-c", cores] + command + [str(a) for a in asked], cwd=ROOT, env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def size(self):
        return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(self.dir) for name in names)


def finished(child):
    """The line of a process as rows, or a text that says why there is none."""
    try:
        out, err = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return f"not done after {LIMIT_S} s"
    if child.returncode:
        return f"status {child.returncode}: {(err.strip().splitlines() or ['no word'])[0]}"
    got = {key: [value] for key, value in json.loads(out).items() if value}
    got.pop("writers", None)
    return got


def once(ours, out, durable, who, asked):
    with Place(ours, out, durable) as place:
        return finished(place.start(who, asked))


def opened(ours, out, who):
    """How long a process takes from exec to the number of its rows, after the one that wrote them was killed."""
    with Place(ours, out, True) as place:
        child = place.start(who, ["fill", ROWS])
        line = child.stdout.readline()
        child.kill()
        child.communicate()
        if line != "filled\n":
            return "not filled"
        size = place.size()
        start = time.perf_counter()
        got = finished(place.start(who, ["open"]))
        took = time.perf_counter() - start
        if isinstance(got, str):
            return got
        if got["rows"] != [ROWS]:
            return f"{got['rows']} rows"
        return {"open_ms": [1000 * took], "log_bytes": [size / ROWS]}


def sync_us(out):
    """What appending 4 KiB and syncing takes on this disk."""
    took = []
    with tempfile.TemporaryFile(dir=out) as file:
        for _ in range(1000):
            start = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            took.append(1e6 * (time.perf_counter() - start))
    return statistics.median(took)


def store(runs, only):
    """True when all that could be measured was."""
    out = os.path.join(ROOT, "bench", "out")
    os.makedirs(out, exist_ok=True)
    system = subprocess.run(["stat", "-f", "-c", "%T", out], capture_output=True, text=True).stdout.strip()
    print(f"store: {runs} runs each, interleaved; {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f};"
          f" {system}, 4 KiB appended and synced in {sync_us(out):.0f} us")
    fine = True
    with tempfile.TemporaryDirectory() as scratch:
        ours = os.path.join(scratch, "db-bench")
        subprocess.run([WOC, "build", "docs/examples/db-bench", "-o", ours], cwd=ROOT, check=True)
        for name, durable, asked, peer in FIGURES:
            if not re.search(only, name):
                continue
            commands = {"ours": lambda: once(ours, out, durable, "ours", asked)}
            for who in ("sqlite", "redb") if peer else ():
                commands[who] = lambda who=who: once(ours, out, durable, who, peer)
            fine &= measure(name, runs, commands)
        name = "open after SIGKILL, 1M rows"
        if re.search(only, name):
            fine &= measure(name, runs, {who: lambda who=who: opened(ours, out, who) for who in ("ours", "sqlite", "redb")})
    return fine
