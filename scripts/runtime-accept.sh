#!/usr/bin/env bash
# Acceptance gate of the runtime: the programs of tests/programs as real processes under limits, signals and pipes.
# usage: scripts/runtime-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `runtime: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" T00 python3
exec python3 - <<'PY'
import os, re, signal, subprocess, sys, tempfile, time

WOC, checks, failures = os.environ["WOC"], 0, 0
for name in [n for n in os.environ if n.startswith("WO_")]:
    del os.environ[name]


def check(leg, name, good, why=""):
    global checks, failures
    checks += 1
    failures += not good
    print(f"ok   {leg} {name}" if good else f"FAIL {leg} {name} -- {why!r}"[:1200], flush=True)


def start(program, *args, out=subprocess.PIPE, **env):
    """A running program; stderr goes to a file that `stderr` reads."""
    err = tempfile.TemporaryFile(mode="w+")
    argv = [WOC, "run", f"tests/programs/{program}.wo", *(["--", *args] if args else [])]
    p = subprocess.Popen(argv, stdout=out, stderr=err, env=dict(os.environ, WO_STATS="1", **env))
    p.err = err
    return p


def stderr(p):
    p.err.seek(0)
    return p.err.read()


def finish(p, bound=60):
    """Status, stdout, stderr, peak resident KiB."""
    try:
        out = p.communicate(timeout=bound)[0]
    except subprocess.TimeoutExpired:
        p.kill()
        out = p.communicate()[0]
        return "no end", (out or b"").decode(), stderr(p)
    return p.returncode, (out or b"").decode(), stderr(p)


def clean(err):
    return "objects_live=0" in err


def peak(p):
    """Watches a process to its end: its largest resident size in KiB."""
    most = 0
    while p.poll() is None:
        try:
            with open(f"/proc/{p.pid}/status") as f:
                most = max(most, int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]))
        except (OSError, TypeError):
            pass
        time.sleep(0.01)
    return most


p = start("forever", WO_HEAP_MB="8")
most = peak(p)
status, out, err = finish(p)
names = ["texts", "maps", "doubling", "lists", "chain", "joined"]
lines = "".join(f"{n} 4 out of memory\n" for n in names) + "call 13 actor died during call\n"
check("T01", "a program that allocates for ever (MEM-1)", status == 0 and out == lines * 3 + "survived\n" and clean(err), (status, out, err[-300:]))
check("T02", "its memory stays near the bound (MEM-2)", most < 120_000, most)
p = start("spawner", WO_HEAP_MB="32")
most = peak(p)
status, out, err = finish(p)
check("T03", "actors and timers without end", status == 0 and out.startswith("spawn 4 out of memory\n") and out.endswith("survived\n") and clean(err), (status, out, err[-300:]))
check("T04", "actor records count (MEM-1)", most < 220_000, most)
status, out, err = finish(start("sources", WO_HEAP_MB="16"))
check("T05", "endless files and huge requests", status == 0 and clean(err) and out.splitlines() == [
    "read_all 4 out of memory", "read_at 4 out of memory", "random 4 out of memory", "random 4 out of memory", "100000"], (status, out, err[-300:]))
began = time.time()
status, out, err = finish(start("deepstop"))
check("T06", "every wait and loop is unwound at the end (END-2, END-3)", status == 0 and out.endswith("end\n") and clean(err) and time.time() - began < 4, (status, out, err[-300:]))
status, out, err = finish(start("selves"))
check("T07", "actors that hold their own address", (status, out) == (0, "2\n2\n") and clean(err), (status, out, err[-300:]))
status, out, err = finish(start("shared"))
check("T08", "a handle that 200 dead actors used (FD-5)", (status, out) == (0, "1\n1\n202\n") and clean(err) and err.count("fiber trap 8") == 200, (status, out))
status, out, err = finish(start("crowd"), 120)
check("T09", "20,000 senders at one mailbox (MB-3)", (status, out) == (0, "20000\n") and clean(err), (status, out, err[-300:]))
# --- output (5.2) ---
p = start("endless")
for _ in range(10):
    p.stdout.readline()
p.stdout.close()
try:
    status = p.wait(10)
except subprocess.TimeoutExpired:
    p.kill()
    status = p.wait()
check("T14", "a closed pipe traps 9 (OUT-4)", status == 3 and "stopped by 9: Broken pipe" in stderr(p), (status, stderr(p)[-300:]))
p = start("endless")
time.sleep(0.4)
got = b""
while len(got) < 3_000_000:
    got += p.stdout.read(65536)
p.kill()
p.wait()
whole = got.splitlines()[:-1]
check("T15", "a full pipe waits for its reader, no line is torn (OUT-1)", all(l.startswith(b"line %d 01234" % (i + 1)) and l.endswith(b"789") for i, l in enumerate(whole)), whole[:2])
with tempfile.NamedTemporaryFile() as f:
    p = start("line", "wait", out=f)
    for _ in range(100):
        time.sleep(0.05)
        if os.path.getsize(f.name):
            break
    p.kill()
    p.wait()
    check("T16", "a printed line survives SIGKILL (OUT-2)", open(f.name).read() == "the line\n")
began = time.time()
status, out, err = finish(start("line"))
check("T17", "a pending timer does not keep the program (TMR-4)", (status, out) == (0, "the line\n") and clean(err) and time.time() - began < 4, (status, out))

# --- signals (5.4) ---
p = start("stubborn")
p.stdout.readline()
time.sleep(0.05)
p.send_signal(signal.SIGTERM)
noticed = p.stdout.readline()
p.send_signal(signal.SIGTERM)
time.sleep(0.2)
alive = p.poll() is None
p.send_signal(signal.SIGINT)
time.sleep(0.1)
if p.poll() is None:
    p.send_signal(signal.SIGINT)
status, _, _ = finish(p, 5)
check("T18", "a second SIGINT ends with 130 (STOP-6)", noticed == b"noticed\n" and alive and status == 130, (noticed, alive, status))
# --- start-up variables (9) ---
for leg, name, value in [("T21", "WO_SHARDS", "0"), ("T22", "WO_SHARDS", "many"), ("T23", "WO_MAILBOX", "-1"), ("T24", "WO_STACK_KB", "63"),
                         ("T25", "WO_HEAP_MB", "99999999999999999999"), ("T26", "WO_REDUCTIONS", "1e3"), ("T27", "WO_DRAIN_MS", ""),
                         ("T28", "WO_POOL", "257"), ("T29", "WO_CONNECT_MS", "0x10")]:
    status, out, err = finish(start("line", **{name: value}))
    notice = [l for l in err.splitlines() if name in l]
    check(leg, f"{name}={value} (ENV-1)", (status, out) == (0, "the line\n") and len(notice) == 1 and value in notice[0], (status, out, err))
status, out, err = finish(start("line", WO_IO="uring"))
check("T30", "WO_IO=uring (ENV-2)", (status == 2 and "WO_IO" in err and "uring" in err and err.count("\n") == 1) or out == "the line\n", (status, err))
check("T31", "WO_IO=nonsense", finish(start("line", WO_IO="nonsense"))[:2] == (0, "the line\n"))
for leg, kb in [("T32", "64"), ("T33", "4096"), ("T34", "1048576")]:
    status, out, err = finish(start("deep", WO_STACK_KB=kb))
    check(leg, f"WO_STACK_KB={kb}", status == 0 and out.startswith("3 ") and (kb == "64" or out == "3 true true\n") and clean(err), (status, out, err))

print(f"runtime: {checks} checks, {failures} failures")
sys.exit(failures > 0)
PY
