"""The store's figures: docs/examples/db-bench beside SQLite (WAL, synchronous=FULL) and redb (peers/store), where they
have the same thing. Every run is a process with a store of its own; the programs of one figure take turns. What waits
for nothing is pinned to core 1, or has both cores and two shards; what waits for the disk of bench/out has both cores.
"""
import json, os, re, shutil, statistics, subprocess, tempfile, time
from collections import namedtuple
from runtime import UNITS, measure, processor
from support import PEERS, ROOT, WOC

LIMIT_S = 180
PEER = os.path.join(PEERS, "target", "release", "peer-store")
ROWS = 1_000_000
MIB = 1 << 20
UNITS |= {
    "writes_per_s": " writes/s", "reads_per_s": " reads/s", "half_bytes": " B when half are deleted",
    "read_p50_us": " us p50 of a read", "read_p99_us": " us p99 of a read", "read_max_us": " us longest read",
    "write_p50_us": " us p50 of a write", "write_p99_us": " us p99 of a write", "write_max_us": " us longest write",
    "deleted_us": " cpu-us, no referrer", "refused_us": " cpu-us, one referrer",
    "batch": " records a batch", "peak_batch": " records in the largest batch", "sync_share": " % of the time syncing",
    "record_bytes": " B of log a record", "sync_p50_us": " us p50 of a sync", "compact_mib_s": " MiB/s compacted",
    "compact_pause_us": " us longest lock by compaction", "compactions": " segments compacted",
    "total_to_live": " times the live bytes, at most", "open_ms": " ms to open", "one_core_ms": " ms to open, one core",
    "s_per_gib": " s/GiB to open", "cpu_ms": " cpu-ms to open", "row_bytes": " B of files a row",
    "check_mib_s": " MiB/s checked", "dump_mib_s": " MiB/s of files dumped", "end_ms": " ms from exec to the end",
}

# Where the rows are. SHM is a file system in memory, where a sync costs nothing.
MEMORY, DISK, SHM = "memory", "disk", "shm"
# What our program and, if they have it, the peers are asked for.
Figure = namedtuple("Figure", "name place ours peer shards env", defaults=(None, 1, {}))
RARE = {"WO_CHECKPOINT_RATIO": "0"}
OFTEN = {"WO_CHECKPOINT_RATIO": "1"}
FIGURES = [
    Figure("insert, volatile", MEMORY, ["insert", ROWS, 1]),
    Figure("insert, volatile, 64 writers", MEMORY, ["insert", ROWS, 64]),
    Figure("insert, volatile, 64 writers, two shards", MEMORY, ["insert", ROWS, 64], None, 2),
    Figure("count += 1, volatile", MEMORY, ["update", 10 * ROWS, 1, 1]),
    Figure("count += 1, volatile, one row, two shards", MEMORY, ["update", 4 * ROWS, 2, 1], None, 2),
    Figure("count += 1, volatile, two rows, two shards", MEMORY, ["update", 4 * ROWS, 2, 2], None, 2),
    Figure("lookup by unique text, 1M rows", MEMORY, ["lookup", ROWS, ROWS, 1], ["lookup", ROWS, 200_000]),
    Figure("lookup by unique text, 1M rows, two shards", MEMORY, ["lookup", ROWS, ROWS, 2], None, 2),
    Figure("rows: two Ints, two short Texts, unique, index", MEMORY, ["items", ROWS]),
    Figure("rows: two Ints", MEMORY, ["ints", ROWS]),
    Figure("rows: two Ints, index", MEMORY, ["indexed", ROWS]),
    Figure("rows: two Ints, ref", MEMORY, ["links", ROWS]),
    Figure("rows: Int, three Texts of 40 bytes", MEMORY, ["texts", ROWS]),
    Figure("delete with restrict, 1,000 referring rows", MEMORY, ["restrict", 1000]),
    Figure("delete with restrict, 1M referring rows", MEMORY, ["restrict", ROWS]),
    Figure("insert, durable, one writer", DISK, ["insert", 4_000, 1], ["insert", 4_000]),
    Figure("insert, durable, 8 writers", DISK, ["insert", 20_000, 8], ["insert", 4_000]),
    Figure("insert, durable, 64 writers", DISK, ["insert", 100_000, 64], ["insert", 4_000]),
    Figure("insert, durable, 512 writers", DISK, ["insert", 400_000, 512], ["insert", 4_000]),
    Figure("insert, durable, 64 writers, two shards", DISK, ["insert", 100_000, 64], None, 2),
    Figure("insert, durable, free sync, one writer", SHM, ["insert", 50_000, 1], ["insert", 10_000]),
    Figure("insert, durable, free sync, 64 writers", SHM, ["insert", 400_000, 64], ["insert", 10_000]),
    Figure("count += 1, durable", DISK, ["update", 4_000, 1, 1]),
    Figure("count += 1, durable, 64 writers, one row", DISK, ["update", 100_000, 64, 1]),
    Figure("lookup while 64 writers insert", DISK, ["mixed", 100_000, 64, 3_000]),
    Figure("load 90/10, two shards", DISK, ["load", 100_000, 64, 90, 2_000], None, 2),
    Figure("load 50/50, two shards", DISK, ["load", 100_000, 64, 50, 2_000], None, 2),
    Figure("changes, no compaction", DISK, ["load", 100_000, 512, 10, 3_000], None, 1, RARE),
    Figure("changes, compaction as it comes", DISK, ["load", 100_000, 512, 10, 3_000]),
    Figure("changes, constant compaction", DISK, ["load", 100_000, 512, 10, 3_000], None, 1, OFTEN),
]


class Place:
    """A directory for one run, and how to start the programs with it."""

    def __init__(self, ours, out, place, shards=1, env={}):
        self.ours, self.place, self.shards, self.env = ours, place, shards, env
        self.out = "/dev/shm" if place == SHM else out

    def __enter__(self):
        self.dir = tempfile.mkdtemp(dir=self.out)
        self.store = os.path.join(self.dir, "store")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def start(self, who, asked, cores=None):
        env = dict(os.environ, WO_SHARDS=str(self.shards), WO_WAL_STATS="1", **self.env)
        for name in ("WO_DATA", "WO_EPHEMERAL"):
            env.pop(name, None)
        env |= {"WO_EPHEMERAL": "1"} if self.place == MEMORY else {"WO_DATA": self.store}
        command = [self.ours] if who == "ours" else [PEER, who, self.dir]
        cores = cores or ("1" if self.place == MEMORY and self.shards == 1 else "0,1")
        command = ["taskset", "-c", cores] + command + [str(a) for a in asked]
        child = subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.started = time.perf_counter()
        return child

    def size(self):
        return sum(entry.stat().st_size for entry in files(self.dir))


def files(folder):
    """All that are there now: a store drops files of its log meanwhile."""
    for entry in os.scandir(folder):
        try:
            if entry.is_dir():
                yield from files(entry.path)
            elif entry.stat():
                yield entry
        except FileNotFoundError:
            continue


def finished(child):
    """The line of a process by name, with the counters of its log if there are some; or a text that says why not."""
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
    for line in err.splitlines():
        if line.startswith("walstats "):
            fields = dict(field.split("=") for field in line.split()[1:])
            got |= log_figures({key: int(value) for key, value in fields.items()}, time.perf_counter() - child.started)
    return got


def log_figures(stats, took):
    """What the counters of a log say of a run that took so many seconds."""
    if not stats["batches"]:
        return {}
    got = {"batch": stats["records"] / stats["batches"], "peak_batch": stats["peak_batch"],
           "sync_share": stats["sync_us"] / took / 1e4, "sync_p50_us": stats["sync_us_p50"],
           "record_bytes": stats["bytes"] / stats["records"]}
    if stats["compactions"]:
        got |= {"compactions": stats["compactions"], "compact_pause_us": stats["compact_pause_us_max"]}
        if stats["compact_ms"]:
            got["compact_mib_s"] = stats["compact_bytes"] / MIB / stats["compact_ms"] * 1000
    got["live_bytes"] = stats["live_bytes"]
    return {key: [value] for key, value in got.items()}


def once(ours, out, figure, who, asked):
    with Place(ours, out, figure.place, figure.shards, figure.env) as place:
        child = place.start(who, asked)
        largest = 0
        if asked[0] == "load":
            while child.poll() is None:
                largest = max(largest, place.size())
                time.sleep(0.02)
        got = finished(child)
        if not isinstance(got, str):
            live = got.pop("live_bytes", None)
            if largest and live:
                got["total_to_live"] = [largest / live[0]]
        return got


def queries(ours, out, runs, only):
    """All queries of one process at a time; each is a figure with and without its indexes."""
    names = ["equal", "one", "range", "prefix", "first", "last", "sorted", "sort", "count"]
    if not any(re.search(only, f"query: {name}") for name in names):
        return True
    UNITS.update({f"{name}_us": f" cpu-us, {name}" for name in names})
    UNITS.update({f"{name}_loose_us": f" cpu-us, {name}, without index" for name in names})
    figure = Figure("queries", MEMORY, ["queries", ROWS])
    commands = {who: lambda who=who: once(ours, out, figure, who, figure.ours) for who in ("ours", "sqlite")}
    return measure("query: 1M rows", runs, commands)


def opened(ours, out, who):
    """What a process takes from exec to the number of its rows, after the one that wrote them was killed."""
    with Place(ours, out, DISK, 2) as place:
        child = place.start(who, ["fill", ROWS])
        line = child.stdout.readline()
        child.kill()
        child.communicate()
        if line != "filled\n":
            return "not filled"
        size = place.size()
        figures = {"row_bytes": size / ROWS}
        # A peer mends its files at its first start, so that its second one is another figure; ours does the same again.
        for name, cores in (("open_ms", "0,1"), ("one_core_ms", "1"))[:2 if who == "ours" else 1]:
            start, before = time.perf_counter(), os.times()
            got = finished(place.start(who, ["open"], cores))
            took, after = time.perf_counter() - start, os.times()
            if isinstance(got, str):
                return got
            if got["rows"] != [ROWS]:
                return f"{got['rows']} rows"
            figures[name] = 1000 * took
            figures.setdefault("cpu_ms", 1000 * (sum(after[2:4]) - sum(before[2:4])))
        figures["s_per_gib"] = figures["open_ms"] / 1000 / (size / (1 << 30))
        if who == "ours":
            for tool in ("check", "dump"):
                start = time.perf_counter()
                command = [WOC, "db", tool, place.store]
                done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if done.returncode:
                    return f"woc db {tool}: status {done.returncode}: {done.stderr.strip()}"
                figures[f"{tool}_mib_s"] = size / MIB / (time.perf_counter() - start)
        return {key: [value] for key, value in figures.items()}


def started(ours, out, who):
    """A process that finds no store, makes one and ends."""
    with Place(ours, out, DISK, 2) as place:
        start = time.perf_counter()
        got = finished(place.start(who, ["open"]))
        return got if isinstance(got, str) else {"end_ms": [1000 * (time.perf_counter() - start)]}


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
          f" {system}, 4 KiB appended and synced in {sync_us(out):.0f} us", flush=True)
    fine = True
    with tempfile.TemporaryDirectory() as scratch:
        ours = os.path.join(scratch, "db-bench")
        subprocess.run([WOC, "build", "docs/examples/db-bench", "-o", ours], cwd=ROOT, check=True)
        for figure in FIGURES:
            if not re.search(only, figure.name):
                continue
            asked = {"ours": figure.ours} | ({"sqlite": figure.peer, "redb": figure.peer} if figure.peer else {})
            commands = {who: lambda w=who, what=what: once(ours, out, figure, w, what) for who, what in asked.items()}
            fine &= measure(figure.name, runs, commands)
        fine &= queries(ours, out, runs, only)
        for name, command in (("open after SIGKILL, 1M rows", opened), ("start with an empty store", started)):
            if re.search(only, name):
                commands = {who: lambda who=who: command(ours, out, who) for who in ("ours", "sqlite", "redb")}
                fine &= measure(name, runs, commands)
    return fine
