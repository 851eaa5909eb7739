"""Scenarios of 11.13. The programs take how many as their argument; the short form takes fewer."""

from harness import need, scenario


@scenario("many_sleepers_overlap_and_are_counted", heavy=True)
def sleepers(c):
    n = 100_000 if c.full else 10_000
    e = c.run("sleepers", n, 10_000 if c.full else 2000, bound=300).clean(["calls 10000", f"woke {n}"])
    need(int(e.stats["fibers_peak"]) >= n, "they were not parked at once", e.stats)


@scenario("many_idle_actors_are_called_once_each", heavy=True)
def idle(c):
    n = 1_000_000 if c.full else 50_000
    c.run("idle", n, bound=300).clean([str(n)])
