#!/usr/bin/env bash
# Acceptance gate of child processes and unix sockets (runtime specification 6.4, 6.5, 11.9): tests/programs/children.wo
# as a real process, driven over TCP, under signals and with inherited descriptors.
# usage: scripts/proc-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `proc: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" C00 python3 sh cat sleep
exec python3 - <<'PY'
import atexit, json, os, re, signal, socket, stat, subprocess, sys, tempfile, threading, time

WOC, checks, failures = os.environ["WOC"], 0, 0
for name in [n for n in os.environ if n.startswith("WO_")]:
    del os.environ[name]
PY = sys.executable


def check(leg, name, good, why=""):
    global checks, failures
    checks += 1
    failures += not good
    print(f"ok   {leg} {name}" if good else f"FAIL {leg} {name} -- {why!r}"[:1200], flush=True)


def until(condition, bound=5.0):
    """Whether the condition came true within the bound, in seconds."""
    end = time.time() + bound
    while not condition():
        if time.time() > end:
            return False
        time.sleep(0.01)
    return True


def gone(pid):
    """Reaped."""
    return not os.path.exists(f"/proc/{pid}")


def dead(pid):
    """Reaped, or waiting for whoever adopted it."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Session:
    def __init__(self, service):
        self.s = socket.create_connection(("127.0.0.1", service.port))
        self.s.settimeout(60)
        self.f = self.s.makefile("r")

    def tell(self, *words):
        self.s.sendall(("\t".join(map(str, words)).replace("\n", "¶") + "\n").encode())

    def hear(self):
        return json.loads(self.f.readline())

    def ask(self, *words):
        self.tell(*words)
        return self.hear()


class Service:
    def __init__(self, program="children", popen=None, **env):
        self.err = tempfile.TemporaryFile(mode="w+")
        argv = [WOC, "run", f"tests/programs/{program}.wo"]
        self.p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=self.err, env=dict(os.environ, WO_STATS="1", **env),
                                  **(popen or {}))
        # Whatever becomes of this script, its services end with it.
        atexit.register(self.p.kill)
        self.port = int(self.p.stdout.readline())
        self.main = self.session()
        self.ask = self.main.ask

    def session(self):
        return Session(self)

    def stat(self, name):
        return self.ask("stat", name)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def resident(self):
        with open(f"/proc/{self.p.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def stop(self, how=signal.SIGTERM, bound=10):
        """Status, seconds until the end, stderr."""
        began = time.time()
        self.p.send_signal(how)
        try:
            status = self.p.wait(bound)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = f"no end, {self.p.wait()}"
        self.err.seek(0)
        return status, time.time() - began, self.err.read()


def ran(code, out="", err=""):
    return {"code": code, "out": out, "err": err}


def io(text):
    return {"trap": 9, "msg": text}


# --- run (11.9) ---
a = Service(MIMALLOC_ALLOW_THP="0")
got = a.ask("run", "echo", "hi")
check("C01", "run echo hi", got == ran(0, "hi\n"), got)
got = [a.ask("run", "no-such-command"), a.ask("run", "/etc/passwd"), a.ask("run", "/"), a.ask("run", "")]
check("C02", "a command that is missing or not executable gives 127 (PROC-3)", got == [ran(127)] * 4, got)
got = [a.ask("run", "sh", "-c", "echo out; echo err >&2; exit 7"), a.ask("run", "sh", "-c", "kill -9 $$")]
check("C03", "code, both outputs, death by a signal (PROC-3)", got == [ran(7, "out\n", "err\n"), ran(-1)], got)
began = time.time()
got = a.ask("run_dl", 200, 0, 0, "sleep", "10")
check("C04", "a deadline kills (PROC-4)", got == io("process deadline exceeded after 200 ms") and time.time() - began < 5, got)
check("C05", "and reaps", a.stat("children_live") == 0 and not subprocess.run(["pgrep", "-P", str(a.p.pid)], stdout=subprocess.PIPE).stdout)
got = [a.ask("run_dl", 0, 1000, 0, PY, "-c", "print('x' * 5000)"), a.ask("run_dl", 0, 0, 10, PY, "-c", "import sys; sys.stderr.write('x' * 11)"),
       a.ask("run_dl", 0, 10, 0, PY, "-c", "print('123456789')")]
check("C06", "caps: beyond kills, at the cap does not (PROC-4)", got == [
    io("process stdout cap 1000 bytes exceeded"), io("process stderr cap 10 bytes exceeded"), ran(0, "123456789\n")], got)
got = a.ask("run_dl", 300, 1 << 40, 0, PY, "-c", "import time\nprint('x' * 100, flush=True)\ntime.sleep(9)")
check("C07", "a large cap costs nothing", got == io("process deadline exceeded after 300 ms"), got)
b = a.session()
b.tell("run", "sh", "-c", "sleep 2; echo done")
time.sleep(0.2)
began = time.time()
got = a.ask("ping")
took = time.time() - began
check("C08", "a ping while another request runs a child", got == "pong" and took < 0.5 and b.hear() == ran(0, "done\n"), (got, took))
sessions = [a.session() for _ in range(40)]
for i, s in enumerate(sessions):
    s.tell("run", "sh", "-c", f"sleep 0.3; echo {i}; exit {i}")
got = [s.hear() for s in sessions]
check("C09", "40 at once", got == [ran(i, f"{i}\n") for i in range(40)], got[:3])
before = a.stat("descriptors_open"), a.descriptors(), a.resident()
bad = [r for r in (a.ask("run", "true") for _ in range(1000)) if r != ran(0)]
after = a.stat("descriptors_open"), a.descriptors(), a.resident()
check("C10", "1000 runs in a row: flat (PROC-7)", not bad and after[:2] == before[:2] and after[2] - before[2] < 8192, (before, after, bad[:1]))
got = a.ask("run", PY, "-c", "import os, sys\nos.write(1, b'y' * (1 << 20))\nos.write(2, b'held')")
check("C11", "1 MiB of stdout while stderr is open (PROC-2)", got == ran(0, "y" * (1 << 20), "held"), str(got)[-100:])
got = a.ask("run", PY, "-c", "import os\nfor i in range(2000): os.write(2, b'e' * 32); os.write(1, b'o' * 500)")
check("C12", "both outputs by turns", got == ran(0, "o" * 1000000, "e" * 64000), str(got)[-100:])
got = a.ask("run", "echo", "x" * 200_000)
check("C13", "an argument the kernel refuses (PROC-1)", got == io("Argument list too long"), got)
got = a.ask("run", "printf", "%s,", "a b", "*", "$HOME", "'")
check("C14", "no shell reads the arguments (PROC-1)", got == ran(0, "a b,*,$HOME,',"), got)

# --- spawn ---
child = a.ask("spawn", "cat")
got = [a.ask("wait", child["id"], 50), a.ask("write", child["stdin"], "hello"), a.ask("read", child["stdout"])]
check("C15", "spawn: still running, answers", got == [None, None, "hello\n"], got)
b.tell("wait", child["id"], 0)
until(lambda: a.stat("children_live") == 1)
time.sleep(0.2)
got = a.ask("wait", child["id"], 0)
check("C16", "one waiter only (PROC-5)", got == io("child already has a waiter"), got)
a.ask("close", child["stdin"])
got = [b.hear(), a.ask("wait", child["id"], 0), a.ask("signal", child["id"], 15), a.ask("read", child["stdout"])]
unknown = io("process id is not a live child")
check("C17", "its end is told once (PROC-3, PROC-5)", got == [0, unknown, unknown, ""], got)
for h in ("stdout", "stderr"):
    a.ask("close", child[h])
child = a.ask("spawn", "sh", "-c", "exit 5")
reaped = until(lambda: gone(child["id"]))
got = [a.stat("children_live"), a.ask("signal", child["id"], 15), a.ask("wait", child["id"], 0)]
check("C18", "reaped without a wait, the code is kept (PROC-3, PROC-6)", reaped and got == [0, None, 5], (reaped, got))
for h in ("stdin", "stdout", "stderr"):
    a.ask("close", child[h])
child = a.ask("spawn", "sleep", "30")
got = [a.ask("signal", child["id"], 0), a.ask("signal", child["id"], 999), a.ask("signal", child["id"], 15), a.ask("wait", child["id"], 5000)]
check("C19", "signals", got == [None, io("Invalid argument"), None, -1], got)
got = [a.ask("wait", 1, 10), a.ask("signal", os.getpid(), 0)]
check("C20", "other processes are no children (PROC-5)", got == [unknown, unknown], got)
for h in ("stdin", "stdout", "stderr"):
    a.ask("close", child[h])
before = a.stat("descriptors_open"), a.descriptors()
for _ in range(300):
    child = a.ask("spawn", "true")
    a.ask("wait", child["id"], 0)
    for h in ("stdin", "stdout", "stderr"):
        a.ask("close", child[h])
after = a.stat("descriptors_open"), a.descriptors()
check("C21", "300 children of spawn: flat (PROC-7)", before == after, (before, after))

# --- owners ---
b = a.session()
kids = [b.ask("spawn", "sleep", "30")["id"] for _ in range(3)]
waiter = a.session()
waiter.tell("wait", kids[0], 0)
time.sleep(0.2)
b.tell("die")
went = until(lambda: all(gone(k) for k in kids), 2)
check("C22", "children die with their actor (DEATH-1, PROC-6)", went and a.stat("children_live") == 0, kids)
check("C23", "who waits for one is told", waiter.hear() == -1)
b = a.session()
live = a.stat("actors_live")
kid = b.ask("spawn", "sleep", "30")["id"]
b.tell("leave")
time.sleep(0.3)
kept = a.stat("actors_live"), a.ask("wait", kid, 50)
a.ask("signal", kid, 9)
went = until(lambda: a.stat("actors_live") == live - 1, 2)
check("C24", "an actor that owns a live child is kept, and reclaimed at its end (RCL-1)", kept == (live, None) and went, (live, kept, a.stat("actors_live")))
check("C25", "the code outlives its actor", a.ask("wait", kid, 0) == -1)

# --- terminals ---
child = a.ask("pty", PY, "-c", "import os, sys; print(os.isatty(0), os.isatty(2), *os.get_terminal_size(), os.getsid(0) == os.getpid())")
text = ""
while part := a.ask("read", child["stdout"]):
    text += part
check("C26", "a terminal: 80 by 24, its session, end of stream", text == "True True 80 24 True\r\n" and child["stdin"] == child["stdout"] and child["stderr"] == -1, (text, child))
check("C27", "and its code", a.ask("wait", child["id"], 5000) == 0)
a.ask("close", child["stdout"])

# --- the end ---
b = a.session()
b.tell("run", "sleep", "30")
mine = a.ask("spawn", "sleep", "30")["id"]
until(lambda: a.stat("children_live") == 2)
kids = subprocess.run(["pgrep", "-P", str(a.p.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
status, took, err = a.stop()
check("C28", "SIGTERM with children running", status == 0 and took < 5 and len(kids) == 2 and all(gone(k) for k in kids), (status, took, kids))
check("C29", "nothing is left behind", "objects_live=0" in err and "internal error" not in err, err[-300:])
a = Service()
b = a.session()
b.tell("run", "sleep", "30")
a.ask("spawn", "sleep", "30")
until(lambda: a.stat("children_live") == 2)
kids = subprocess.run(["pgrep", "-P", str(a.p.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
a.p.kill()
a.p.wait()
check("C30", "SIGKILL of the program ends its children (PROC-6)", len(kids) == 2 and until(lambda: all(dead(k) for k in kids), 1.5), kids)

# --- what children inherit ---
spare = os.open("/dev/null", os.O_RDONLY)
a = Service(popen={"pass_fds": [spare], "preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)})
listing = "import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)))"
got = [a.ask("run", PY, "-c", listing)["out"]]
child = a.ask("spawn", PY, "-c", listing)
got.append(a.ask("read", child["stdout"]).strip() + "\n")
child = a.ask("pty", PY, "-c", listing)
got.append(a.ask("read", child["stdout"]).strip() + "\n")
check("C31", "children see descriptors 0, 1 and 2 only", got == ["[0, 1, 2]\n"] * 3, got)
got = dict(line.split(":") for line in a.ask("run", "grep", "-E", "SigBlk|SigIgn", "/proc/self/status")["out"].splitlines())
ignored = int(got["SigIgn"], 16)
check("C32", "SIGPIPE and SIGCHLD have their defaults in children (ENT-3)", int(got["SigBlk"], 16) == 0 and not any(
    ignored >> (s - 1) & 1 for s in (signal.SIGPIPE, signal.SIGCHLD)), got)
check("C33", "codes are right where SIGCHLD was ignored", a.ask("run", "sh", "-c", "exit 9") == ran(9))
a.stop()
a = Service(popen={"stdin": subprocess.PIPE, "cwd": None}, MARK="from above")
a.p.stdin.write(b"input\n")
a.p.stdin.flush()
got = a.ask("run", "sh", "-c", "read x; echo $x $MARK; pwd")
check("C34", "environment, directory and stdin (PROC-2)", got == ran(0, f"input from above\n{os.getcwd()}\n"), got)
a.stop()
a = Service(WO_PROC_MAX="2", WO_POOL="1")
kids = [a.ask("spawn", "sleep", "30")["id"] for _ in range(2)]
got = [a.ask("run", "true"), a.ask("spawn", "true")]
a.ask("signal", kids[0], 9)
a.ask("wait", kids[0], 0)
got.append(a.ask("run", "true"))
check("C35", "WO_PROC_MAX (PROC-5)", got == [io("process ceiling: 2 live children")] * 2 + [ran(0)], got)
a.stop()
a = Service(WO_PROC_MAX="0")
got = a.ask("run", "true")
notice = [l for l in a.stop()[2].splitlines() if "WO_PROC_MAX=0" in l]
check("C47", "WO_PROC_MAX=0 (ENV-1)", got == ran(0) and len(notice) == 1, (got, notice))

# --- unix sockets (6.4) ---
with tempfile.TemporaryDirectory() as d:
    a = Service()
    path = f"{d}/s"
    l = a.ask("listen_unix", path)
    c = a.ask("connect_unix", path)
    s = a.ask("accept", l)
    got = [a.ask("peer", c), a.ask("peer", s), a.ask("write", c, "over"), a.ask("read", s)]
    check("C36", "unix sockets talk; their peer is `unix`", got == ["unix", "unix", None, "over\n"], got)
    got = a.ask("listen_unix", path)
    check("C37", "a socket in use is left alone", got == io("Address already in use"), got)
    a.stop(signal.SIGKILL)
    a = Service()
    left = stat.S_ISSOCK(os.stat(path).st_mode)
    l = a.ask("listen_unix", path)
    check("C38", "a stale socket is replaced", left and isinstance(l, int) and isinstance(a.ask("connect_unix", path), int), l)
    with open(f"{d}/file", "w") as f:
        f.write("kept")
    os.symlink(f"{d}/nowhere", f"{d}/link")
    got = [a.ask("listen_unix", f"{d}/file"), a.ask("listen_unix", f"{d}/link"), a.ask("connect_unix", f"{d}/file"), a.ask("connect_unix", f"{d}/none"),
           a.ask("listen_unix", "")]
    check("C39", "nothing else is removed", got == [io("Address already in use")] * 2 + [io("Connection refused"), io("No such file or directory")] + [io("No such file or directory")]
          and open(f"{d}/file").read() == "kept" and os.path.islink(f"{d}/link"), got)
    got = [a.ask("listen_unix", f"{d}/" + "x" * (106 - len(d))), a.ask("listen_unix", f"{d}/" + "x" * (107 - len(d))), a.ask("connect_unix", "x" * 5000)]
    check("C40", "the longest path", isinstance(got[0], int) and got[1:] == [
        {"trap": 6, "msg": "unix socket path too long"}, {"trap": 6, "msg": "text too long for a path"}], got)

    # Descriptors to and from another program.
    def accept_both(path):
        out = socket.socket(socket.AF_UNIX)
        out.connect(path)
        return out
    other = accept_both(path)
    # The connection of C38 comes first.
    a.ask("accept", l)
    conn = a.ask("accept", l)
    ours, theirs = socket.socketpair()
    socket.send_fds(other, [b"!"], [theirs.fileno()])
    theirs.close()
    got_fd = a.ask("recv_fd", conn)
    a.ask("write", got_fd, "through")
    ours.settimeout(5)
    got = [ours.recv(100), a.ask("send_fd", conn, got_fd)]
    other.settimeout(5)
    data, fds, flags, _ = socket.recv_fds(other, 10, 4)
    a.ask("close", got_fd)
    for fd in fds:
        os.write(fd, b"back\n")
        os.close(fd)
    got += [ours.recv(100), ours.recv(100), len(data), len(fds)]
    check("C41", "descriptors come and go", got == [b"through\n", True, b"back\n", b"", 1, 1], got)
    other.sendall(b"x")
    got = [a.ask("recv_fd", conn)]
    many = os.pipe()
    before = a.descriptors()
    socket.send_fds(other, [b"!"], [many[0], many[1], many[0]])
    first = a.ask("recv_fd", conn)
    got += [isinstance(first, int), a.descriptors() - before]
    other.close()
    got += [a.ask("recv_fd", conn), a.ask("send_fd", conn, first), a.ask("send_fd", conn, 999_999_999), a.ask("close", first)]
    check("C42", "plain bytes and the end are nil; one of several; a vanished peer", got == [None, True, 1, None, io("Broken pipe"), io("Bad file descriptor"), None], got)
    t = socket.create_server(("127.0.0.1", 0))
    got = [a.ask("send_fd", 0, conn), a.ask("recv_fd", 0)]
    check("C43", "other kinds of descriptors", got == [io("send_fd needs a unix socket"), io("recv_fd needs a unix socket")], got)
    # A full queue of passed descriptors: the sender parks, and goes on when the peer reads.
    pair = accept_both(path)
    conn = a.ask("accept", l)
    b = a.session()
    sent = []

    def pump():
        for _ in range(600):
            sent.append(b.ask("send_fd", conn, 0))
    thread = threading.Thread(target=pump)
    thread.start()
    time.sleep(0.5)
    stuck, alive = len(sent), a.ask("ping")
    pair.settimeout(10)
    while len(sent) < 600 or thread.is_alive():
        try:
            _, fds, _, _ = socket.recv_fds(pair, 1, 1)
        except TimeoutError:
            break
        for fd in fds:
            os.close(fd)
        if len(sent) == 600:
            break
    thread.join(10)
    check("C44", "a sender waits for room, the others do not", stuck < 600 and alive == "pong" and sent == [True] * 600, (stuck, alive, len(sent), sent[-1:]))
    # A listener whose queue is full.
    os.unlink(path)
    full = socket.socket(socket.AF_UNIX)
    full.bind(path)
    full.listen(0)
    first = [socket.socket(socket.AF_UNIX) for _ in range(1)]
    first[0].connect(path)
    b = a.session()
    b.tell("connect_unix", path)
    time.sleep(0.3)
    alive = a.ask("ping")
    full.accept()
    got = b.hear()
    check("C45", "a connection waits for a full queue", alive == "pong" and isinstance(got, int), (alive, got))
    b.tell("recv_fd", got)
    time.sleep(0.2)
    status, took, err = a.stop()
    check("C46", "a stop ends who waits for a descriptor (STOP-3)", status == 0 and took < 3 and "objects_live=0" in err, (status, took, err[-300:]))

print(f"proc: {checks} checks, {failures} failures")
sys.exit(failures > 0)
PY
