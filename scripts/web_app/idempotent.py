"""Legs W75 to W89 of the web-app gate: idempotent handlers, driven by scripts/probes/idem.wo. Executions and stored answers
are counted in rows. `run()` runs all of them, `run("W78")` one."""
import random, threading, time
from functools import partial

from gate import Lag, at_once, check, drain, of, parse, same, within
from web_app.probes import Probe, legs

MISMATCH = '{"error":"idempotency key reused with a different request"}'
SATURATED = '{"error":"idempotency store saturated"}'
UNAVAILABLE = '{"error":"idempotency store unavailable"}'
BUSY = '{"error":"a request with this idempotency key is in progress"}'


def idem(leg, actors=4, **more):
    return Probe(leg, "idem", actors, **more)


def request(target, key, *fields, method="POST", body="{}"):
    head = f"{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + "".join(f + "\r\n" for f in fields)
    if key is not None:
        head += f"Idempotency-Key: {key}\r\n"
    return (head + f"Content-Length: {len(body)}\r\n\r\n{body}").encode("latin-1")


def post(a, target, key, *fields, **more):
    return parse(a.raw(request(target, key, *fields, **more), 60))


def together(a, requests):
    """Answer and seconds of each of the requests, whose connections are open before all of them start at once."""
    def client(request, s):
        began = time.monotonic()
        with s:
            s.sendall(request)
            return *parse(drain(s)), time.monotonic() - began

    return at_once([partial(client, request, a.connect(60)) for request in requests])


def replayed(head):
    return of(head, "idempotency-replayed") == "true"


def w75(leg):
    a = idem(leg)
    first, second = (post(a, "/create?ms=0", "k1") for _ in range(2))
    same(leg, "status and body of a replay", (201, first[2]), (second[0], second[2]))
    same(leg, "content type", ["application/json"] * 2, [of(h, "content-type") for _, h, _ in (first, second)])
    same(leg, "only the replay says so", [False, True], [replayed(h) for _, h, _ in (first, second)])
    same(leg, "executions", 1, a.number("/execs"))
    same(leg, "a quoted key is the same", first[2], post(a, "/create?ms=0", '"k1"')[2])
    for body, kind in [("typed", "application/x-raw"), ("untyped", "")]:
        pair = [post(a, "/raw", body, body=body) for _ in range(2)]
        same(leg, f"any bytes, {body}", [(202, kind, "".join(map(chr, range(256))))] * 2, [(s, of(h, "content-type"), b) for s, h, b in pair])
        check(leg, f"replayed, {body}", replayed(pair[1][1]), pair[1])
    same(leg, "without a key each runs", 2, len({post(a, "/create?ms=0", None)[2] for _ in range(2)}))
    same(leg, "and so does a GET", 2, len({post(a, "/create?ms=0", "k1", method="GET")[2] for _ in range(2)}))
    a.stop(leg, "stop")


def w76(leg):
    a = idem(leg)
    first = post(a, "/create?ms=0", "k1")
    for name, target, more in [
        ("another body", "/create?ms=0", {"body": "[]"}), ("another method", "/create?ms=0", {"method": "PUT"}),
        ("another path", "/cookies?ms=0", {}), ("another query", "/create?ms=1", {}), ("no query", "/create", {}),
    ]:
        status, head, body = post(a, target, "k1", **more)
        same(leg, name, (422, MISMATCH, "application/json"), (status, body, of(head, "content-type")))
    same(leg, "executions", 1, a.number("/execs"))
    same(leg, "the first request is still answered", first[2], post(a, "/create?ms=0", "k1")[2])
    a.stop(leg, "stop")


def w77(leg):
    a = idem(leg)
    for name, key in [
        ("256 characters", "k" * 256), ("a control byte", "a\tb"), ("empty", ""), ("a blank", "a b"), ("no ASCII", "\xe9"),
        ("an empty string", '""'), ("an open string", '"abc'), ("something behind the string", '"abc"d'),
        ("an escape of what needs none", '"a\\bc"'), ("two lines", "a\r\nIdempotency-Key: b"),
    ]:
        same(leg, name, (400, '{"error":"invalid idempotency key"}'), post(a, "/create?ms=0", key)[::2])
    same(leg, "none where one is required", (400, '{"error":"idempotency key required"}'), post(a, "/required", None)[::2])
    same(leg, "executions", 0, a.number("/execs"))
    for key in ["k" * 255, '"a\\"b\\\\c"', "a|b%#c"]:
        same(leg, f"key {key[:9]}", 201, post(a, "/required", key)[0])
    same(leg, "executions of good keys", 3, a.number("/execs"))
    # Names of rows that are made otherwise, and of answers that are not kept, cannot be had by a key.
    same(leg, "no key is part of another", 3, len({post(a, "/create?ms=0", k)[2] for k in ["x#eph:1", "x%23eph:1", "x"]}))
    a.stop(leg, "stop")


def w78(leg):
    a = idem(leg, env={"WO_SHARDS": "4"})
    with Lag() as lag:
        pair = together(a, [request("/create", "two")] * 2)
    same(leg, "two at once", [201, 201], [s for s, *_ in pair])
    check(leg, "with one body", pair[0][2] == pair[1][2] and sorted(replayed(h) for _, h, *_ in pair) == [False, True], pair)
    check(leg, "in the time of one", max(t for *_, t in pair) < 0.9 + lag.worst, ([t for *_, t in pair], lag.worst))
    same(leg, "one execution", 1, a.number("/execs?key=two"))
    crowd = together(a, [request("/create?ms=300", "fifty")] * 50)
    same(leg, "fifty at once", {201}, {s for s, *_ in crowd})
    same(leg, "with one body", 1, len({b for _, _, b, _ in crowd}))
    same(leg, "one execution of fifty", 1, a.number("/execs?key=fifty"))
    same(leg, "one of them ran it", 49, sum(replayed(h) for _, h, *_ in crowd))
    for i in range(20):
        race = together(a, [request("/create?ms=0", f"race{i}")] * 8)
        good = len({b for _, _, b, _ in race}) == 1 and a.number(f"/execs?key=race{i}") == 1
        if not good:
            break
    check(leg, "twenty races of eight", good, (i, race))
    a.stop(leg, "stop")


def w79(leg):
    a = idem(leg)
    answers = [post(a, "/create?ms=0", "k1", f"Authorization: Bearer {who}") for who in ["ann", "bob", "ann", "a|k1", "a%7Ck1"]]
    bodies = [b for _, _, b in answers]
    same(leg, "a body for each principal", 4, len(set(bodies)))
    check(leg, "and a replay for the same", bodies[0] == bodies[2] and replayed(answers[2][1]), answers)
    same(leg, "executions", 4, a.number("/execs"))
    a.stop(leg, "stop")


def w80(leg):
    a = idem(leg)
    same(leg, "a failure is no answer to keep", [500, 200, 200], [post(a, "/flaky", "k1")[0] for _ in range(3)])
    same(leg, "executions", 2, a.number("/execs?key=k1"))
    pair = together(a, [request("/flaky2", "k2")] * 2)
    same(leg, "two at once", [200, 500], sorted(s for s, *_ in pair))
    same(leg, "executions of two", 2, a.number("/execs?key=k2"))
    a.stop(leg, "stop")


def w81(leg):
    a = idem(leg)
    post(a, "/create?ms=0", "k0")
    before = a.number("/keys")
    answers = [post(a, "/alwaysfail", "k1") for _ in range(3)]
    same(leg, "each its own", [(503, f'{{"error":"execution {i}"}}') for i in (1, 2, 3)], [(s, b) for s, _, b in answers])
    same(leg, "executions", 3, a.number("/execs?key=k1"))
    same(leg, "rows", before, a.number("/keys"))
    # A client that is gone before its answer leaves no row; what a killed program left is swept.
    idle = a.settled_fds()
    for i in range(20):
        s = a.connect()
        s.sendall(request("/flaky2", f"gone{i}"))
        s.close()
    # A connection is closed once its answer has been read from its row.
    within(30, lambda: a.number("/execs") >= 24 and a.fds() <= idle)
    same(leg, "rows after clients have gone", (24, before), (a.number("/execs"), a.number("/keys")))
    a.ask("/relics")
    same(leg, "rows without readers", before + 40, a.number("/keys"))
    for i in range(32 * 16):
        post(a, "/create?ms=0", f"new{i}")
    same(leg, "are swept", before + 32 * 16, a.number("/keys"))
    a.stop(leg, "stop")


def w82(leg):
    a = idem(leg, actors=1)
    status, head, body = post(a, "/trap", "k1")
    check(leg, "a trap", status == 500 and body.startswith('{"error":"internal error","request_id":"'), (status, body))
    request_id = body.split('"')[-2]
    check(leg, "is logged", f"porch: 500 POST /trap request={request_id} trap=8 at handle:" in a.log() and "asked for" in a.log(), a.log())
    check(leg, "and not told", "asked" not in body, body)
    same(leg, "the actor lives", 201, post(a, "/create?ms=0", "k2")[0])
    same(leg, "no row of it", 1, a.number("/keys"))
    a.stop(leg, "stop")


def w83(leg):
    a = idem(leg)
    pair = [post(a, "/cookies", "k1") for _ in range(2)]
    names = {k.lower() for _, h, _ in pair for k, _ in h}
    check(leg, "only the content type is kept", not names & {"set-cookie", "x-extra"}, names)
    same(leg, "content type", ["text/plain; charset=utf-8"] * 2, [of(h, "content-type") for _, h, _ in pair])
    same(leg, "body", ["execution 1"] * 2, [b for _, _, b in pair])
    a.stop(leg, "stop")


def w84(leg):
    a = idem(leg)
    first = post(a, "/create?ms=0", "k1")
    a.stop(leg, "stop")
    a = idem(leg, store=a.store)
    second = post(a, "/create?ms=0", "k1")
    check(leg, "after SIGTERM", second[::2] == first[::2] and replayed(second[1]), second)
    a.kill()
    a = idem(leg, store=a.store)
    second = post(a, "/create?ms=0", "k1")
    check(leg, "after SIGKILL", second[::2] == first[::2] and replayed(second[1]), second)
    same(leg, "executions", 1, a.number("/execs"))
    # A stop cuts the handler's sleep short, but neither its row nor its answer.
    running = []
    t = threading.Thread(target=lambda: running.append(post(a, "/create?ms=5000", "k2")))
    t.start()
    until = time.time() + 10
    while a.number("/execs") < 2 and time.time() < until:
        time.sleep(0.01)
    a.stop(leg, "stop with a handler that runs")
    t.join()
    a = idem(leg, store=a.store)
    again = post(a, "/create?ms=5000", "k2")
    check(leg, "its answer was given and kept", running[0][0] == 201 and again[2] == running[0][2] and replayed(again[1]), (running, again))
    a.stop(leg, "stop")


def w85(leg):
    rng = random.Random(85)
    a = idem(leg)
    for i in range(20):
        s = a.connect()
        delay = rng.uniform(0, 0.4)
        s.sendall(request("/create?ms=300", f"k{i}"))
        time.sleep(delay)
        a.kill()
        s.close()
        a = idem(leg, store=a.store)
        with Lag() as lag:
            (status, _, _, took), = together(a, [request("/create?ms=300", f"k{i}")])
        good = status == 201 and took < 1.5 + lag.worst
        check(leg, f"killed after {delay * 1000:.0f} ms: the retry", good, (status, took, lag.worst))
        check(leg, "executions", a.number(f"/execs?key=k{i}") in (1, 2), a.number(f"/execs?key=k{i}"))
        same(leg, "rows", 1, a.number(f"/keys?key=k{i}"))
    a.stop(leg, "stop")


def w86(leg):
    a = idem(leg)
    pair = [post(a, "/ttl2", "k1") for _ in range(2)]
    same(leg, "one execution", (1, [False, True]), (a.number("/execs"), [replayed(h) for _, h, _ in pair]))
    time.sleep(2.3)
    third = post(a, "/ttl2", "k1")
    check(leg, "then another", third[0] == 201 and not replayed(third[1]) and third[2] != pair[0][2], third)
    same(leg, "executions, rows", (2, 1), (a.number("/execs"), a.number("/keys")))
    a.stop(leg, "stop")


def w87(leg):
    a = idem(leg)
    pair = together(a, [request("/busy409", "k1")] * 2)
    same(leg, "409 at once", [201, 409], sorted(s for s, *_ in pair))
    (*_, ran), (_, head, body, took) = sorted(pair, key=lambda x: x[0])
    check(leg, "its answer", body == BUSY and of(head, "retry-after") == "1" and took < ran, (head, body, took, ran))
    same(leg, "free again", True, replayed(post(a, "/busy409", "k1")[1]))
    pair = together(a, [request("/wait200", "k2")] * 2)
    same(leg, "409 after a wait", [201, 409], sorted(s for s, *_ in pair))
    (*_, ran), (*_, took) = sorted(pair, key=lambda x: x[0])
    check(leg, "of 200 ms", 0.2 <= took < 0.4 + ran - 0.5, (took, ran))
    same(leg, "a wait that is long enough", 201, post(a, "/wait200", "k2")[0])
    pair = together(a, [request("/wait200?ms=50", "k3")] * 2)
    check(leg, "gets the answer", pair[0][2] == pair[1][2] and [s for s, *_ in pair] == [201, 201], pair)
    same(leg, "executions", 3, a.number("/execs"))
    crowd = together(a, [request("/wait200", "k4")] * 40)
    same(leg, "forty at once", (1, 39), tuple(sum(s == n for s, *_ in crowd) for n in (201, 409)))
    same(leg, "nobody is left in the gate", 201, post(a, "/wait200", "k4")[0])
    a.stop(leg, "stop")
    a = idem(leg, env={"WO_MAILBOX": "1", "WO_SHARDS": "4"})
    for i in range(5):
        crowd = together(a, [request("/busy409?ms=50", f"k{i}")] * 40)
        seen = {s for s, *_ in crowd}, post(a, "/busy409?ms=50", f"k{i}")[0], a.number(f"/execs?key=k{i}")
        good = seen[0] <= {201, 409, 503} and seen[1:] == (201, 1)
        if not good:
            break
    check(leg, "nor with gates that are full", good, (i, seen))
    a.stop(leg, "stop")


def w88(leg):
    a = idem(leg, actors=8)
    slot = a.number("/slot?key=k1")
    other = next(k for k in map(str, range(100)) if a.number(f"/slot?key={k}") != slot)
    slow = threading.Thread(target=lambda: post(a, "/create?ms=1500", "k1"))
    slow.start()
    within(10, lambda: a.number("/execs") == 1)
    with Lag() as lag:
        began = time.monotonic()
        status = post(a, "/create?ms=0", other)[0]
        took = time.monotonic() - began
    check(leg, "another slot does not wait", status == 201 and took < 0.5 + lag.worst and slow.is_alive(), (status, took))
    slow.join()
    a.stop(leg, "stop")


def w89(leg):
    a = idem(leg, actors=1, env={"WO_MAILBOX": "2"})
    answers = together(a, [request("/create?ms=3000", f"k{i}") for i in range(15)])
    same(leg, "three run, twelve are refused", [201] * 3 + [503] * 12, sorted(s for s, *_ in answers))
    refused = {(of(h, "retry-after"), b) for s, h, b, _ in answers if s == 503}
    same(leg, "the refusal", {("1", SATURATED)}, refused)
    same(leg, "executions", 3, a.number("/execs"))
    a.stop(leg, "stop")


def w89b(leg):
    """An answer that the store does not take: its handler has run and must not run again."""
    a = idem(leg, actors=1, env={"WO_DB_MB": "1"})
    status, head, body = post(a, "/large", "k1")
    same(leg, "no room for the answer", (503, "1", UNAVAILABLE), (status, of(head, "retry-after"), body))
    check(leg, "is logged", "porch: pool: idem: trap=4: " in a.log(), a.log()[-500:])
    same(leg, "the retry does not run it again", (500, 1), (post(a, "/large", "k1")[0], a.number("/execs?key=k1")))
    same(leg, "nor does another", (500, 1), (post(a, "/large", "k1")[0], a.number("/execs?key=k1")))
    same(leg, "other keys are served", 201, post(a, "/create?ms=0", "k2")[0])
    a.stop(leg, "stop")


LEGS = {f"W{n}": globals()[f"w{n}"] for n in range(75, 90)} | {"W89b": w89b}


def run(*only):
    legs(LEGS, only)
