"""T15: what the actors of histories.wo have told has an order that agrees with the times that they have told, with and
without a store, and with what a start finds after a kill. The search is that of the store's own tests
(runtime/store/tests/history/order.rs)."""

import os, time

from bench import BUSY, need

ACTORS = 4


def after(op, state):
    """The state after an operation, or None if it cannot have told what it has."""
    kind, row, n = op
    if kind == "b":
        return state if list(state) == n else None
    if kind == "r":
        return state if state[row] == n else None
    old = state[row]
    new = {"w": n, "a": old + n, "m": old * n}[kind]
    return (new, state[1]) if row == 0 else (state[0], new)


def has_an_order(actors, found=None):
    """`actors`: for each its operations, as begin, end or None, operation. `found`: the rows after a crash: those of a
    moment that comes after all writes that came back."""
    # How many operations came back, and how many up to the last write that did; those that did not are an actor's last.
    least = [sum(end is not None for _, end, _ in ops) for ops in actors]
    is_acknowledged = lambda end, op: end is not None and op[0] not in "rb"
    writes = [max((n + 1 for n, (_, *op) in enumerate(ops) if is_acknowledged(*op)), default=0) for ops in actors]
    tried, ahead = set(), [((0,) * len(actors), (0, 0), found is None)]
    while ahead:
        moment = ahead.pop()
        done, state, was_found = moment
        if was_found and all(map(int.__ge__, done, least)):
            return True
        if moment in tried:
            continue
        tried.add(moment)
        if not was_found and state == found and all(map(int.__ge__, done, writes)):
            ahead.append((done, state, True))
        coming = [(a, ops[n]) for a, (ops, n) in enumerate(zip(actors, done)) if n < len(ops)]
        first_end = min((end for _, (_, end, _) in coming if end is not None), default=float("inf"))
        for a, (begin, _, op) in coming:
            new = after(op, state) if begin <= first_end else None
            if new is not None:
                ahead.append((done[:a] + (done[a] + 1,) + done[a + 1:], new, was_found))
    return False


def try_the_search():
    write, other = (1, 5, ("w", 0, 1)), (1, 5, ("a", 1, 2))
    for actors, found, good in [
        ([[write], [(6, 7, ("r", 0, 0))]], None, False),
        ([[write], [(5, 7, ("r", 0, 0))]], None, True),
        ([[write], [other], [(2, 4, ("b", 0, [1, 0]))], [(2, 4, ("b", 0, [0, 2]))]], None, False),
        ([[write], [other], [(2, 4, ("b", 0, [1, 0]))], [(2, 4, ("b", 0, [1, 2]))]], None, True),
        ([[(1, 9, ("a", 0, 1))], [(1, 9, ("a", 0, 2)), (10, 11, ("r", 0, 2))]], None, False),
        ([[write, (6, None, ("a", 1, 2))]], (1, 2), True),
        ([[write, (6, None, ("a", 1, 2))]], (0, 2), False),
        ([[write, (6, None, ("a", 1, 2))], [(7, 8, ("r", 1, 2)), (9, 10, ("a", 0, 1))]], (2, 0), False),
    ]:
        need(has_an_order(actors, found) == good, "the search is wrong about", actors, found)


def meetings(actors):
    """How often an operation began while one of another actor was under way, one of them a write."""
    begun = sorted((begin, float("inf") if end is None else end, a, op[0] not in "rb")
                   for a, ops in enumerate(actors) for begin, end, op in ops)
    met, under_way = 0, []
    for begin, end, a, write in begun:
        under_way = [other for other in under_way if other[1] > begin]
        met += sum(other[2] != a and (write or other[3]) for other in under_way)
        under_way.append((begin, end, a, write))
    return met


def random_plan(rng, rounds, most):
    """For each round and actor what it does, at most so much, as kind, row, number."""
    def op():
        kind, row = rng.choice("rrbbwwaam"), rng.randrange(2)
        return kind, row, {"w": rng.randrange(1, 99), "a": rng.randrange(1, 9), "m": 3}.get(kind)
    return [[[op() for _ in range(rng.randrange(most // 2, most + 1))] for _ in range(ACTORS)] for _ in range(rounds)]


def text(plan):
    name = lambda op: {"b": "b", "r": f"r{op[1]}"}.get(op[0], f"{op[0]}{op[1]}:{op[2]}")
    return "\n".join(";".join(" ".join(map(name, ops)) for ops in actors) for actors in plan)


def told(plan, lines, whole):
    """The operations of each round, with what the lines tell of them. Those that did not come back may have happened,
    but what they read is not known, so that reads do not matter."""
    came = {}
    for line in lines:
        words = line.split(" ")
        if words[0] != "did" or len(words) < 6:
            # The last line may be cut.
            need(words[0] != "did" or not whole and line is lines[-1], "no operation", line)
            continue
        came[tuple(map(int, words[1:4]))] = list(map(int, words[4:6])), words[6:]
    history = [[[] for _ in range(ACTORS)] for _ in plan]
    for r, actors in enumerate(plan):
        for a, ops in enumerate(actors):
            last = 0
            for k, (kind, row, n) in enumerate(ops):
                if (a, r, k) not in came:
                    need(not whole, "an operation did not come back", a, r, k)
                    if kind not in "rb":
                        history[r][a].append((last, None, (kind, row, n)))
                    continue
                (begin, end), rest = came[a, r, k]
                need(begin >= last, "an operation began before the one before it came back", a, r, k)
                before = history[r][a][-1:]
                need(all(end is not None for _, end, _ in before), "an operation came back without the one before it")
                last = end
                number = {"b": lambda: list(map(int, rest)), "r": lambda: int(rest[0])}.get(kind, lambda: n)()
                history[r][a].append((begin, end, (kind, row, number)))
    return history


def judge(bench, history, found):
    """`found`: the rows after a crash, by round."""
    for r, actors in enumerate(history):
        good = has_an_order(actors, found and found.get(r, "missing"))
        need(good, f"round {r} has no order", actors, found and found.get(r))
    return sum(map(meetings, history))


def play(bench, rounds, shards, most=6, killed=False, **more):
    """One process; how many operations met, and how many were under way when it was killed."""
    plan = random_plan(bench.rng, rounds, most)
    with bench.place() as place:
        paths = [os.path.join(place, name) for name in ("plan", "none", "data")]
        for path, content in zip(paths, (text(plan), "")):
            with open(path, "w") as f:
                f.write(content)
        data = None if "WO_EPHEMERAL" in more else paths[2]
        run = bench.start("histories", paths[0], data=data, WO_SHARDS=shards, **more)
        run.until("ready")
        if killed:
            time.sleep(bench.rng.uniform(0, 0.004 * rounds))
            run.kill()
            for reader in run.readers:
                reader.join(20)
        else:
            end = run.end(300)
            need(end.status == 0, f"status {end.status}", end.errors)
        history, found = told(plan, [line for _, line in run.lines], not killed), None
        if data:
            bench.check(data)
            end = bench.start("histories", paths[1], data=data).end(60)
            need(end.status == 0 and not end.errors, f"status {end.status}", end.errors)
            found = {int(r): (int(left), int(right)) for r, left, right in (line.split(" ")[1:] for line in end.lines)}
        met = judge(bench, history, found)
        begun = [actors for actors in history if any(end is not None for ops in actors for _, end, _ in ops)]
        return met, sum(end is None for actors in begun for ops in actors for _, end, _ in ops)


def histories(bench):
    try_the_search()
    rounds = 25 if bench.short else 200
    slow = [dict(faults=dict(sync=3))] if bench.shim else []
    # Without a log nothing waits: two meet only where shards get in each other's way, which takes its time on a machine
    # that others want.
    met = plays = 0
    while plays < (1 if bench.short else 5) or met == 0:
        need(plays < 200, "no operations met in memory")
        met += play(bench, 5, 4, 1000, WO_EPHEMERAL=1)[0]
        plays += 1
    for shards in (4, 1):
        for more in [{}, BUSY, *slow]:
            few = rounds // 4 if "faults" in more else rounds
            met, _ = play(bench, few, shards, **more)
            need(met > few, f"{met} operations met at {shards} shards", more)
    cut = 0
    for n in range(3 if bench.short else 20):
        met, pending = play(bench, rounds, 4, killed=True, **(BUSY if n % 2 else {}))
        cut += pending
    need(cut > 0, "no kill came while operations were under way")
