"""Scenarios of 11.1 to 11.8: slices, starvation, calls, mailboxes, monitors, timers."""

import glob, os, socket, statistics, time

from harness import ROOT, need, scenario


def client(port, host="127.0.0.1", timeout=20):
    s = socket.create_connection((host, port), timeout=timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


@scenario("end_1_a_short_spin_ends_before_its_slice")
def spin_short(c):
    c.run("spin-short").clean(["spun"])


def starve(c, how):
    p = c.start("starvation", how, 1, 1000)
    began = time.monotonic()
    port, _ = p.line("port ")
    s = client(int(port))
    s.sendall(b"hello")
    need(s.recv(100) == b"hello", "no echo")
    _, ticked = p.line("tick ")
    echoed = time.monotonic()
    need(max(ticked, echoed) - began < 0.2 + 1.0, "tick and echo came late", ticked - began, echoed - began)
    _, returned = p.line("returns")
    e = p.end(20).clean()
    need(e.after_line < 1.0 + 1.0, "the process outlived main", e.after_line)


@scenario("sch_6_sch_7_a_loop_starves_nobody", attempts=3)
def starve_loop(c):
    starve(c, "loop")


@scenario("sch_6_sch_7_recursion_starves_nobody", attempts=3)
def starve_recursion(c):
    starve(c, "recursion")


@scenario("sch_6_a_loop_delays_timers_by_10_ms_and_answers_by_20_at_most", shards=[1], heavy=True, attempts=3)
def delays(c):
    """Medians, so that another process's turn on the machine does not count."""
    p = c.start("starvation", "loop", 40, 100)
    port, _ = p.line("port ")
    s = client(int(port))
    trips, late = [], []
    for _ in range(40):
        began = time.monotonic()
        s.sendall(b"ping")
        need(s.recv(100) == b"ping", "no echo")
        trips.append((time.monotonic() - began) * 1000)
        time.sleep(0.02)
    for _ in range(40):
        late.append(int(p.line("tick ")[0]) / 1000)
    p.line("returns")
    p.end(20).clean()
    need(min(late) >= 0, "a timer fired early", min(late))
    need(statistics.median(late) <= 10, "timers were late (ms)", sorted(late))
    need(statistics.median(trips) <= 20, "answers were late (ms)", sorted(trips))


@scenario("call_4_queued_callers_get_the_death")
def queued_callers(c):
    e = c.run("queued-callers")
    e.clean(["13 actor died during call"] * 3 + ["late 13 actor died during call", "end"], reports=True)
    need(e.errors[0].startswith("fiber trap 1 at receive:"), "first line of the report", e.errors)
    need(sum(x.startswith("fiber trap") for x in e.errors) == 1, "one report", e.errors)


def late_replies(e, calls, callers):
    e.clean()
    _, nils, _, own, _, right, _, last = e.lines[-1].split()
    need(len(e.lines) == callers and int(nils) + int(own) == calls, "replies", e.lines)
    need(int(nils) > calls / 2 and int(right) == calls and int(last) == callers, "counts", e.lines)


@scenario("call_8_late_replies_reach_no_later_call", least=True)
def late_reply(c):
    late_replies(c.run("late-reply", 1, 200, 30, bound=90), 200, 1)


@scenario("call_8_a_thousand_late_replies_of_case_a01", heavy=True, least=True)
def late_reply_a01(c):
    """As many calls with a limit of 10 ms to actors of 100 ms, shared by 20 callers so that it takes seconds."""
    late_replies(c.run("late-reply", 20, 50, 100, bound=90), 1000, 20)


@scenario("call_6_a_call_cycle_is_reported_once", least=True)
def call_cycle(c):
    p = c.start("cycle")
    p.line("ready")
    began = time.monotonic()
    while not p.errors and time.monotonic() - began < 10:
        time.sleep(0.1)
    time.sleep(1.0)
    p.signal()
    e = p.end(20)
    found = [x for x in e.errors if "call cycle" in x]
    need(e.status == 0 and len(found) == 1 and found[0].startswith("cycle: ") and "Left" in found[0] and "Right" in found[0], "report", e.status, e.errors)
    need([x for x in e.errors if x not in found and not x.startswith("wostats ")] == [], "stderr", e.errors)
    need(e.stats.get("objects_live") == "0", "objects were left", e.stats)
    e.within(3)


@scenario("trap_2_texts_outlive_their_trap")
def text_from_catch(c):
    c.run("text-from-catch").clean(["No such file or directory"] * 2 + ["trap number 99"])


@scenario("trc_3_stacks_without_end")
def stack(c):
    e = c.run("stack")
    e.clean(["actor died during call", "stack overflow"], reports=True)
    need(e.errors[0].startswith("fiber trap 3 at "), "report", e.errors[:3])
    frames = [x for x in e.errors if x.startswith("  at ")]
    need(10 <= len(frames) <= 41, f"{len(frames)} frames", e.errors)


@scenario("mb_1_the_cap_counts_waiting_messages")
def mailbox_cap(c):
    for env, accepted in [({}, 1025), ({"WO_MAILBOX": 8}, 9), ({"WO_MAILBOX": 1}, 2)]:
        e = c.run("mailbox-cap", **env)
        e.clean(["stopped by 13: actor mailbox full", f"accepted {accepted}"]).within(1, "line")


@scenario("mb_3_a_busy_target_is_waited_for")
def busy_target(c):
    for before in [0, 1, 2, 3]:
        e = c.run("busy-target", before, WO_MAILBOX=8)
        e.clean()
        need(sorted(e.lines) == ["handled 400", "read 400"], "lines", e.lines)


@scenario("mb_3_a_stuck_member_is_dropped")
def stuck_member(c):
    p = c.start("stuck-member", WO_MAILBOX=8)
    port, _ = p.line("port ")
    stuck, reads = client(int(port)), None
    time.sleep(0.1)
    reads = client(int(port))
    got = bytearray()
    while True:
        part = reads.recv(65536)
        if not part:
            break
        got += part
    e = p.end(30)
    e.clean(["port " + port, "dropped at a trap 13: actor mailbox full", "dropped 1, the other got 500"])
    need(got.split() == [b"%d" % i for i in range(500)], "the other's lines", bytes(got[-100:]))
    stuck.close()


def flood(c, senders, each, bound):
    e = c.run("flood", senders, each, bound=bound).clean([f"got {senders * each}"])
    need(e.peak_kib < 256 * 1024, "resident KiB", e.peak_kib)


@scenario("mb_2_a_flood_loses_nothing", heavy=True)
def flood_of_64(c):
    flood(c, 64, 100_000 if c.full else 3_000, 600)


@scenario("mb_2_a_flood_of_a_million_each_of_case_a02", heavy=True, once=True)
def flood_a02(c):
    flood(c, 64, 1_000_000 if c.full else 5_000, 3600)


@scenario("mb_2_the_cap_is_exact", least=True)
def exact_cap(c):
    c.run("exact-cap", WO_MAILBOX=2).clean(["good 3 full 12 other 0"])


@scenario("mb_2_the_cap_is_exact_for_senders_on_every_shard")
def cap_senders(c):
    for cap in [1, 8, 1000]:
        c.run("cap-senders", WO_MAILBOX=cap).clean([f"good {cap} full {2000 - cap}"])


@scenario("mb_3_room_that_a_sender_no_longer_wants_goes_to_the_next", attempts=4)
def unused_room(c):
    c.run("unused-room", WO_MAILBOX=1).clean(["early 13 false"] * 3 + ["late 0 true"])


@scenario("send_6_a_mix_of_ways_to_send_keeps_its_order")
def send_order(c):
    c.run("send-order", 3000 if c.full else 400).clean(["end"])


@scenario("mon_2_mon_3_notices_before_and_after_death")
def monitors_twice(c):
    e = c.run("monitors", "twice").clean(["first", "again", "end"], reports=True)
    need(sum(x.startswith("fiber trap") for x in e.errors) == 1, "one report", e.errors)


@scenario("mon_4_each_registration_fires")
def monitors_five(c):
    c.run("monitors", "five").clean(["notice"] * 5 + ["end"], reports=True)


@scenario("mon_5_reclaiming_and_the_end_fire_nothing")
def monitors_reclaimed(c):
    e = c.run("monitors", "reclaimed").clean(["end"])
    need(int(e.stats["actors_reclaimed"]) >= 1, "nothing was reclaimed", e.stats)


@scenario("tmr_3_timers_fire_in_order_of_due_time", attempts=2)
def timers_order(c):
    c.run("timers", "order").clean(["0", "40", "80", "end"])


@scenario("tmr_1_stale_generations_are_seen_as_such")
def timers_generations(c):
    c.run("timers", "generations").clean(["stale 1", "fired 2", "end"])


@scenario("mb_5_a_full_target_drops_a_timer_message")
def timers_full(c):
    e = c.run("timers", "full", WO_MAILBOX=1)
    notes = [x for x in e.errors if not x.startswith("wostats ")]
    need(e.status == 0 and e.lines == ["end"], "end", e.status, e.lines)
    need(len(notes) == 1 and notes[0].startswith("timers: ") and all(w in notes[0] for w in ["timer message", "mailbox full", "Parked"]), "notice", notes)
    need(e.stats["objects_live"] == "0", "objects were left", e.stats)


@scenario("tmr_4_a_pending_timer_keeps_nothing_alive")
def timers_hour(c):
    c.run("timers", "hour").clean(["end"]).within(1, "line")


@scenario("time_0_ticks_are_comparable_between_processes")
def timers_ticks(c):
    first, second = (c.run("timers", "ticks").clean().lines[0].split() for _ in range(2))
    need(first[0] == second[0] and len(first[0]) > 8 and int(first[1]) < int(second[1]), "ticks", first, second)


def corpus(c, case):
    """A case of the corpus with actors, which runs there on one shard. On several only the set of lines is the same."""

    def text(name):
        path = os.path.join(case, name)
        return open(path).read().splitlines() if os.path.exists(path) else []

    env = dict(line.split("=", 1) for line in text("fixture.env"))
    e = c.run("fixture", folder=case, **dict({"WO_EPHEMERAL": "1"}, **env))
    e.clean(reports=True)
    need(sorted(e.lines) == sorted(text("fixture.out")), "lines", e.lines, e.errors[:5])


for _file in sorted(glob.glob(os.path.join(ROOT, "tests/corpus/run/*/fixture.wo"))):
    with open(_file) as _f:
        _case, _acts = os.path.dirname(_file), "spawn " in _f.read()
    if _acts:
        scenario("sch_8_corpus_" + os.path.basename(_case).replace("-", "_"), least=True)(lambda c, case=_case: corpus(c, case))
