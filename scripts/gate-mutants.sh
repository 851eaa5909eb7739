#!/usr/bin/env bash
# Every leg can fail: applies one named edit at a time to a copy of porch and requires the leg beside it to turn red. The
# legs are run on the unedited copy first, where they have to be green.
# usage: scripts/gate-mutants.sh [LEG...]   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <edit>` or `FAIL <leg> <edit> -- <why>`, then `mutants: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" M00 python3 faketime
exec python3 - "$@" <<'PY'
import os, shutil, subprocess, sys, tempfile

sys.path.insert(0, "scripts")
from gate import WOC, check, finish

POOL, LIMITER, IDEMPOTENT = (f"middleware/{f}.wo" for f in ["keypool", "limiter", "idempotent"])
APP, BODY, CONN, HTTP, ROUTER = "app.wo", "internal/body.wo", "internal/conn.wo", "http/types.wo", "router/router.wo"

# Leg, its module in scripts/web_app, name of the edit, file, what is replaced (everywhere in the file), and by what.
MUTANTS = [
    ("W2", "storefront", "a use of nothing", "http/nego.wo", "use internal\n", "use internal\nuse time\n"),
    ("W9", "storefront", "any token", "http/auth.wo", "if token != nil and ct_eq(token, self.token) {", "if token != nil {"),
    ("W24", "storefront", "methods backwards", APP, "return allow .. \", \" .. method", "return method .. \", \" .. allow"),
    ("W25", "storefront", "405 for a path that is none", APP, "if allow == \"\" { return not_found() }", ""),
    ("W27", "storefront", "OPTIONS has a body", APP, "let r = no_content()\n", "let r = ok_text(\"\")\n"),
    ("W28", "storefront", "one segment of many", ROUTER, "join(slice(path, i, len(path)), \"/\")", "path[i]"),
    ("W39", "storefront", "an id of another name", "internal/trap.wo", "request_id", "request_no"),
    ("W40", "storefront", "backslashes in a redirect", HTTP, " or index_of(location, \"\\\\\") >= 0", ""),
    ("W40", "storefront", "another host in a redirect", HTTP, " or starts_with(trim(location), \"//\")", ""),
    ("W41", "storefront", "a length beside a coding", BODY, "if conn.lengths > 0 or req.version == 10 or", "if req.version == 10 or"),
    ("W41", "storefront", "a chunk size without digits", BODY, "  if i == 0 { return -1 }\n  if i == n", "  if i == n"),
    ("W41", "storefront", "a CR in a chunk line", BODY, "(byte_at(line, i) == 32 or byte_at(line, i) == 9)", "(byte_at(line, i) == 32 or byte_at(line, i) == 9 or byte_at(line, i) == 13)"),
    ("W41", "storefront", "a length that wraps", BODY, "d > 9 or n > (LENGTH_MAX - d) / 10 {", "d > 9 {"),
    ("W41", "storefront", "no Host", CONN, "if self.hosts > 1 or self.hosts == 0 and req.version == 11 {", "if self.hosts > 1 {"),
    ("W41", "storefront", "control bytes in values", CONN, "return b >= 32 and b != 127 or b == 9", "return b != 13 and b != 10"),
    ("W41", "storefront", "a field too many", CONN, "      if lines > self.bounds.max_fields {", "      if lines > 1 + self.bounds.max_fields {"),
    ("W42", "storefront", "no empty line ahead", CONN, "if empties > 4 {", "if empties > 0 {"),
    ("W42", "storefront", "no chunk extension", BODY, "if i == n or byte_at(line, i) != 59 { return -1 }", "if i < n { return -1 }"),
    ("W42", "storefront", "HTTP/1.0 stays", CONN, "if req.version == 10 { self.keep = false }", ""),
    ("W43", "storefront", "a body of at most two pieces", BODY, "  while len(conn.buf) - conn.pos < n {\n", "  if len(conn.buf) - conn.pos < n {\n"),
    ("W44", "storefront", "pipelined requests are dropped", CONN, "    if not self.has_input() {\n      self.buf = \"\"", "    if true {\n      self.buf = \"\""),
    ("W45", "storefront", "100 ahead of the refusal", APP, "let early = self.run_chain(req, segments, true)", "let early: ?Resp = nil"),
    ("W45", "storefront", "100 for HTTP/1.0", CONN, "if self.expectations > 0 and req.version == 11 {", "if self.expectations > 0 {"),
    ("W47", "storefront", "ten times the patience", APP, "conn.await_request(idle_ms)", "conn.await_request(10 * idle_ms)"),
    ("W48", "storefront", "no deadline of a request", APP, "conn.read_head(req, read_ms)", "conn.read_head(req, 0)"),
    ("W49", "storefront", "every byte wins time", CONN, "    if self.deadline > 0 {\n      ms =", "    if self.deadline > 0 {\n      self.deadline = time.ticks() + 600_000\n      ms ="),
    ("W50", "storefront", "every other descriptor is kept", APP, "    if step == CLOSE { net.close(c) }\n", "    if step == CLOSE and c % 2 == 0 { net.close(c) }\n"),
    ("W52", "storefront", "bodies of any size", BODY, "  if n > conn.bounds.max_body {", "  if n < 0 {"),
    ("W55", "storefront", "digest ignored", POOL, "if row.digest == msg.digest {", "if row.digest != \"\" {"),
    ("W56", "storefront", "a limit one too high", POOL, "allowed: n <= limit", "allowed: n <= limit + 1"),
    ("W60", "limiter", "counts start at nought", POOL, "    count: 1,", "    count: 0,"),
    ("W62", "limiter", "refused at the limit already", POOL, "allowed: n <= limit", "allowed: n < limit"),
    ("W63", "limiter", "the peer with its port", LIMITER, "limiter_address(limiter_peer(net.peer(req.conn)), l.v6_prefix)", "net.peer(req.conn)"),
    ("W63", "limiter", "forwarded addresses without trust", LIMITER, "if l.trust_proxy {", "if true {"),
    ("W64", "limiter", "count in the request fiber", POOL, "call(pool_select(pool, key), pool_message(POOL_COUNT, key, limit, window))", "pool_count_row(key, window)"),
    ("W65", "limiter", "rows that do not last", "middleware/store.wo", "index: [boot])\npub class RateLimitCounter", "index: [boot], durable: false)\npub class RateLimitCounter"),
    ("W66", "limiter", "an expired row is not deleted", POOL, "    delete row\n  }\n  let at = time.ticks()\n  insert RateLimitCounter", "  }\n  let at = time.ticks()\n  insert RateLimitCounter"),
    ("W66", "limiter", "an expired row is reset in place", POOL, "    delete row\n  }\n  let at = time.ticks()\n  insert RateLimitCounter",
     "    row.window = time.ticks()\n    row.ends = row.window + window\n    row.count = 1\n    return pool_reply(1, window / 1000)\n  }\n  let at = time.ticks()\n  insert RateLimitCounter"),
    ("W67", "limiter", "no sweep", POOL, "if self.seen % POOL_SWEEP_EVERY == 0 { self.sweep(msg) }", "if self.seen < 0 { self.sweep(msg) }"),
    ("W67", "limiter", "rows of earlier boots are not swept", POOL, "foreign: Bool = true", "foreign: Bool = false"),
    ("W67", "limiter", "sweeps are slower than new keys", POOL, "POOL_SWEEP_ROWS = 64", "POOL_SWEEP_ROWS = 16"),
    ("W68", "limiter", "window by time.now()", POOL, "time.ticks()", "(time.now() * 1000)"),
    ("W69", "limiter", "boot id ignored", POOL, "gone >= 0 and boot == time.boot_id()", "gone >= 0"),
    ("W69", "limiter", "ticks alone count", POOL, "if gone >= 0 and boot == time.boot_id() {", "if boot != \"\" {"),
    ("W69", "limiter", "no end to a row from the future", POOL, "if left_ms > span / 1000 { return span }", ""),
    ("W70", "limiter", "one actor for all keys", POOL, "crc32(bytes_of_text(key)) % n", "crc32(bytes_of_text(key)) * 0"),
    ("W71", "limiter", "a call's trap lets the request through", LIMITER, "return limiter_uncounted(e.code, e.msg)", "return nil"),
    ("W72", "limiter", "any limit and window", POOL, "if limit < 1 or window < 1000 {", "if limit < -9 {"),
    ("W73", "limiter", "a store's trap lets the request through", POOL, "{ trap(POOL_STORE_FAILURE) }",
     "{ return Verdict { allowed: true, count: 0, limit: limit, reset_at: 0 } }"),
    ("W74", "limiter", "rows that do not last", "middleware/store.wo", "index: [boot])\npub class RateLimitCounter", "index: [boot], durable: false)\npub class RateLimitCounter"),
    ("W75", "idempotent", "every answer says it is a replay", IDEMPOTENT, "default: idempotency_decoded(req, idempotency_response(row))",
     "default:\n      let r = idempotency_decoded(req, idempotency_response(row))\n      r.headers[\"idempotency-replayed\"] = \"true\"\n      r"),
    ("W76", "idempotent", "digest ignored", POOL, "if row.digest == msg.digest {", "if row.digest != \"\" {"),
    ("W76", "idempotent", "no query in the digest", IDEMPOTENT, "${req.query_text}", ""),
    ("W77", "idempotent", "keys of any length", IDEMPOTENT, "IDEMPOTENCY_KEY_MAX = 255", "IDEMPOTENCY_KEY_MAX = 9999"),
    ("W78", "idempotent", "handler run in the middleware", POOL, "return call(pool_select(pool, key), msg)", "return KeyActor {}.receive(msg)"),
    ("W79", "idempotent", "principal ignored", IDEMPOTENT, "${idempotency_escaped(req.principal)}|", "|"),
    ("W80", "idempotent", "5xx stored", POOL, "if answer.status >= 200 and answer.status < 400 {", "if answer.status >= 200 {"),
    ("W81", "idempotent", "5xx stored", POOL, "if answer.status >= 200 and answer.status < 400 {", "if answer.status >= 200 {"),
    ("W81", "idempotent", "relay rows stay", IDEMPOTENT, "    delete r\n", ""),
    ("W81", "idempotent", "answers are not swept", POOL, "if self.begun % POOL_SWEEP_EVERY == 0 { self.sweep(msg) }", "if self.begun < 0 { self.sweep(msg) }"),
    ("W73", "limiter", "traps leave receive", POOL, "return try self.reply(msg) catch (e) self.failed(msg.key, e.code, e.msg)", "return self.reply(msg)"),
    ("W82", "idempotent", "a handler's trap is the store's", POOL, "try msg.handler.handle(msg.req) catch (e) trap_answer(msg.req, e.code, e.method, e.line, e.msg)", "msg.handler.handle(msg.req)"),
    ("W83", "idempotent", "all headers stored", POOL, "if to_lower(name) == \"content-type\" {", "if name != \"\" {"),
    ("W84", "idempotent", "rows that do not last", "middleware/store.wo", "index: [boot])\npub class IdempotencyKey", "index: [boot], durable: false)\npub class IdempotencyKey"),
    ("W86", "idempotent", "TTL ignored", POOL, "  return left >= 0\n", "  return true\n"),
    ("W87", "idempotent", "the gate lets all in", POOL, "if has(self.busy, key) { return POOL_BUSY }", ""),
    ("W87", "idempotent", "the gate is never left", POOL, "        remove(self.busy, msg.key)\n", ""),
    ("W88", "idempotent", "one actor for all keys", POOL, "crc32(bytes_of_text(key)) % n }", "crc32(bytes_of_text(key)) * 0 }"),
    ("W89", "idempotent", "a full mailbox runs the handler", IDEMPOTENT, "  return IDEMPOTENCY_SATURATED\n", "  return POOL_EXECUTED * POOL_REPLY_UNIT\n"),
    ("W89b", "idempotent", "an answer that was not stored is forgotten", POOL, "    self.owed = owed\n", ""),
    ("W6b", "limiter", "a borrowed verdict is kept", LIMITER, "fn limiter_fields(", "fn kept_verdict(v: Verdict) -> Verdict { return v }\n\nfn limiter_fields("),
]
DRIVER = """
import importlib, sys
sys.path.insert(0, "scripts")
importlib.import_module("web_app." + sys.argv[1]).run(*sys.argv[2:])
import gate
gate.finish(sys.argv[1])
"""


def legs(porch, module, *names):
    """What the legs print with this porch."""
    out = subprocess.run([sys.executable, "-c", DRIVER, module, *names], capture_output=True, text=True,
                         env=dict(os.environ, PORCH_DIR=porch))
    return out.stdout + out.stderr


wanted = sys.argv[1:]
unknown = set(wanted) - {m[0] for m in MUTANTS}
if unknown:
    sys.exit(f"no such leg: {unknown}")
mutants = [m for m in MUTANTS if not wanted or m[0] in wanted]
with tempfile.TemporaryDirectory(prefix="wo-mutants-") as top:
    porch = os.path.join(top, "porch")
    for module in dict.fromkeys(m[1] for m in mutants):
        shutil.copytree("docs/examples/porch", porch, ignore=shutil.ignore_patterns("target", ".wo-*"))
        names = list(dict.fromkeys(m[0] for m in mutants if m[1] == module))
        out = legs(porch, module, *names)
        check("M01", f"{' '.join(names)} are green without an edit", "FAIL" not in out and "0 failures" in out, out[-700:])
        shutil.rmtree(porch)
    for leg, module, name, file, old, new in mutants:
        shutil.copytree("docs/examples/porch", porch, ignore=shutil.ignore_patterns("target", ".wo-*"))
        path = os.path.join(porch, file)
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace(old, new))
        built = subprocess.run([WOC, "check", porch], capture_output=True, text=True)
        if old not in text:
            check(leg, name, False, f"nothing to edit: {old}")
        elif built.returncode:
            check(leg, name, False, built.stderr)
        else:
            out = legs(porch, module, leg)
            check(leg, name, f"FAIL {leg} " in out, out[-700:])
        shutil.rmtree(porch)
finish("mutants")
PY
