"""What `woc db` prints, made from a store that decode.py has read: `dump`, and `stat --json` but for the files."""

import base64, json, math, struct

from decode import BOOL, BYTES, FLOAT, HEAD, INT, JSON, MAP, MULTI, REF, TEXT, UNION, up8


def float_text(f):
    """The fewest digits that read back as the same number (language specification 9.3)."""
    if math.isnan(f):
        return "nan"
    if math.isinf(f):
        return "inf" if f > 0 else "-inf"
    for digits in range(1, 18):
        text = f"{f:.{digits - 1}e}"
        if struct.pack("<d", float(text)) == struct.pack("<d", f):
            break
    e = int(text.split("e")[1])
    return f"{f:.{max(1, digits - 1 - e)}f}" if -6 <= e < 21 else text


def quoted(data):
    short = {0x22: b'\\"', 0x5C: b"\\\\", 10: b"\\n", 13: b"\\r", 9: b"\\t", 8: b"\\b", 12: b"\\f"}
    return b'"' + b"".join(short.get(b) or (b"\\u%04x" % b if b < 32 else bytes([b])) for b in data) + b'"'


def encode(schema, number, value):
    """A value as the language's `json.encode` gives it, but for references, which are ids everywhere."""
    _, of = schema.plain(number)
    if value is None:
        return b"null"
    if of.kind in (INT, REF):
        return b"%d" % value
    if of.kind == BOOL:
        return b"true" if value else b"false"
    if of.kind == FLOAT:
        return float_text(value).encode() if math.isfinite(value) else b"null"
    if of.kind == TEXT:
        return quoted(value)
    if of.kind == BYTES:
        return b'"' + base64.b64encode(value) + b'"'
    if of.kind == JSON:
        return json_text(value)
    if of.kind == MULTI:
        return b"[" + b",".join(encode(schema, of.parts[0], v) for v in value) + b"]"
    if of.kind == MAP:
        return members((map_key(schema, of.parts[0], k), of.parts[1], v) for k, v in value)(schema)
    if schema.is_word(of):
        return b"%d" % value[0]
    variant, values = value if of.kind == UNION else (0, value)
    return members((quoted(n.encode()), t, v) for (n, t), v in zip(of.variants[variant][1], values))(schema)


def members(of):
    return lambda schema: b"{" + b",".join(name + b":" + encode(schema, t, v) for name, t, v in of) + b"}"


def map_key(schema, number, key):
    _, of = schema.plain(number)
    if of.kind in (TEXT, BYTES):
        return encode(schema, number, key)
    if of.kind == FLOAT:
        return quoted(float_text(key).encode())
    return quoted(encode(schema, number, key))


def json_text(text):
    """On one line, and as a string if it is no JSON."""
    try:
        json.loads(text.decode("utf-8"), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return quoted(text)
    return text.replace(b"\n", b" ").replace(b"\r", b" ")


def class_text(table):
    package, name = table["class"]
    return f"{package}.{name}" if package else name


def tables(store):
    """Number and table, by the name of the class."""
    return sorted(enumerate(store.schema.tables if store.schema else []), key=lambda t: class_text(t[1]).encode())


def dump(store):
    """The lines of `woc db dump`."""
    out = []
    for number, table in tables(store):
        columns = [(quoted(c["name"].encode()), c["type"]) for c in table["columns"]]
        for id, row in sorted(store.rows[number].items()):
            body = members((name, t, v) for (name, t), v in zip(columns, row))(store.schema)
            out.append(b'{"table":%b,"id":%d,"row":%b}\n' % (quoted(class_text(table).encode()), id, body))
    return b"".join(out)


def stat(store):
    """What `woc db stat --json` has beside the sizes of files."""
    def live(number, table):
        types = [c["type"] for c in table["columns"]]
        return sum(up8(HEAD + 10 + sum(map(store.schema.size, types, row))) for row in store.rows[number].values())

    classes = [{"class": class_text(t), "label": t["label"], "retired": t["retired"], "rows": len(store.rows[n]),
                "next_id": store.next_ids[n], "live_bytes": live(n, t)} for n, t in tables(store)]
    return {"tables": classes, "records": store.records, "record_bytes": store.bytes, "last_seq": store.last_seq,
            "torn_bytes": store.torn}
