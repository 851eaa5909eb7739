"""Legs W60 to W74 of the web-app gate: the limiter and the pool below it, driven by scripts/probes/limiter.wo and
keypool.wo. Effects are counted in rows. `run()` runs all of them, `run("W64")` one."""
import os, re, resource, subprocess, tempfile, threading, time

from gate import WOC, at_once, check, drain, of, parse, same, within
from web_app.probes import PORCH, Probe, build, legs

MINUTE = 60_000_000
REFUSED = '{"error":"rate limit exceeded"}'
SATURATED = '{"error":"rate limiter saturated"}'
UNAVAILABLE = '{"error":"rate limiter unavailable"}'


def limiter(leg, limit=5, window=MINUTE, actors=4, mode="trust", **more):
    return Probe(leg, "limiter", limit, window, actors, mode, **more)


def hit(a, ip=None, *fields, method="GET"):
    return a.ask("/l/hit", *([f"X-Forwarded-For: {ip}"] if ip else []), *fields, method=method)


def hits(a, n, ip=None, *fields):
    """The statuses of n requests, one after the other."""
    return [hit(a, ip, *fields)[0] for _ in range(n)]


def crowd(a, n, ip):
    """n clients that ask one request after the other until the server is gone: the statuses seen so far, and a function
    that waits for the clients to end. They are told to, as another server may get the port."""
    seen, over = [], threading.Event()

    def client():
        try:
            while not over.is_set():
                status, _, _ = hit(a, ip)
                if not status:
                    return
                seen.append(status)
        except OSError:
            pass

    threads = [threading.Thread(target=client) for _ in range(n)]
    for t in threads:
        t.start()

    def leave():
        over.set()
        for t in threads:
            t.join()

    return seen, leave


def burst(a, target, *fields):
    """Requests over connections that are open already: each is one write when the burst starts."""
    s = a.connect(60)
    head = f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + "".join(f + "\r\n" for f in fields) + "\r\n"

    def go():
        with s:
            s.sendall(head.encode())
            return parse(drain(s))

    return go


def remaining(answer):
    return int(of(answer[1], "x-ratelimit-remaining") or -1)


def w6b(leg):
    """What is traced may not go into messages; a pool is, as any number of middlewares hold one."""
    for path in [PORCH, *(os.path.dirname(os.path.dirname(build(p)[0])) for p in ["keypool", "limiter", "idem"])]:
        out = subprocess.run([WOC, "dump", "gc", path], capture_output=True, text=True)
        traced = {l.split()[0] for l in out.stdout.splitlines() if l.split()[1] == "gc"}
        check(leg, f"Pool alone is traced, {os.path.basename(path)}", out.returncode == 0 and traced == {"Pool"}, out.stdout + out.stderr)


def w60(leg):
    path, said = build("keypool")
    if not path:
        return check(leg, "the driver compiles", False, said)
    out = subprocess.run([path], capture_output=True, text=True, env=dict(os.environ, WO_EPHEMERAL="1"), timeout=60)
    n = [int(t) for t in out.stdout.split()]
    check(leg, "two counts of the pool", n[:2] == [1, 2] and abs(n[2] - 60_000) <= 5000, (out.stdout, out.stderr))


def w61(leg):
    path, said = build("limiter")
    check(leg, "a limiter as Mw, Aw and Hw compiles", path is not None and said == "", said)


def w62(leg):
    a = limiter(leg)
    began = int(time.time())
    answers = [hit(a, "6.6.6.6") for _ in range(6)]
    ended = time.time()
    same(leg, "five pass", [200] * 5 + [429], [s for s, _, _ in answers])
    status, head, body = answers[5]
    retry = int(of(head, "retry-after") or 0)
    check(leg, "the refusal", body == REFUSED and of(head, "content-type") == "application/json" and 1 <= retry <= 61, (head, body))
    same(leg, "remaining", [4, 3, 2, 1, 0, 0], [remaining(x) for x in answers])
    same(leg, "limit", {"5"}, {of(h, "x-ratelimit-limit") for _, h, _ in answers})
    resets = [int(of(h, "x-ratelimit-reset")) for _, h, _ in answers]
    check(leg, "reset", all(began <= r <= ended + 61 for r in resets), (began, resets))
    same(leg, "policy", {'"default";q=5;w=60'}, {of(h, "ratelimit-policy") for _, h, _ in answers})
    fields = [re.fullmatch(r'"default";r=(\d+);t=(\d+)', of(h, "ratelimit")) for _, h, _ in answers]
    check(leg, "ratelimit", all(fields) and [int(f[1]) for f in fields] == [4, 3, 2, 1, 0, 0], fields)
    left = [int(f[2]) for f in fields]
    check(leg, "t never rises", left == sorted(left, reverse=True) and left[-1] <= retry and 1 <= left[-1] and left[0] <= 60, (left, retry))
    check(leg, "retry-after does not point before reset", ended + retry >= resets[-1], (ended, retry, resets))
    names = [k for k, _ in head]
    same(leg, "each field once", len(names), len(set(names)))
    same(leg, "hits", 5, a.number("/hits"))
    s = a.connect()
    with s:
        s.sendall(b"POST /l/hit HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        out = drain(s)
    check(leg, "refused before the body", out.startswith(b"HTTP/1.1 429") and b"100 Continue" not in out, out)
    same(leg, "elsewhere no fields", "", of(a.ask("/plain")[1], "x-ratelimit-limit"))
    a.stop(leg, "stop")


def w63(leg):
    a = limiter(leg)
    same(leg, "the peer without its port", [200] * 5 + [429], hits(a, 6))
    same(leg, "an invalid address stands for the peer", 429, hit(a, "6.6.6")[0])
    for group in [["7.7.7.7"], ["2001:db8::1", "2001:DB8:0:0:ffff::2"], ["::ffff:8.8.8.8", "8.8.8.8"]]:
        got = [hit(a, group[i % len(group)])[0] for i in range(6)]
        same(leg, f"one allowance for {group}", [200] * 5 + [429], got)
    same(leg, "the next network has its own", 200, hit(a, "2001:db8:0:1::1")[0])
    same(leg, "the key of a network", 200, a.ask("/row?key=ip:2001:0db8:0000:0001/64")[0])
    same(leg, "a list counts from the left", 429, hit(a, "7.7.7.7, 1.2.3.4")[0])
    same(leg, "several lines are one list", 429, hit(a, "7.7.7.7", "X-Forwarded-For: 9.9.9.9")[0])
    a.stop(leg, "stop")
    a = limiter(leg, mode="direct")
    same(leg, "without trust a changing field changes nothing", [200] * 5 + [429], [hit(a, f"6.6.6.{i}")[0] for i in range(6)])
    for who in ["ann", "bob"]:
        same(leg, f"principal {who}", [200] * 5 + [429], hits(a, 6, None, f"Authorization: Bearer {who}"))
    a.stop(leg, "stop")


def w64(leg):
    a = limiter(leg, limit=1000, env={"WO_SHARDS": "4"})
    answers = at_once([burst(a, "/l/hit", "X-Forwarded-For: 6.6.6.6") for _ in range(30)])
    same(leg, "30 clients at once", [200] * 30, [s for s, _, _ in answers])
    same(leg, "each saw a count of its own", list(range(970, 1000)), sorted(remaining(x) for x in answers))
    same(leg, "the next one", 969, remaining(hit(a, "6.6.6.6")))
    crowd = at_once([lambda: hits(a, 20, "7.7.7.7") for _ in range(64)])
    statuses = sum(crowd, [])
    same(leg, "64 threads: passed and refused", (1000, 280), (statuses.count(200), statuses.count(429)))
    check(leg, "64 threads: the row", '"count":1280,' in a.text("/row?key=ip:7.7.7.7"), a.text("/row?key=ip:7.7.7.7"))
    same(leg, "nothing ran uncounted", 31 + 1000, a.number("/hits"))
    a.stop(leg, "stop")


def w65(leg):
    a = limiter(leg)
    hits(a, 6, "6.6.6.6")
    a.stop(leg, "stop")
    a = limiter(leg, store=a.store)
    same(leg, "limited after SIGTERM", 429, hit(a, "6.6.6.6")[0])
    a.kill()
    a = limiter(leg, store=a.store)
    same(leg, "limited after SIGKILL", 429, hit(a, "6.6.6.6")[0])
    check(leg, "no count was lost", '"count":8,' in a.text("/row?key=ip:6.6.6.6"), a.text("/row?key=ip:6.6.6.6"))
    # Killed between any two counts: an answer that was seen has its count in the row.
    for i in range(10):
        seen, leave = crowd(a, 4, f"9.9.9.{i}")
        within(60, lambda: len(seen) >= 3 + 7 * i)
        a.kill()
        leave()
        a = limiter(leg, store=a.store)
        stored = int(re.search(r'"count":(\d+)', a.text(f"/row?key=ip:9.9.9.{i}"))[1])
        check(leg, f"killed after {len(seen)} answers", len(seen) <= stored <= len(seen) + 4, (len(seen), stored))
    a.stop(leg, "stop")


def w66(leg):
    a = limiter(leg, window=2_000_000)
    hits(a, 6, "6.6.6.6")
    before = a.text("/row?key=ip:6.6.6.6")
    rows = a.number("/rows")
    time.sleep(2.3)
    status, head, _ = hit(a, "6.6.6.6")
    after = a.text("/row?key=ip:6.6.6.6")
    start = lambda row: int(re.search(r'"window":(\d+)', row)[1])
    same(leg, "a new window serves", (200, "4"), (status, of(head, "x-ratelimit-remaining")))
    check(leg, "a window later", a.number("/rows") == rows and start(after) - start(before) >= 2_000_000, (before, after))
    check(leg, "in a row of its own", before.split(",")[0] != after.split(",")[0], (before, after))
    a.stop(leg, "stop")


def w67(leg):
    a = limiter(leg, window=1_000_000, actors=1)
    # On a slow machine the first rows are gone before the last are there, so rows are not counted here.
    seen = [of(hit(a, f"6.6.6.{i}")[1], "x-ratelimit-remaining") for i in range(50)]
    same(leg, "a row a key", ["4"] * 50, seen)
    time.sleep(1.2)
    hits(a, 200, "7.7.7.7")
    check(leg, "rows of keys that nobody asks for go", a.number("/rows") <= 2, a.number("/rows"))
    a.stop(leg, "stop")
    # Rows of another boot, whose ends say nothing; those of two slots, and some that live.
    a = limiter(leg, actors=2)
    for i in range(50):
        a.ask(f"/foreign?key=ip:5.5.5.{i}&count=1&age_ms={61_000 if i % 5 else 0}")
    for i in range(1, 9):
        hits(a, 64, f"7.7.{i}.7")
    same(leg, "expired rows of an earlier boot go, others stay", 10 + 8, a.number("/rows"))
    a.stop(leg, "stop")
    # More keys than the rows that are deleted by the way have to go too: the table of keys that come once stays small.
    a = limiter(leg, window=200_000, env={"WO_EPHEMERAL": "1"})
    left = []
    for round in range(10):
        for i in range(256):
            hit(a, f"10.{round}.{i}.1")
        time.sleep(0.3)
        left.append(a.number("/rows"))
    check(leg, "keys that come once do not add up", left[-1] <= 640, left)
    a.stop(leg, "stop")


def w68(leg):
    clock = tempfile.NamedTemporaryFile(mode="w+", suffix=".clock")

    def step(offset):
        clock.seek(0)
        clock.truncate()
        clock.write(offset)
        clock.flush()

    step("+0s")
    preload = subprocess.run(["faketime", "-m", "-f", "+0s", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True)
    env = {"LD_PRELOAD": preload.stdout.strip(), "FAKETIME_TIMESTAMP_FILE": clock.name, "FAKETIME_NO_CACHE": "1",
           "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    date = lambda h: time.mktime(time.strptime(of(h, "date"), "%a, %d %b %Y %H:%M:%S GMT"))
    a = limiter(leg, env=env)
    hits(a, 6, "6.6.6.6")
    first = date(hit(a, "6.6.6.6")[1])
    for offset, least, most in [("+3600s", 3500, 3700), ("-7200s", -7300, -7100)]:
        step(offset)
        status, head, _ = hit(a, "6.6.6.6")
        check(leg, f"the wall clock stepped {offset}", least <= date(head) - first <= most, head)
        same(leg, f"limited after {offset}", 429, status)
        left = int(of(head, "ratelimit").split("t=")[1])
        check(leg, f"no longer than its window after {offset}", 1 <= left <= 60, head)
    step("+0s")
    a.stop(leg, "stop")
    for offset in ["+3600s", "-7200s"]:
        a = limiter(leg, window=2_000_000, env=env)
        spent = hits(a, 6, "6.6.6.6")
        step(offset)
        time.sleep(2.1)
        same(leg, f"a window of 2 s is over after 2 s, with {offset}", (429, 200), (spent[-1], hit(a, "6.6.6.6")[0]))
        step("+0s")
        a.stop(leg, "stop")
    clock.close()


def w69(leg):
    def foreign(age, window, more=""):
        a = limiter(leg, window=window)
        same(leg, "a row", 204, a.ask(f"/foreign?key=ip:6.6.6.6&count=5&age_ms={age}{more}")[0])
        a.stop(leg, "stop")
        return limiter(leg, window=window, store=a.store)

    a = foreign(0, MINUTE)
    status, head, _ = hit(a, "6.6.6.6")
    left = int((of(head, "ratelimit") or "t=99").split("t=")[1])
    row = a.text("/row?key=ip:6.6.6.6")
    check(leg, "a row of another boot counts on", status == 429 and 1 <= left <= 60 and '"count":6,' in row, (status, head, row))
    check(leg, "and is one of this boot now", "elsewhere" not in row, row)
    window, ends = (int(re.search(rf'"{f}":(\d+)', row)[1]) for f in ["window", "ends"])
    same(leg, "for one window", MINUTE, ends - window)
    a.stop(leg, "stop")
    a = limiter(leg, store=a.store)
    same(leg, "after another restart too", 429, hit(a, "6.6.6.6")[0])
    a.stop(leg, "stop")
    a = foreign(61_000, MINUTE)
    status, head, _ = hit(a, "6.6.6.6")
    same(leg, "one that is over is forgotten", (200, "4"), (status, of(head, "x-ratelimit-remaining")))
    a.stop(leg, "stop")
    a = foreign(0, MINUTE, "&past_us=61000000")
    same(leg, "ticks of another boot tell nothing", 429, hit(a, "6.6.6.6")[0])
    a.stop(leg, "stop")
    a = foreign(61_000, MINUTE, "&past_us=0")
    same(leg, "whatever they are", 200, hit(a, "6.6.6.6")[0])
    a.stop(leg, "stop")
    a = foreign(-3_600_000, 2_000_000)
    status = hit(a, "6.6.6.6")[0]
    time.sleep(2.3)
    same(leg, "one from the future for a window at most", (429, 200), (status, hit(a, "6.6.6.6")[0]))
    a.stop(leg, "stop")


def w70(leg):
    a = limiter(leg, limit=1000, actors=8, env={"WO_SHARDS": "4"})
    keys = [f"6.6.{i}.6" for i in range(64)]
    slots = [a.number(f"/slot?key=ip:{k}") for k in keys]
    check(leg, "slots are used", len(set(slots)) >= 6 and set(slots) <= set(range(8)), slots)
    jobs = [burst(a, "/l/hit", f"X-Forwarded-For: {k}") for k in keys for _ in range(10)]
    same(leg, "640 at once", 640, sum(s == 200 for s, _, _ in at_once(jobs)))
    rows = [a.text(f"/row?key=ip:{k}") for k in keys]
    check(leg, "every row is exact", all('"count":10,' in r for r in rows), rows)
    a.stop(leg, "stop")
    a = limiter(leg, limit=1000, actors=8, store=a.store)
    same(leg, "the same slots after a restart", slots, [a.number(f"/slot?key=ip:{k}") for k in keys])
    a.stop(leg, "stop")


def w71(leg):
    a = limiter(leg, actors=1, env={"WO_MAILBOX": "2"})
    full = threading.Semaphore(0)
    slow = []

    def background(i):
        s = a.connect(60)
        with s:
            s.sendall(f"POST /slow-key HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: k{i}\r\n\r\n".encode())
            out = parse(drain(s))
        slow.append(out[0])
        full.release()

    threads = [threading.Thread(target=background, args=(i,)) for i in range(15)]
    for t in threads:
        t.start()
    for _ in range(12):
        full.acquire(timeout=60)
    same(leg, "twelve have no room", [503] * 12, slow)
    answers = [hit(a, "6.6.6.6") for _ in range(5)]
    same(leg, "limited requests are refused", [(503, "1", SATURATED)] * 5, [(s, of(h, "retry-after"), b) for s, h, b in answers])
    same(leg, "none ran", 0, a.number("/hits"))
    for t in threads:
        t.join()
    same(leg, "three ran", [200] * 3, slow[12:])
    same(leg, "then it counts again", (200, "4"), (lambda x: (x[0], of(x[1], "x-ratelimit-remaining")))(hit(a, "6.6.6.6")))
    a.stop(leg, "stop")


def w72(leg):
    for limit, window in [(0, MINUTE), (5, 0), (5, 999), (-1, -1)]:
        p = subprocess.run([build("limiter")[0], "0", str(limit), str(window), "4", "trust"], capture_output=True, text=True,
                           env=dict(os.environ, WO_EPHEMERAL="1"), timeout=60)
        lines = [l for l in p.stderr.splitlines() if "rate limiter:" in l]
        good = p.returncode == 1 and "listening" not in p.stdout and len(lines) == 1
        good = good and all(re.search(rf"(?<![\d-]){n}(?!\d)", lines[0]) for n in (limit, window))
        check(leg, f"limit {limit}, window {window}", good, (p.returncode, p.stdout, p.stderr))


def w73(leg):
    a = limiter(leg, env={"WO_DB_MB": "1"})
    s = a.connect(30)

    def fill(size):
        """Rows with keys of so many bytes, over one connection, until the store has no room."""
        for i in range(100_000):
            key = f"{size}.{i}." + "x" * size
            s.sendall(f"GET /foreign?key={key}&count=1&age_ms=0 HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            out = b""
            while b"\r\n\r\n" not in out:
                out += s.recv(65536)
            if not out.startswith(b"HTTP/1.1 204"):
                return out

    full = fill(4000)
    check(leg, "long keys fill the store", full and full.startswith(b"HTTP/1.1 500"), full)
    s.close()
    s = a.connect(30)
    full = fill(8)
    check(leg, "short ones too", full and full.startswith(b"HTTP/1.1 500"), full)
    s.close()
    status, head, body = hit(a, "6.6.6.6")
    same(leg, "a request that cannot be counted", (503, "1", UNAVAILABLE), (status, of(head, "retry-after"), body))
    check(leg, "is logged", "porch: pool: ip: trap=4: " in a.log(), a.log()[-500:])
    same(leg, "and does not run", 0, a.number("/hits"))
    began = time.time()
    for _ in range(20):
        hit(a, "6.6.6.6")
    lines = a.log().count("porch: pool: ip: trap=4: ")
    check(leg, "one line a second", 1 <= lines <= 3 + time.time() - began, lines)
    same(leg, "the server lives", 200, a.ask("/plain")[0])
    a.stop(leg, "stop")


def w74(leg):
    """The disk takes no more writes while requests come: the program ends with 74, and nothing ran uncounted."""
    a = limiter(leg, 1_000_000)
    seen, leave = crowd(a, 8, "6.6.6.6")
    within(60, lambda: len(seen) >= 100)
    # The store's log is longer by now, that of the program is not.
    resource.prlimit(a.p.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    status = a.p.wait(60)
    leave()
    check(leg, "the program ends, and says why", status == 74 and a.store in a.log(), (status, a.log()[-500:]))
    a = limiter(leg, 1_000_000, store=a.store)
    counted = int(re.search(r'"count":(\d+)', a.text("/row?key=ip:6.6.6.6"))[1])
    ran = a.number("/hits")
    check(leg, "nothing is lost that was answered, and nothing ran uncounted",
          set(seen) == {200} and len(seen) <= ran <= counted <= len(seen) + 8, (len(seen), ran, counted, set(seen)))
    a.stop(leg, "stop")


LEGS = {"W6b": w6b} | {f"W{n}": globals()[f"w{n}"] for n in range(60, 75)}


def run(*only):
    legs(LEGS, only)
