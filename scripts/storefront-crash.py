#!/usr/bin/env python3
"""The storefront, killed under full load again and again, on one store.

usage: scripts/storefront-crash.py [--runs N] [--seed N]   (WOC names the compiler; default: target/release/woc)

A run: 64 clients order with idempotency keys and without, repeat keys that were answered, create, delete and list
products; SIGKILL comes at a random moment; `woc db check` and `woc db dump` read the store; the program starts again and
every key of the run is sent once more. Each order has a quantity of its own, so rows tell which request made them. Of
a request that was answered 201 the row is there, of one that was not there may be one. With a key,

  - a key whose answer was received never runs again: its rows do not change any more, whatever is sent and killed after
    it, and it is answered with `idempotency-replayed` and the same status, content type and body;
  - a key that was sent n times without an answer before the answered one has 1 to 1 + n rows: a process that is killed
    within the handler leaves no key row (porch 5.6, Crash), so the next request runs it again. So a key that was
    answered the first time has exactly one;
  - a key that was sent n times and never answered has 0 to n rows.

Every fourth run, and the first, has a second part with WA_LIMIT and a store of its own: within a window, over several
kills, no more requests are let through than the limit, and no fewer than the limit less those that saw no answer. The
seed is printed. Prints `ok` and `FAIL` lines, then `storefront-crash: N checks, M failures`.
"""
import argparse, collections, json, os, random, re, shutil, signal, sys, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)
sys.path.insert(0, "scripts")
os.environ.setdefault("WOC", os.path.join(ROOT, "target", "release", "woc"))
from gate import answer, check, finish, of, parse, same
from web_app.client import JSON, Shop, request
from web_app.workspace import woc

CLIENTS = 64
LIMIT = 400


class Killed(Exception):
    """The server went away before the answer was whole."""


class Client:
    """One keep-alive connection to the server of the moment."""

    def __init__(self, shop):
        self.shop, self.s = shop, None

    def ask(self, method, target, *fields, body=b""):
        try:
            self.s = self.s or self.shop.connect(30)
            self.s.sendall(request(method, target, *fields, body=body))
            raw = answer(self.s)
        except OSError:
            raw = b""
        status, headers, got = parse(raw)
        if not status or len(got) != int(of(headers, "content-length") or -1):
            self.close()
            raise Killed
        return status, headers, got

    def close(self):
        if self.s:
            self.s.close()
        self.s = None


class Order:
    """What clients know of one key. Only one client at a time has it."""

    def __init__(self, qty):
        self.qty, self.key, self.lost, self.answer, self.rows = qty, f"key-{qty}", 0, None, None

    def send(self, client):
        body = json.dumps({"product": "mug", "qty": self.qty}).encode()
        try:
            status, headers, got = client.ask("POST", "/orders", JSON, f'Idempotency-Key: "{self.key}"', body=body)
        except Killed:
            # A repeated key that was answered before is none that may run.
            self.lost += self.answer is None
            raise
        seen = (status, of(headers, "content-type"), got)
        replayed = of(headers, "idempotency-replayed") == "true"
        if self.answer is None:
            self.answer = seen
            return None if status == 201 else (self.key, seen)
        return None if replayed and seen == self.answer else (self.key, self.answer, seen, replayed)


class Ledger:
    """What clients have done and seen in all runs."""

    def __init__(self):
        self.lock, self.next = threading.Lock(), 0
        self.orders, self.plain, self.plain_lost, self.wrong = [], set(), set(), []
        # of the runs before this one: keys without an answer, each for one client, and keys with one
        self.open, self.answered = collections.deque(), []
        # name -> what may be there: True, False, or both while it is not known whether a request was executed
        self.products, self.count = {}, 0

    def number(self):
        with self.lock:
            self.next += 1
            return self.next

    def work(self, rng, shop, stop):
        """One client until the server is gone."""
        client, mine = Client(shop), []
        try:
            while not stop.is_set():
                self.step(rng, client, mine)
                with self.lock:
                    self.count += 1
        except Killed:
            pass
        finally:
            client.close()
            with self.lock:
                self.orders += mine

    def step(self, rng, client, mine):
        what = rng.random()
        if what < 0.02 and self.answered:
            self.note(rng.choice(self.answered).send(client))
        elif what < 0.1 and (old := self.pop_open()):
            self.note(old.send(client))
        elif what < 0.5 or not mine:
            mine.append(Order(self.number()))
            self.note(mine[-1].send(client))
        elif what < 0.6:
            self.note(rng.choice(mine).send(client))
        elif what < 0.7:
            self.order_without_key(client)
        elif what < 0.8:
            self.product(rng, client)
        else:
            status, _, got = client.ask("GET", "/products/mug")
            self.note((status, got) != (200, '{"name":"mug","price":9.99,"stock":5}') and (status, got))

    def note(self, fault):
        if fault:
            self.wrong.append(fault)

    def pop_open(self):
        try:
            return self.open.pop()
        except IndexError:
            return None

    def order_without_key(self, client):
        qty = self.number()
        self.plain_lost.add(qty)
        status, _, got = client.ask("POST", "/orders", JSON, body=json.dumps({"product": "mug", "qty": qty}).encode())
        self.plain_lost.discard(qty)
        self.plain.add(qty)
        self.note(status != 201 and (status, got))

    def product(self, rng, client):
        """Creates one, and deletes it again at times."""
        name = f"p{self.number()}"
        self.products[name] = {True, False}
        status, _, got = client.ask("POST", "/products", JSON, body=json.dumps({"name": name, "price": 1.5, "stock": 3}).encode())
        self.products[name] = {True}
        self.note(status != 201 and (name, status, got))
        if rng.random() < 0.5:
            self.products[name] = {True, False}
            status, _, got = client.ask("DELETE", f"/products/{name}")
            self.products[name] = {False}
            self.note(status != 200 and (name, status, got))

    def compare(self, data, run):
        """The store of a program that does not run, with what clients saw."""
        status, out = woc("db", "check", data)
        check("K2", f"run {run}: woc db check", status == 0, out)
        rows, faults = dumped("Order", data), []
        count = collections.Counter(row["qty"] for row in rows)
        for o in self.orders:
            n = count.pop(o.qty, 0)
            good = 0 <= n <= o.lost if o.answer is None else 1 <= n <= 1 + o.lost
            if o.answer and o.rows is None:
                o.rows = n
            if not good or o.answer and n != o.rows:
                faults.append((o.key, f"{n} rows", f"{o.rows} before", f"{o.lost} lost", o.answer))
        for qty in self.plain:
            if count.pop(qty, 0) != 1:
                faults.append((qty, "answered 201 without a key, not one row"))
        for qty in self.plain_lost:
            if count.pop(qty, 0) > 1:
                faults.append((qty, "sent once without a key, several rows"))
        check("K3", f"run {run}: order rows", not faults and not count, (len(faults), faults[:3], count.most_common(3)))
        there = {row["name"]: (row["price"], row["stock"]) for row in dumped("Product", data)}
        mug = there.pop("mug", None)
        odd = [(name, maybe) for name, maybe in self.products.items() if (name in there) not in maybe]
        odd += [(name, row) for name, row in there.items() if row != (1.5, 3) or name not in self.products]
        check("K4", f"run {run}: product rows", mug == (9.99, 5) and not odd, (mug, odd[:3]))
        self.products = {name: {name in there} for name in self.products}
        # Deleted names are not used again: it is enough to have seen once that they are gone.
        self.products = {name: maybe for name, maybe in self.products.items() if True in maybe}


def dumped(table, data):
    status, out = woc("db", "dump", "--table", table, data)
    if status:
        raise SystemExit(f"woc db dump: {out}")
    return [json.loads(line)["row"] for line in out.splitlines()]


def share(items, shop, use):
    """Calls `use(client, item)` for all items, from as many clients as the load has; gives what was wrong."""
    wrong, shares = [], [items[i::CLIENTS] for i in range(CLIENTS)]

    def one(part):
        client = Client(shop)
        for item in part:
            fault = use(client, item)
            if fault:
                wrong.append(fault)
        client.close()

    threads = [threading.Thread(target=one, args=(part,)) for part in shares if part]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return wrong


def kill(shop):
    shop.p.send_signal(signal.SIGKILL)
    shop.p.wait()
    os.unlink(shop.err.name)


def load(shop, rng, work, answers, seconds):
    """All clients at work until the server is killed, `seconds` after `answers()`, the number of answers, has grown by as
    many as there are clients."""
    stop, before = threading.Event(), answers()
    threads = [threading.Thread(target=work, args=(random.Random(rng.random()), shop, stop)) for _ in range(CLIENTS)]
    [t.start() for t in threads]
    end = time.monotonic() + 60
    while answers() < before + CLIENTS and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(seconds)
    kill(shop)
    stop.set()
    [t.join() for t in threads]


def load_run(program, data, ledger, rng, run):
    shop = Shop(program, data, WA_IDLE_MS="60000")
    if run == 1:
        status = Client(shop).ask("POST", "/products", JSON, body=b'{"name":"mug","price":9.99,"stock":5}')[0]
        same("K1", "the product", 201, status)
    before, at = len(ledger.orders), ledger.count
    ledger.answered = [o for o in ledger.orders if o.answer]
    ledger.open = collections.deque(o for o in ledger.orders if o.answer is None)
    load(shop, rng, ledger.work, lambda: ledger.count, rng.uniform(0, 1.2))
    check("K1", f"run {run}: load", ledger.count >= at + CLIENTS, ledger.count - at)
    check("K1", f"run {run}: answers under load", not ledger.wrong, ledger.wrong[:3])
    ledger.compare(data, run)
    shop = Shop(program, data, WA_IDLE_MS="60000")
    # A third of the keys without an answer stays open, to be sent under the next run's load.
    again = [o for o in ledger.orders[before:] if o.answer or rng.random() < 0.67]
    wrong = share(again, shop, lambda client, o: o.send(client))
    check("K5", f"run {run}: {len(again)} keys again", not wrong, (len(wrong), wrong[:3]))
    shop.stop("K6", f"run {run}: stops", busy=True)
    ledger.compare(data, run)


def last_run(program, data, ledger):
    """All keys of all runs once more."""
    shop = Shop(program, data, WA_IDLE_MS="60000")
    wrong = share(ledger.orders, shop, lambda client, o: o.send(client))
    check("K7", f"all {len(ledger.orders)} keys again", not wrong, (len(wrong), wrong[:3]))
    shop.stop("K7", "stops", busy=True)
    ledger.compare(data, "last")


class Window:
    """Clients of a storefront with a limit."""

    def __init__(self):
        self.lock, self.passed, self.refused, self.lost, self.odd = threading.Lock(), 0, 0, 0, []

    def work(self, rng, shop, stop):
        client = Client(shop)
        try:
            while not stop.is_set():
                status = client.ask("GET", "/products")[0]
                with self.lock:
                    self.passed += status == 200
                    self.refused += status == 429
                    if status not in (200, 429):
                        self.odd.append(status)
        except Killed:
            with self.lock:
                self.lost += 1
        finally:
            client.close()


def limit_run(program, data, rng, run):
    w, began, kills = Window(), time.monotonic(), 0
    while w.refused < CLIENTS or kills < 3:
        load(Shop(program, data, WA_LIMIT=str(LIMIT), WA_IDLE_MS="60000"), rng, w.work,
             lambda: w.passed + w.refused, rng.uniform(0, 0.1))
        kills += 1
    shop = Shop(program, data, WA_LIMIT=str(LIMIT))
    late = [Client(shop).ask("GET", "/products")[0] for _ in range(5)]
    took = time.monotonic() - began
    shop.stop("K9", f"run {run}: the limited one stops", busy=True)
    seen = (w.passed, w.refused, w.lost, kills, w.odd[:3], late, took)
    # The window is 60 s long and began with the first request. What takes longer says nothing.
    check("K8", f"run {run}: within the window", took < 58, seen)
    check("K8", f"run {run}: the limit holds over {kills} kills", LIMIT - w.lost <= w.passed <= LIMIT and not w.odd, seen)
    same("K8", f"run {run}: a spent window stays spent", [429] * 5, late)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    rng, ledger = random.Random(args.seed), Ledger()
    place = tempfile.mkdtemp(prefix="storefront-crash-")
    try:
        program, data = os.path.join(place, "web-app"), os.path.join(place, "data")
        same("K1", "build", (0, ""), woc("build", "docs/examples/web-app", "-o", program))
        for run in range(1, args.runs + 1):
            load_run(program, data, ledger, rng, run)
            if run % 4 == 1:
                limit_run(program, os.path.join(place, f"limit-{run}"), rng, run)
        last_run(program, data, ledger)
        lost = sum(o.lost for o in ledger.orders)
        twice = sum((o.rows or 0) > 1 for o in ledger.orders)
        print(f"{ledger.count} steps, {len(ledger.orders)} keys, {lost} without an answer, {twice} run twice", flush=True)
    finally:
        shutil.rmtree(place)
    finish("storefront-crash")


main()
