"""What the scenario checks and the stress runner share: programs built once, started as processes of their own under
chosen settings, watched line by line, and always ended by their own process id."""

import os, re, resource, shutil, signal, subprocess, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Bounds of the specification hold on an idle machine; this much is added, because tests share theirs.
SLACK = 3.0


class Fault(Exception):
    """A check that did not hold."""


def need(good, *why):
    if not good:
        raise Fault(" | ".join(repr(w) if not isinstance(w, str) else w for w in why)[:3000])


TABLE_PROBE = """@table(name: "p")
class P { n: Int }
fn main() {
  insert P { n: 1 }
  print_int(count(from x in P select x))
}
"""
# Settings and a program that prints 1 where the part of the name is there.
PROBES = {
    "tables": (dict(WO_EPHEMERAL=1), TABLE_PROBE),
    "store": (dict(WO_DATA="data"), TABLE_PROBE),
    "unix": (dict(), """use net
fn main() {
  let l = net.listen_unix("probe")
  print_int(len(net.peer(net.connect_unix("probe"))) - 3)
}
"""),
}


class Builder:
    """Compiles each program once for each choice of optimisation and flags."""

    def __init__(self, woc):
        self.woc = os.path.abspath(woc)
        self.dir = tempfile.mkdtemp(prefix="wo-scenarios-")
        self.lock = threading.Lock()
        self.built = {}

    def executable(self, source, optimize=True, flags=()):
        key = (source, optimize, tuple(flags))
        with self.lock:
            entry = self.built.setdefault(key, {"lock": threading.Lock()})
        with entry["lock"]:
            if not entry.keys() & {"path", "fault"}:
                try:
                    entry["path"] = self.build(*key)
                except Fault as fault:
                    entry["fault"] = str(fault)
        need("path" in entry, entry.get("fault", ""))
        return entry["path"]

    def build(self, source, optimize, flags):
        name = os.path.splitext(os.path.basename(source))[0]
        place = tempfile.mkdtemp(prefix="-".join([name, "opt" if optimize else "plain", *flags, ""]), dir=self.dir)
        os.makedirs(os.path.join(place, "src"))
        shutil.copy(os.path.join(ROOT, source), os.path.join(place, "src", "main.wo"))
        out = os.path.join(place, name)
        argv = [self.woc, "build", os.path.join(place, "src"), "-o", out]
        for flag in flags:
            argv += ["-D", flag]
        done = subprocess.run(argv, env=environment(WO_OPT="1" if optimize else "0"), capture_output=True, text=True)
        need(done.returncode == 0 and os.path.exists(out), f"{source} does not compile", done.stdout + done.stderr)
        return out

    def offers(self, what):
        """Whether this compiler and its runtime have a part that may still be missing."""
        with self.lock:
            entry = self.built.setdefault(("probe", what), {"lock": threading.Lock()})
        with entry["lock"]:
            if "answer" not in entry:
                place = os.path.join(self.dir, f"probe-{what}")
                os.makedirs(place)
                with open(os.path.join(place, "main.wo"), "w") as f:
                    f.write(PROBES[what][1])
                done = subprocess.run([self.woc, "run", place], env=environment(**PROBES[what][0]), capture_output=True, cwd=place)
                entry["answer"] = (done.returncode, done.stdout) == (0, b"1\n")
            return entry["answer"]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WO_")}
    env.update({k: str(v) for k, v in more.items() if v is not None})
    return env


class Running:
    """A program at work. Its lines are kept with the moment at which they came."""

    def __init__(self, argv, env, cwd=None, stdout=None, stderr=None, nofile=None):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.changed = threading.Condition()
        self.lines, self.errors, self.next = [], [], 0
        self.asked = self.ended_at = None
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout or subprocess.PIPE,
            stderr=stderr or subprocess.PIPE, preexec_fn=limit if nofile else None)
        self.pid = self.process.pid
        self.readers = []
        if stderr is None:
            self.readers.append(self.follow(self.process.stderr, self.errors))
        if stdout is None:
            self.readers.append(self.follow(self.process.stdout, self.lines))
        self.waiter = threading.Thread(target=self.wait, daemon=True)
        self.waiter.start()

    def follow(self, pipe, into):
        def body():
            for line in pipe:
                with self.changed:
                    into.append((time.monotonic(), line.decode("utf-8", "replace").rstrip("\n")))
                    self.changed.notify_all()
            pipe.close()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def until(self, prefix, bound=20):
        """As `line`, for the first line that begins with `prefix`."""
        while True:
            text, at = self.line(bound=bound)
            if text.startswith(prefix):
                return text[len(prefix):], at

    def wait(self):
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self.changed:
            self.ended_at = time.monotonic()
            _, status, self.usage = os.wait4(self.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.changed.notify_all()

    def deliver(self, number):
        """A signal, but not to another process that got the id of one that has ended."""
        with self.changed:
            if self.ended_at is None:
                os.kill(self.pid, number)

    def line(self, prefix="", bound=20):
        """The rest of the next line, which must begin with `prefix`, and the moment it came."""
        until = time.monotonic() + bound
        with self.changed:
            while self.next >= len(self.lines):
                over = not any(reader.is_alive() for reader in self.readers)
                need(not over and time.monotonic() < until, f"no line {prefix!r}", self.lines[-5:], self.errors[-20:])
                self.changed.wait(0.1)
            at, text = self.lines[self.next]
            self.next += 1
        need(text.startswith(prefix), f"line {text!r}, wanted {prefix!r}", self.errors)
        return text[len(prefix):], at

    def signal(self, number=signal.SIGTERM):
        self.asked = time.monotonic()
        self.deliver(number)

    def kill(self):
        self.deliver(signal.SIGKILL)
        self.waiter.join(10)

    def end(self, bound=30):
        """Waits for the end, at most `bound` seconds."""
        self.waiter.join(bound)
        if self.ended_at is None:
            state = describe(self.pid)
            self.kill()
            raise Fault(f"no end within {bound} s | {state} | {[t for _, t in self.lines][-5:]!r} | {[t for _, t in self.errors]!r}")
        for reader in self.readers:
            reader.join(10)
        return Ended(self)

    def resident_kib(self):
        with open(f"/proc/{self.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def describe(pid):
    """What the threads of a process that does not end are doing."""
    try:
        states = []
        for task in sorted(os.listdir(f"/proc/{pid}/task")):
            with open(f"/proc/{pid}/task/{task}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
            states.append(f"{fields[0]} cpu={fields[11]}")
        return "threads " + ", ".join(states)
    except OSError:
        return "no threads"


class Ended:
    """How a program ended."""

    def __init__(self, run):
        self.status = run.process.returncode
        self.lines = [text for _, text in run.lines]
        self.times = [at for at, _ in run.lines]
        self.errors = [text for _, text in run.errors]
        self.stats = dict(f.split("=", 1) for line in self.errors if line.startswith("wostats ") for f in line.split()[1:])
        self.peak_kib = run.usage.ru_maxrss
        self.after_signal = run.ended_at - run.asked if run.asked else None
        self.after_line = run.ended_at - self.times[-1] if self.times else None

    def clean(self, lines=None, status=0, reports=False):
        """Status, standard output, standard error but for the counters, and nothing left on the heap. `reports` lets
        reports of actors that died pass."""
        seen = (self.status, self.lines[-20:], self.errors[-20:])
        need(self.status == status, f"status {self.status}, wanted {status}", *seen)
        if lines is not None:
            need(self.lines == list(lines), f"lines {self.lines[:40]!r}, wanted {list(lines)!r}", self.errors[:10])
        other = [e for e in self.errors if not e.startswith("wostats ") and ": WO_EPHEMERAL=1: " not in e]
        if reports:
            other = [e for e in other if not re.match(r"fiber trap |  at |  in actor |  \.\.\. ", e)]
        need(not other, "stderr", other[:20])
        need(self.stats.get("objects_live") == "0", "objects were left", self.stats)
        return self

    def within(self, seconds, what="signal"):
        took = self.after_signal if what == "signal" else self.after_line
        need(took is not None and took <= seconds + SLACK, f"ended {took:.3f} s after the {what}, bound {seconds} s")
        return self


class Case:
    """One scenario under one choice of settings."""

    def __init__(self, builder, rng, shards=None, optimize=True, io=None, full=False, extra=None):
        self.builder, self.rng, self.shards, self.optimize, self.io, self.full = builder, rng, shards, optimize, io, full
        self.extra, self.running = extra or {}, []
        self.dir = tempfile.mkdtemp(prefix="wo-case-")

    def start(self, name, *args, flags=(), stdout=None, stderr=None, nofile=None, folder="tests/scenarios", **env):
        program = self.builder.executable(os.path.join(folder, name + ".wo"), self.optimize, flags)
        settings = dict(WO_STATS="1", WO_SHARDS=self.shards, WO_IO=self.io, **self.extra)
        settings.update(env)
        run = Running([program, *map(str, args)], environment(**settings), self.dir, stdout, stderr, nofile)
        self.running.append(run)
        return run

    def run(self, name, *args, bound=60, **more):
        return self.start(name, *args, **more).end(bound)

    def close(self):
        for run in self.running:
            run.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


SCENARIOS = {}


def scenario(name, heavy=False, attempts=1, shards=None, once=False, least=False, needs=None):
    """Registers a check. `heavy`: run alone. `attempts`: of which one must hold, for what is measured in time; a real
    fault fails all. `shards`: the only counts it is for. `once`: one run is enough. `least`: one
    run is enough for the short form. `needs`: a part of `PROBES`."""

    def add(check):
        assert name not in SCENARIOS, name
        SCENARIOS[name] = dict(check=check, heavy=heavy, attempts=attempts, shards=shards, once=once, least=least, needs=needs)
        return check

    return add
