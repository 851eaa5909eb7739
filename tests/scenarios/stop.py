"""Scenarios of 11.10 and 11.11: stopping and draining."""

import os, re, signal, socket, time

from actors import client
from harness import need, scenario


def chain(c, *args):
    for _ in range(20 if c.full else 4):
        p = c.start("chain", *args)
        port, _ = p.line("port ")
        clients = [client(int(port)) for _ in range(9)]
        p.line("ready")
        time.sleep(c.rng.uniform(0, 0.05))
        p.signal()
        wanted = b"hello\nclosing\n" if args else b"closing\n"
        for s in clients:
            got = bytearray()
            while part := s.recv(100):
                got += part
            need(got == wanted, "a client's lines", bytes(got))
            s.close()
        p.end(20).clean(["port " + port, "ready"]).within(3)


@scenario("drn_3_a_chain_reaches_every_client")
def chain_warm(c):
    chain(c, "warm")


@scenario("mod_3_drn_3_idle_shards_lose_nothing")
def chain_idle(c):
    chain(c)


def refusing():
    """A port where a connection is never answered: its queue is full."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    fillers = []
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(full.getsockname())
        fillers.append(s)
    time.sleep(0.05)
    return full, fillers


# What each wait gives; None: the stop unwinds it.
WAITS = {
    "accept_dl": "nil",
    "accept_dl-pending": "true false",
    "read_dl": "nil",
    "read_dl-pending": "3 bytes nil",
    "write": None,
    "write_dl": "false",
    "write-read-late": "written",
    "write_dl-read-late": "true",
    "sleep": "slept",
    "accept": None,
    "read": None,
    "send_fd": None,
    "recv_fd": None,
    "connect": None,
    "call": "2",
    "call_dl": "2",
    "call-sleep": "1",
    "call-unwound": "13",
    "fs": "late text",
}


def stop_wait(c, wait, where):
    hold, at, received = None, [], bytearray()
    if wait == "connect":
        hold = refusing()
        at = [hold[0].getsockname()[1]]
    elif wait.endswith("-read-late"):
        hold = socket.socket()
        hold.bind(("127.0.0.1", 0))
        hold.listen()
        at = [hold.getsockname()[1]]
    elif wait in ("fs", "send_fd", "recv_fd"):
        at = [os.path.join(c.dir, "at")]
        if wait == "fs":
            os.mkfifo(at[0])
    tears = wait in ("write", "write_dl")
    p = c.start("stop-wait", wait, where, *at, flags=["UNIX"] if wait.endswith("_fd") else [], WO_DRAIN_MS=600 if tears else None)
    p.line("ready")
    if wait.endswith("-read-late"):
        peer = hold.accept()[0]
    time.sleep(0.6)
    p.signal()
    if wait == "fs":
        time.sleep(0.2)
        with open(at[0], "w") as f:
            f.write("late text")
    if wait.endswith("-read-late"):
        time.sleep(0.2)
        while part := peer.recv(1 << 20):
            received += part
    e = p.end(20).within(0.6 if tears else 2)
    gives = WAITS[wait]
    if where == "main":
        e.clean(["ready"] + (["after " + gives] if gives else []), status=5 if gives else 0)
    elif tears:
        # The bound of the write and that of the drain end together: what follows may or may not be reached.
        e.clean(status=5)
        may = ["ready", "13 actor died during call", "note 1", "note 2"] + (["after false", "reply 7"] if gives else [])
        need(set(e.lines) <= set(may), "lines", e.lines)
    else:
        end = ["after " + gives, "reply 7"] if gives else ["13 actor died during call"]
        e.clean(status=5)
        need(sorted(e.lines) == sorted(["ready", *end, "note 1", "note 2"]), "lines", e.lines)
        need(e.lines.index("note 1") < e.lines.index("note 2"), "order", e.lines)
        need(not gives or e.lines.index("after " + gives) < e.lines.index("note 1"), "order", e.lines)
    if tears:
        need(e.after_signal >= 0.5, "the write was given up early", e.after_signal)
    if wait.endswith("-read-late"):
        need(len(received) == 8_388_608, "the write was torn", len(received))


for _wait in WAITS:
    for _where in ("main", "actor"):
        _name = f"stop_3_{_wait.replace('-', '_')}_in_{_where}"
        scenario(_name, needs="unix" if _wait.endswith("_fd") else None)(lambda c, wait=_wait, where=_where: stop_wait(c, wait, where))


@scenario("drn_1_the_drain_is_bounded")
def drain_bound(c):
    p = c.start("drain-bound", WO_DRAIN_MS=300)
    p.line("ready")
    time.sleep(0.1)
    p.signal()
    e = p.end(20).clean(["ready", "returns"])
    # The signal came before main returned, and its last line is read some time after it was written.
    need(e.after_signal >= 0.3 and e.after_line <= 1.3 + 1.0, "time from the return of main to the end", e.after_signal, e.after_line)


@scenario("sch_11_end_2_long_work_is_given_up_and_released")
def long_work(c):
    """Each decode or encoding is unwound between two pieces, and waits for nothing until then."""
    for _ in range(20 if c.full else 3):
        c.run("long-work", c.rng.randrange(1, 60)).clean(["ready"])
        p = c.start("long-work", "stop", WO_DRAIN_MS=100)
        p.line("ready")
        time.sleep(c.rng.uniform(0, 0.1))
        p.signal()
        p.end(20).clean(["ready"]).within(2)


@scenario("drn_3_senders_at_full_mailboxes_are_drained")
def drain_full(c):
    for i in range(100 if c.full else 10):
        p = c.start("drain-full", 30, 12, 0, WO_MAILBOX=1 + i % 3)
        p.line("ready")
        time.sleep(c.rng.uniform(0, 0.02))
        p.signal()
        p.end(20).clean(["ready", "got 360"]).within(3)


@scenario("drn_2_giving_way_is_work_that_a_drain_waits_for")
def drain_crowd(c):
    for cap in [1, 2, 3] if c.full else [2]:
        p = c.start("drain-full", 300, 4, 500, WO_MAILBOX=cap, WO_DRAIN_MS=20_000)
        p.line("ready")
        p.signal()
        p.end(40).clean(["ready", "got 1200"])


TICKS = [f"tick {i}" for i in range(8)]


@scenario("end_3_a_standard_error_that_nobody_reads_holds_up_only_print_err")
def unread(c):
    """The printers write for ever, as far as one can tell. Of the reports there are more than are kept."""
    unread, stderr = os.pipe()
    try:
        p = c.start("unread", 10**9, 20000, "end", stderr=stderr)
        e = p.end(20)
        need((e.status, e.lines) == (7, TICKS), "status and lines", e.status, e.lines)
        # Half a second for the sleep of main, and as long for its ticks to begin with.
        need(e.after_line <= 1.5 + 1.0, "time from the last tick to the end", e.after_line)
    finally:
        os.close(unread)
        os.close(stderr)


@scenario("wait_1_net_write_to_a_standard_output_that_nobody_reads_blocks_no_shard")
def unread_stdout(c):
    unread, stdout = os.pipe()
    try:
        e = c.run("unread", 0, 0, "stdout", stdout=stdout, bound=20)
        need((e.status, e.stats.get("objects_live")) == (7, "0"), "status and counters", e.status, e.errors)
    finally:
        os.close(unread)
        os.close(stdout)


@scenario("out_1_trc_2_a_late_reader_of_standard_error_gets_everything_or_its_number")
def late_reader(c):
    """More reports than are kept: the others are counted. Lines are in their printer's order, reports in one piece."""
    late, stderr = os.pipe()
    p = c.start("unread", 3000, 20000, "wait", stderr=stderr)
    os.close(stderr)
    with open(late) as pipe:
        time.sleep(0.4)
        errors = pipe.read().splitlines()
    e = p.end(20)
    need((e.status, sorted(e.lines)) == (7, sorted([*TICKS, "written"])), "status and lines", e.status, e.lines)
    for n in range(2):
        own = [x for x in errors if x.startswith(f"line {n} ")]
        need(own == [f"line {n} {i} 0123456789abcdefghijklmnopqrstuvwxyz" for i in range(3000)], "lines of a printer", len(own), own[:3], own[-3:])
    left_out = [re.fullmatch(r"unread: (\d+) reports left out: standard error was not read", x) for x in errors]
    left_out = sum(int(m[1]) for m in left_out if m)
    heads = [i for i, x in enumerate(errors) if x.startswith("fiber trap 8 at receive:")]
    need(len(heads) + left_out == 20000, "reports", len(heads), left_out, errors[:5])
    need(all(errors[i + 1].startswith("  at ") and errors[i + 2].startswith("  in actor Fails ") for i in heads), "a torn report")
    need(errors[-1].startswith("wostats ") and errors[-1].endswith(" objects_live=0"), "the counters come last", errors[-3:])


@scenario("stop_1_without_the_latch_a_signal_is_a_signal")
def no_latch(c):
    p = c.start("no-latch", "wait")
    p.line("ready")
    p.signal()
    need(p.end(10).status == -signal.SIGTERM, "status")
    c.run("no-latch", "return").clean(["ready"])


@scenario("wait_4_no_call_is_performed_twice")
def no_repeat(c):
    for keepers in [500, 50]:
        p = c.start("no-repeat", keepers)
        p.until("ready")
        time.sleep(c.rng.uniform(0, 0.3))
        p.signal()
        e = p.end(20).clean().within(2.5)
        rows = e.lines[:]
        rows.remove("ready")
        need(len(set(rows)) == len(rows) and all(re.fullmatch(r"row \d+", r) for r in rows), "rows", sorted(rows)[:20])


@scenario("wait_4_no_row_is_inserted_twice", needs="store")
def no_repeat_tables(c):
    for store in ["data-1", "data-2"]:
        data = os.path.join(c.dir, store)
        p = c.start("no-repeat", 500 if store == "data-1" else 50, flags=["TABLES"], WO_DATA=data)
        p.line("ready")
        time.sleep(c.rng.uniform(0, 0.3))
        p.signal()
        p.end(20).clean(["ready"]).within(2.5)
        e = c.run("no-repeat", "count", flags=["TABLES"], WO_DATA=data).clean()
        need(re.fullmatch(r"rows \d+ repeated 0", e.lines[0]), "rows", e.lines)


def parked_callers(c, flags=(), runs=5, **env):
    for i in range(runs):
        single = i % 10 == 3
        settings = dict(env, WO_DRAIN_MS=500, WO_REDUCTIONS=1 if single else None)
        if "WO_DATA" in env:
            settings["WO_DATA"] = os.path.join(c.dir, f"{env['WO_DATA']}-{i}")
        p = c.start("parked-callers", flags=flags, **settings)
        p.line("ready")
        time.sleep(c.rng.uniform(0.05, 0.5))
        p.signal()
        e = p.end(20)
        if "WO_EPHEMERAL" in env:
            e.errors = [x for x in e.errors if "WO_EPHEMERAL" not in x]
        e.clean(["ready"]).within(10 if single else 2)


@scenario("own_1_parked_callers_under_a_stop")
def parked_callers_stop(c):
    parked_callers(c, runs=300 if c.full else 5)


@scenario("own_1_parked_callers_with_volatile_tables_under_a_stop", needs="tables")
def parked_callers_tables(c):
    parked_callers(c, flags=["TABLES"], runs=150 if c.full else 4, WO_EPHEMERAL=1)


@scenario("own_1_parked_callers_with_a_store_under_a_stop", needs="store")
def parked_callers_store(c):
    parked_callers(c, flags=["TABLES"], runs=150 if c.full else 4, WO_DATA="data")


@scenario("end_2_parked_callers_without_a_stop")
def parked_callers_end(c):
    c.run("parked-callers", 2000 if c.full else 700).clean([])
