"""A second reader of stores, written from docs/store-format.md alone: no code of the store is used or imitated.

`Store(directory)` has the rows, ids and numbers of a store, or raises `Damage` with file, offset and reason. Schemas are
taken to be sound where their checksum is. scripts/format.py compares it with the first reader.
"""

import contextlib, os, re, struct, zlib

HEADER, HEAD = 64, 29
NIL = 0xFFFFFFFF
INT, BOOL, FLOAT, TEXT, BYTES, JSON, REF, MULTI, MAP, OBJECT, UNION, NULLABLE = range(12)
INSERT, CHANGE, DELETE, KEEP, OLDEST, END = range(1, 7)
LONGEST = 67174429


class Damage(Exception):
    pass


@contextlib.contextmanager
def at(path, offset):
    """Gives damage that is found meanwhile a place."""
    try:
        yield
    except Damage as damage:
        raise Damage(path, offset, *damage.args) from damage


def need(condition, *what):
    if not condition:
        raise Damage(*what)


def up8(n):
    return (n + 7) // 8 * 8


class Reader:
    """Takes numbers and texts off the front of some bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        need(0 <= n <= len(self.data) - self.at, "too short")
        self.at += n
        return self.data[self.at - n : self.at]

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def flag(self):
        byte = self.u8()
        need(byte <= 1, "a flag that is neither 0 nor 1")
        return byte == 1

    def text(self):
        return self.take(self.u32())

    def name(self):
        return self.text().decode("utf-8")

    def many(self, one):
        return [one() for _ in range(self.u32())]

    def done(self):
        need(self.at == len(self.data), "too long")


class Type:
    def __init__(self, kind, name=None, parts=(), variants=()):
        self.kind, self.name, self.parts, self.variants = kind, name, parts, variants


class Schema:
    def __init__(self, data):
        r = Reader(data)
        self.data = data
        self.types = r.many(lambda: self.type(r))
        self.tables = r.many(lambda: self.table(r))
        r.done()

    def class_name(self, r):
        return (r.name() if r.flag() else None, r.name())

    def fields(self, r):
        return r.many(lambda: (r.name(), r.u32()))

    def type(self, r):
        kind = r.u8()
        need(kind <= NULLABLE, "an unknown type")
        if kind == REF:
            return Type(kind, name=self.class_name(r))
        if kind in (MULTI, NULLABLE):
            return Type(kind, parts=[r.u32()])
        if kind == MAP:
            return Type(kind, parts=[r.u32(), r.u32()])
        if kind == OBJECT:
            return Type(kind, name=r.name(), variants=[("", self.fields(r))])
        if kind == UNION:
            return Type(kind, name=r.name(), variants=r.many(lambda: (r.name(), self.fields(r))))
        return Type(kind)

    def table(self, r):
        table = {"class": self.class_name(r), "label": r.name(), "retired": r.flag()}
        table["columns"] = r.many(lambda: self.column(r))
        table["indexes"] = r.many(lambda: (r.flag(), r.many(r.u32)))
        return table

    def column(self, r):
        name, number = r.name(), r.u32()
        # The fill is a value of a type that is known by now: types come before tables.
        return {"name": name, "type": number, "fill": self.value(r, number) if r.flag() else None}

    # Values

    def plain(self, number):
        """A type without its nullability."""
        of = self.types[number]
        return (True, self.types[of.parts[0]]) if of.kind == NULLABLE else (False, of)

    def is_word(self, of):
        return of.kind in (INT, BOOL, FLOAT, REF) or of.kind == UNION and not any(f for _, f in of.variants)

    def word(self, r, of):
        raw = r.take(8)
        number = struct.unpack("<q", raw)[0]
        if of.kind == FLOAT:
            return struct.unpack("<d", raw)[0]
        if of.kind == BOOL:
            need(0 <= number <= 1, "a Bool that is neither 0 nor 1")
            return number == 1
        if of.kind == UNION:
            need(0 <= number < len(of.variants), "no such variant")
            return (number, [])
        return number

    def value(self, r, number):
        """A column's value, as records hold it."""
        nullable, of = self.plain(number)
        if nullable and not r.flag():
            return None
        if self.is_word(of):
            return self.word(r, of)
        data = r.text()
        if of.kind in (TEXT, BYTES, JSON):
            return data
        inner = Reader(data)
        value = self.inner(inner, number)
        inner.done()
        return value

    def inner(self, r, number):
        nullable, of = self.plain(number)
        if self.is_word(of):
            return None if nullable and not r.flag() else self.word(r, of)
        if of.kind == OBJECT:
            if not r.flag():
                need(nullable, "nil where none may be")
                return None
            return [self.inner(r, t) for _, t in of.variants[0][1]]
        count = r.u32()
        if count == NIL:
            need(nullable, "nil where none may be")
            return None
        if of.kind in (TEXT, BYTES, JSON):
            return r.take(count)
        if of.kind == MULTI:
            return [self.inner(r, of.parts[0]) for _ in range(count)]
        if of.kind == MAP:
            return [(self.inner(r, of.parts[0]), self.inner(r, of.parts[1])) for _ in range(count)]
        need(count < len(of.variants), "no such variant")
        return (count, [self.inner(r, t) for _, t in of.variants[count][1]])


    def size(self, number, value):
        """Bytes of a column's value in a record."""
        nullable, of = self.plain(number)
        if value is None or self.is_word(of):
            return nullable + (0 if value is None else 8)
        return nullable + (4 + len(value) if of.kind in (TEXT, BYTES, JSON) else 4 + self.inner_size(number, value))

    def inner_size(self, number, value):
        nullable, of = self.plain(number)
        if self.is_word(of):
            return nullable + (0 if value is None else 8)
        if value is None:
            return 1 if of.kind == OBJECT else 4
        if of.kind in (TEXT, BYTES, JSON):
            return 4 + len(value)
        if of.kind == MULTI:
            return 4 + sum(self.inner_size(of.parts[0], v) for v in value)
        if of.kind == MAP:
            return 4 + sum(self.inner_size(t, v) for entry in value for t, v in zip(of.parts, entry))
        number, values = value if of.kind == UNION else (0, value)
        before = 4 if of.kind == UNION else 1
        return before + sum(self.inner_size(t, v) for (_, t), v in zip(of.variants[number][1], values))


def convert(old, old_number, new, new_number, value):
    """A value of one schema as the next one has it."""
    old_nullable, a = old.plain(old_number)
    new_nullable, b = new.plain(new_number)
    if value is None:
        need(new_nullable, "nil in a column that is not nullable any longer")
        return None
    if a.kind == BOOL and b.kind == INT:
        return int(value)
    need(a.kind == b.kind, "a value that cannot be converted")
    if a.kind == MULTI:
        return [convert(old, a.parts[0], new, b.parts[0], v) for v in value]
    if a.kind == MAP:
        key, item = [lambda v, i=i: convert(old, a.parts[i], new, b.parts[i], v) for i in (0, 1)]
        return [(key(k), item(v)) for k, v in value]
    if a.kind == OBJECT:
        return fields(old, a.variants[0][1], new, b.variants[0][1], value)
    if a.kind == UNION:
        name, of = a.variants[value[0]]
        names = [n for n, _ in b.variants]
        need(name in names, "a variant that is gone")
        number = names.index(name)
        return (number, fields(old, of, new, b.variants[number][1], value[1]))
    return value


def fields(old, old_fields, new, new_fields, values):
    was = {name: (number, value) for (name, number), value in zip(old_fields, values)}
    need(sorted(was) == sorted(name for name, _ in new_fields), "other fields")
    out = []
    for name, number in new_fields:
        old_number, value = was[name]
        need(old.plain(old_number)[0] == new.plain(number)[0], "another type of a field")
        out.append(convert(old, old_number, new, number, value))
    return out


def pairs(items):
    """Each item with the one behind it."""
    before = None
    for item in items:
        if before:
            yield before, item
        before = item
    if before:
        yield before, None


def convert_row(old, old_table, new, table, row):
    was = {c["name"]: (c["type"], value) for c, value in zip(old_table["columns"], row)}
    out = []
    for column in table["columns"]:
        # No row has a value that is not kept: a column with the same name is the same one.
        kept = was.get(column["name"])
        out.append(convert(old, kept[0], new, column["type"], kept[1]) if kept else column["fill"])
    return out


class Segment:
    """A file of the log, its header and preamble checked."""

    def __init__(self, path, number):
        self.path, self.number = path, number
        with open(path, "rb") as f:
            self.data = f.read()
        self.short = len(self.data) < HEADER
        if self.short:
            return
        r = Reader(self.data)
        need(r.take(8) == b"wo.log\0\1", path, 0, "not a segment of this version")
        self.id = r.take(16)
        own, self.first, self.needed, length, crc, _, own_crc = struct.unpack("<QQQIIII", r.take(40))
        need(own_crc == zlib.crc32(self.data[:60]), path, 0, "the header does not check")
        need(own == number, path, 0, "the number of another segment")
        need(self.first > 0 and 0 < self.needed <= own, path, 0, "numbers out of their bounds")
        self.short = len(self.data) < HEADER + length
        if self.short:
            return
        preamble = r.take(length)
        need(crc == zlib.crc32(self.id + struct.pack("<Q", number) + preamble), path, 64, "the preamble does not check")
        with at(path, HEADER):
            p = Reader(preamble)
            self.schema = Schema(p.text())
            self.next_ids = [p.u64() for _ in self.schema.tables]
            p.done()
        self.begin = up8(HEADER + length)

    def head(self, at):
        """(length, sequence number, barrier, CRC of the body, kind), if there is a head here."""
        head = self.data[at : at + HEAD]
        if len(head) < HEAD:
            return None
        covered = self.id + struct.pack("<QQ", self.number, at) + head[4:]
        if struct.unpack_from("<I", head)[0] != zlib.crc32(covered):
            return None
        length, seq, barrier, crc, kind = struct.unpack("<IQQIB", head[4:])
        is_one = HEAD <= length <= LONGEST and barrier < seq < 2**64 - 1
        return (length, seq, barrier, crc, kind) if is_one else None

    def records(self, until=None):
        """The valid records, those below `until`: (offset, kind, body). Leaves `end` and `next`."""
        at, seq = self.begin, self.first
        self.bytes = self.count = 0
        while True:
            self.end, self.next = at, seq
            found = self.head(at)
            if found is None or seq == until:
                return
            length, number, _, crc, kind = found
            if number != seq or at + length > len(self.data):
                return
            body = self.data[at + HEAD : at + length]
            if crc != zlib.crc32(body):
                return
            self.count += 1
            self.bytes += up8(length)
            yield at, kind, body
            at, seq = up8(at + length), seq + 1

    def torn(self):
        """Looks behind the end for what tells damage from a torn tail; gives the length of the tail."""
        tail = len(self.data[self.end :].rstrip(b"\0"))
        for at in range(self.end, self.end + tail, 8):
            found = self.head(at)
            need(found is None or found[2] < self.next, self.path, self.end, "a durable record is gone")
        return min(up8(tail), max(len(self.data) - self.end, 0))


class Store:
    """Rows by table and id, each a list of values, and what the log says beside them."""

    def __init__(self, directory):
        self.schema, self.rows, self.next_ids = None, {}, []
        self.records = self.bytes = self.torn = self.last_seq = 0
        # Changes of rows that nothing has told of yet, and how many there were.
        self.passed, self.passed_over = {}, 0
        self.schemas = 0
        self.needed = 1
        for segment, after in pairs(self.segments(directory)):
            self.segment(segment, after)
        for path, at in sorted(self.passed.values()):
            raise Damage(path, at, "a change of a row that is not there")

    def segments(self, directory):
        """Those that are needed, in order."""
        path = lambda number: os.path.join(directory, f"{number:016x}.log")
        names = [re.fullmatch(r"([0-9a-f]{16})\.log", name) for name in os.listdir(directory)]
        numbers = sorted(int(name[1], 16) for name in names if name)
        numbers = [n for n in numbers if n > 0]
        if not numbers:
            return
        last = Segment(path(numbers[-1]), numbers[-1])
        if last.short:
            self.torn = len(last.data)
            number = numbers.pop() - 1
            if number == 0:
                return
            need(numbers and numbers[-1] == number, path(number), 0, "the file is missing")
            last = Segment(path(number), number)
        self.needed = last.needed
        for _, kind, body in last.records():
            if kind == OLDEST:
                self.needed = Reader(body).u64()
        for number in range(self.needed, last.number):
            need(number in numbers, path(number), 0, "the file is missing")
            segment = Segment(path(number), number)
            need(not segment.short, path(number), 0, "shorter than its header and preamble")
            yield segment
        yield last

    def segment(self, segment, after):
        with at(segment.path, HEADER):
            self.take_schema(segment)
        for offset, kind, body in segment.records(after and after.first):
            with at(segment.path, offset):
                self.apply(segment, offset, kind, Reader(body))
        if after:
            need(after.id == segment.id, after.path, 0, "of another store")
            need(after.first >= segment.first and after.needed >= segment.needed, after.path, 0, "numbers go back")
            need(after.first == segment.next, segment.path, segment.end, "records are missing")
        else:
            self.torn += segment.torn()
        self.last_seq = segment.next - 1
        self.records += segment.count
        self.bytes += segment.bytes

    def take_schema(self, segment):
        """Goes on with the tables of the schema in a segment's preamble."""
        self.schemas += self.schema is None or self.schema.data != segment.schema.data
        old, was = self.schema, {t["class"]: n for n, t in enumerate(self.schema.tables)} if self.schema else {}
        new, now = segment.schema, {t["class"]: n for n, t in enumerate(segment.schema.tables)}
        need(was.keys() <= now.keys(), "a table of the schema before is missing")
        rows = {n: {} for n in now.values()}
        for name, n in was.items():
            table = new.tables[now[name]]
            need(segment.next_ids[now[name]] >= self.next_ids[n], "an id counter goes back")
            need(not (table["retired"] and self.rows[n]), "a retired table with rows")
            for id, row in self.rows[n].items():
                rows[now[name]][id] = convert_row(old, old.tables[n], new, table, row)
        self.passed = {(now[old.tables[n]["class"]], id): place for (n, id), place in self.passed.items()}
        self.schema, self.rows, self.next_ids = new, rows, list(segment.next_ids)

    def apply(self, segment, offset, kind, r):
        if kind in (OLDEST, END):
            if kind == OLDEST:
                need(1 <= r.u64() <= segment.number, "an oldest segment that is to come")
            return r.done()
        need(INSERT <= kind <= END, "an unknown kind of record")
        number = r.u16()
        need(number < len(self.schema.tables), "no such table")
        table, rows, id = self.schema.tables[number], self.rows[number], r.u64()
        need(not table["retired"], "a record of a retired table")
        columns, new = table["columns"], self.next_ids[number]
        need(id == new if kind == INSERT else 0 < id < new, "an id that the counter contradicts")
        need(kind == INSERT or id in rows or self.needed > 1, "a row that is not there")
        if kind in (INSERT, KEEP):
            rows[id] = [self.schema.value(r, c["type"]) for c in columns]
            self.next_ids[number] += kind == INSERT
            self.forget(number, id)
        elif kind == DELETE:
            _ = rows.pop(id, None)
            self.forget(number, id)
        else:
            column = r.u16()
            need(column < len(columns), "no such column")
            value = self.schema.value(r, columns[column]["type"])
            if id in rows:
                rows[id][column] = value
            else:
                _ = self.passed.setdefault((number, id), (segment.path, offset))
                self.passed_over += 1
        r.done()

    def forget(self, number, id):
        _ = self.passed.pop((number, id), None)
