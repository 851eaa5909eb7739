"""The store of kill.wo through many lives, and what its rows must be: verdict V of the tables specification, 14."""

import os

from bench import need


def text(a, n):
    size = n * 7919 % 8192 if n % 5 == 0 else n * 31 % 60
    piece = f"{a}.{n};"
    return (piece * (size // len(piece) + 1))[:size]


class Plan:
    """The rows of an actor of kill.wo after its first steps; rows are named by the step that begins their cycle."""

    def __init__(self, a):
        self.a, self.steps = a, 0
        self.shelves, self.books, self.loans = {}, {}, set()

    def step(self):
        n = self.steps
        kind, a = n % 9, self.a
        first = n - kind
        if kind == 0:
            self.shelves[first] = (a, n, text(a, n))
        elif kind == 1:
            self.books[first] = (first, None, text(a, n))
        elif kind == 2:
            self.loans.add(first)
        elif kind == 3:
            self.shelves[first] = (*self.shelves[first][:2], text(a, n))
        elif kind == 4:
            zone, weight, label = self.shelves[first]
            self.shelves[first] = (zone, weight + n, label)
        elif kind == 5:
            self.books[first] = (first, first, self.books[first][2])
        elif kind == 6:
            self.loans.remove(first)
        elif kind == 7 and first % 450:
            del self.books[first]
        elif kind == 8 and first % 450:
            del self.shelves[first]
        self.steps += 1

    def inserts(self):
        """How many rows it has added to each table."""
        return [(self.steps + 8 - kind) // 9 for kind in range(3)]

    def rows(self):
        return self.shelves, self.books, self.loans


class Store:
    """A store of kill.wo through many lives."""

    def __init__(self, bench, data, actors=4):
        self.bench, self.data = bench, data
        self.plans = [Plan(a) for a in range(actors)]
        # The highest id that came back, by table: no later life may give it out again.
        self.used, self.given = {0: 0, 1: 0, 2: 0}, set()
        self.lives = 0

    def start(self, steps=0, sound=True, **more):
        """A life: waits until the start is over, judges what it has found, and lets the actors go on from there.
        `sound`: nothing but a crash has happened to the files."""
        # What a crash has left is sound before a start mends it, and says which ids come next.
        ids = self.bench.check(self.data, more.get("before", ())) if self.lives and sound else None
        self.lives += 1
        go = os.path.join(self.bench.dir, f"go-{len(self.bench.running)}")
        run = self.bench.start("kill", go, steps, data=self.data, **more)
        with run.changed:
            while not any(line == "ready" for _, line in run.lines) and any(reader.is_alive() for reader in run.readers):
                run.changed.wait(0.05)
            lines = [line for _, line in run.lines]
        run.begun = "ready" in lines
        if run.begun:
            run.begin = lines.index("ready") + 1
            self.found(lines[:run.begin - 1])
            inserts = [sum(counts) for counts in zip(*(plan.inserts() for plan in self.plans))]
            next_ids = [ids.get(name, 1) for name in ("Shelf", "Book", "Loan")] if ids is not None else None
            right = ids is None or next_ids == [count + 1 for count in inserts]
            need(right, f"next ids {next_ids} after {inserts} inserts")
            with open(go + ".tmp", "w") as f:
                f.write(",".join(str(plan.steps) for plan in self.plans))
            os.rename(go + ".tmp", go)
        return run

    def took(self, run):
        """Takes the steps that came back in a life that is over; how many."""
        for reader in run.readers:
            reader.join(20)
        lines = [line for _, line in run.lines][run.begin if run.begun else 0:]
        need(not any("wrong" in line for line in lines), lines[-5:])
        if not run.begun:
            return 0
        for line in lines:
            # The last line may be cut.
            words = line.split(" ")
            if len(words) != 4 or words[0] != "did":
                need(line is lines[-1], "no step", line)
                continue
            a, n, row = map(int, words[1:])
            plan = self.plans[a]
            need(n == plan.steps, f"step {n} of {a} came back after {plan.steps}")
            plan.step()
            if n % 9 < 3:
                need((n % 9, row) not in self.given, f"id {row} came back twice")
                need(row > self.used[n % 9], f"id {row} was used before", self.used)
                self.given.add((n % 9, row))
        for table, row in self.given:
            self.used[table] = max(self.used[table], row)
        self.given.clear()
        return len(lines)

    def found(self, lines):
        """The verdict on the rows that a start has found; the plans go on from there."""
        codes, shelves, books, titles, loans = {}, {}, {}, {}, {}
        for line in lines:
            need(not line.startswith("wrong"), line)
            kind, row, rest = line.split(" ", 2)
            if kind == "shelf":
                code, zone, weight, label = rest.split(" ", 3)
                a, first = map(int, code.split("-"))
                codes[int(row)] = (a, first)
                shelves.setdefault(a, {})[first] = (int(zone), int(weight), label)
            elif kind == "book":
                a, first, shelf, spare, title = rest.split(" ", 4)
                a, first = int(a), int(first)
                titles[int(row)] = (a, first)
                need(codes.get(int(shelf)) == (a, first), "reference", line)
                need(int(spare) in (0, int(shelf)), "reference", line)
                books.setdefault(a, {})[first] = (first, first if int(spare) else None, title)
            else:
                book, who = rest.split(" ")
                a, first = map(int, who.split("-"))
                need(titles.get(int(book)) == (a, first), "reference", line)
                loans.setdefault(a, set()).add(first)
        for plan in self.plans:
            seen = shelves.get(plan.a, {}), books.get(plan.a, {}), loans.get(plan.a, set())
            least = plan.steps
            while plan.rows() != seen and plan.steps < least + 64:
                plan.step()
            if plan.rows() != seen:
                wanted = Plan(plan.a)
                while wanted.steps < least:
                    wanted.step()
                differ = [sorted(set(str(x) for x in dict.fromkeys(w)) ^ set(str(x) for x in dict.fromkeys(s)))
                          for w, s in zip(wanted.rows(), seen)]
                need(False, f"actor {plan.a}: the rows are not those of {least} steps or some more; too many or missing:", differ)

    def is_compacted(self):
        """Whether segments have been dropped."""
        return not os.path.exists(os.path.join(self.data, "0000000000000001.log"))

    def check(self, **more):
        """A start that only looks, with a normal end."""
        run = self.start(-1, **more)
        end = run.end(60)
        need(end.status == 0 and not end.errors, f"status {end.status}", end.errors[:10])
        self.took(run)
        self.bench.check(self.data, more.get("before", ()))
