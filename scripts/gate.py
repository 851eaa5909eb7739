"""What the gates that are written in Python share: checks, and servers under test with their clients.
Found with `sys.path.insert(0, "scripts")`, from the repository's root, where gate.sh leads."""
import atexit, os, re, resource, signal, socket, subprocess, sys, tempfile, threading, time

WOC = os.environ["WOC"]
SKIP = os.environ.get("GATE_SKIP", "").split()
checks = failures = 0
skips = set()
lock = threading.Lock()


def skipped(leg):
    """Whether GATE_SKIP names the leg: then it is told, and the gate's status is 1 unless GATE_SKIP_OK=1."""
    if leg not in SKIP:
        return False
    with lock:
        if leg not in skips:
            print(f"skip {leg}", flush=True)
        skips.add(leg)
    return True


def check(leg, name, good, why=""):
    global checks, failures
    if skipped(leg):
        return
    with lock:
        checks += 1
        failures += not good
        print(f"ok   {leg} {name}" if good else f"FAIL {leg} {name} -- {why!r}"[:1000], flush=True)


def same(leg, name, want, got):
    check(leg, name, want == got, f"wanted {want!r}, got {got!r}")


def finish(gate):
    """The last line of a gate, and its exit status."""
    print(f"{gate}: {checks} checks, {failures} failures")
    sys.exit(failures > 0 or bool(skips) and os.environ.get("GATE_SKIP_OK") != "1")


class Server:
    """A program that prints `listening on ADDRESS:PORT`, with counters on; always ended by its own pid. `path` names an
    executable, or what `woc run` takes."""

    def __init__(self, leg, path, *args, env={}, files=(4096, 4096)):
        self.err = tempfile.NamedTemporaryFile(mode="w+", suffix=".err", delete=False)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, files)
        built = os.path.isfile(path) and os.access(path, os.X_OK)
        command = [path, *args] if built else [WOC, "run", path, *(["--", *args] if args else [])]
        self.p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.err,
                                  env=dict(os.environ, WO_STATS="1", **env), preexec_fn=limit)
        atexit.register(lambda: self.p.poll() is None and self.p.kill())
        line = self.p.stdout.readline().decode()
        if not line.startswith("listening on "):
            check(leg, "start", False, self.log())
            finish(path)
        self.port = int(line.rsplit(":", 1)[1])

    def log(self):
        with open(self.err.name, errors="backslashreplace") as f:
            return f.read()

    def connect(self, timeout=15):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def raw(self, data, timeout=15):
        s = self.connect(timeout)
        with s:
            try:
                s.sendall(data)
            except OSError:
                pass
            return drain(s)

    def ask(self, target, *fields, method="GET", body=b""):
        """Status, header pairs, body of one request on a fresh connection."""
        head = f"{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + "".join(f + "\r\n" for f in fields)
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        return parse(self.raw(head.encode("latin-1") + b"\r\n" + body))

    def proc(self, name):
        with open(f"/proc/{self.p.pid}/{name}") as f:
            return f.read()

    def fds(self):
        return len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def settled_fds(self):
        """Descriptors of the server without connections."""
        least = self.fds()
        for _ in range(10):
            time.sleep(0.03)
            least = min(least, self.fds())
        return least

    def rss(self):
        return int(re.search(r"VmRSS:\s+(\d+)", self.proc("status"))[1])

    def cpu(self):
        f = self.proc("stat").rsplit(")", 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, leg, name, bound=3, busy=False):
        """Ends the server and checks that it gave everything back; `busy`: connections may be open. Gives its counters."""
        t = time.time()
        self.p.send_signal(signal.SIGTERM)
        try:
            status = self.p.wait(bound + 5)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = self.p.wait()
        took = time.time() - t
        stats = "".join(l for l in self.log().splitlines() if l.startswith("wostats"))
        whole = "objects_live=0" in stats and (busy or "descriptors_open=0" in stats)
        check(leg, name, status == 0 and took < bound and whole, (status, took, stats or self.log()[-500:]))
        if failures:
            print(f"server log: {self.err.name}")
        else:
            os.unlink(self.err.name)
        return {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)", stats)}


def drain(s):
    """What comes until the end of the stream."""
    out = b""
    try:
        while True:
            d = s.recv(65536)
            if not d:
                return out
            out += d
    except TimeoutError:
        return out + b"<no end>"
    except OSError:
        return out


def answer(s):
    """One answer with a length, off a connection that stays."""
    out = b""
    while b"\r\n\r\n" not in out:
        d = s.recv(1)
        if not d:
            return out
        out += d
    length = int(re.search(rb"(?i)\r\ncontent-length: (\d+)", out)[1])
    while length:
        d = s.recv(length)
        if not d:
            return out + b"<cut>"
        out += d
        length -= len(d)
    return out


def parse(raw):
    """Status, header pairs, body of an answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/1.1 ") else 0
    return status, [tuple(l.split(": ", 1)) for l in lines[1:] if ": " in l], body.decode("latin-1")


def of(headers, name):
    return ",".join(v for k, v in headers if k.lower() == name)


class Lag:
    """How late this machine wakes a thread that sleeps, at worst, while the block runs: what bounds on time are widened by."""

    def __enter__(self):
        self.worst, self.on = 0.0, True
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while self.on:
            t = time.monotonic()
            time.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - t - 0.01)

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


def at_once(jobs):
    """What each of the jobs gives, in threads that a barrier lets go together; raises what one of them raised."""
    barrier, out, raised = threading.Barrier(len(jobs)), [None] * len(jobs), []

    def one(i):
        barrier.wait()
        try:
            out[i] = jobs[i]()
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if raised:
        raise raised[0]
    return out


def within(seconds, holds):
    """Whether it holds before so many seconds have passed."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
