#!/usr/bin/env bash
# Acceptance gate of docs/examples/hello with real clients: curl and raw sockets from python3.
# usage: scripts/hello-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `hello: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" H00 curl python3
dir=$(mktemp -d)
server=
# the server is ended by its own pid, whatever happens
cleanup() { [ -n "$server" ] && kill -9 "$server" 2>/dev/null; [ "$failures" = 0 ] && rm -rf "$dir"; }
trap cleanup EXIT

ulimit -n 8192 2>/dev/null
WO_STATS=1 "$WOC" run docs/examples/hello -- 0 >"$dir/out" 2>"$dir/err" &
server=$!
url=
for _ in $(seq 200); do
  url=$(sed -n 's/^listening on //p' "$dir/out")
  [ -n "$url" ] && break
  sleep 0.05
done
[ -n "$url" ] || { fail H01 start "no listening line within 10 s: $(head -3 "$dir/err")"; echo "hello: $checks checks, $failures failures"; exit 1; }
ok H01 start
port=${url##*:}
get() { curl -s -m 5 "$@"; }
code() { curl -s -m 5 -o /dev/null -w '%{http_code}' "$@"; }

same H02 text-route "hello from porch" "$(get "$url/")"
same H03 json-route '{"ok":true}' "$(get "$url/health")"
has H04 json-type "content-type: application/json" "$(get -i "$url/health")"
same H05 capture '{"hello":"bob"}' "$(get "$url/hello/bob")"
same H06 capture-decoded '{"hello":"a b/\"c"}' "$(get "$url/hello/a%20b%2F%22c")"
same H07 post '{"greeting":"hello, ada"}' "$(get -d '{"name":"ada"}' "$url/greet")"
for body in '{oops' '{"name":5}' '{}' '[]' ''; do
  same H08 "post-bad $body" '{"error":"body must be {name}"} 400' "$(get -w ' %{http_code}' -X POST -d "$body" "$url/greet")"
done
same H09 unknown-path '{"error":"not found"} 404' "$(get -w ' %{http_code}' "$url/nothing/here")"
same H10 wrong-method '{"error":"method not allowed"} 405' "$(get -w ' %{http_code}' -X DELETE "$url/greet")"
has H11 allow "allow: POST" "$(get -i -X DELETE "$url/greet")"
same H12 head-length "$(get -i "$url/health" | tr -d '\r' | grep -i '^content-length')" "$(get -I "$url/health" | tr -d '\r' | grep -i '^content-length')"
same H13 options 204 "$(code -X OPTIONS "$url/greet")"
same H14 chunked-post '{"greeting":"hello, chunk"}' "$(get -H 'Transfer-Encoding: chunked' -d '{"name":"chunk"}' "$url/greet")"
same H15 trap-answers-500 500 "$(code "$url/boom")"
has H16 trap-stack "at Boom.handle (" "$(cat "$dir/err")"
has H17 trap-place "main.wo:" "$(cat "$dir/err")"
has H18 trap-line "porch: 500 GET /boom request=" "$(cat "$dir/err")"
same H19 lives-on '{"ok":true}' "$(get "$url/health")"
has H20 expect-100 "100 Continue" "$(head -c 40000 /dev/zero | tr '\0' x | curl -s -m 5 -v -H 'Expect: 100-Continue' --data-binary @- "$url/greet" 2>&1 >/dev/null)"

python3 - "$port" "$server" >"$dir/raw" 2>&1 <<'PY'
import os, socket, sys, time
sys.path.insert(0, "scripts")
from gate import answer
port, pid = int(sys.argv[1]), int(sys.argv[2])

def connect():
    s = socket.create_connection(("127.0.0.1", port), timeout=8)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s

def drain(s):
    out = b""
    try:
        while True:
            d = s.recv(65536)
            if not d:
                return out, True
            out += d
    except OSError:
        return out, False

def check(leg, name, good, why=""):
    print(f"ok   {leg} {name}" if good else f"FAIL {leg} {name} -- {why}")

G = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
s = connect(); s.sendall(b"GET /hello/one HTTP/1.1\r\nHost: a\r\n\r\nGET /hello/two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
out, end = drain(s)
check("R01", "pipelined-in-order", end and out.count(b"HTTP/1.1 200") == 2 and 0 < out.find(b'{"hello":"one"}') < out.find(b'{"hello":"two"}'), out)

post = b'POST /greet HTTP/1.1\r\nHost: a\r\nX-Pad: ' + b"p" * 150 + b'\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"name":"bit"}'
s = connect()
for i in range(len(post)):
    s.send(post[i:i + 1])
out, end = drain(s)
check("R02", "byte-by-byte", end and out.endswith(b'{"greeting":"hello, bit"}'), out)
bad = []
for cut in range(1, len(post)):
    s = connect(); s.sendall(post[:cut]); time.sleep(0.001); s.sendall(post[cut:])
    out, end = drain(s)
    if not (end and out.endswith(b'{"greeting":"hello, bit"}')):
        bad.append((cut, out))
check("R03", "every-two-part-split", not bad, bad[:2])

def refused(leg, name, raw, status):
    s = connect(); s.sendall(raw)
    out, end = drain(s)
    one = out.count(b"HTTP/1.1 ") == 1
    check(leg, name, end and one and out.startswith(b"HTTP/1.1 %d " % status) and b"Connection: close\r\n" in out, out[:300])

def req(*lines, body=b"", first=b"POST /greet HTTP/1.1"):
    return first + b"\r\n" + b"".join(l + b"\r\n" for l in lines) + b"\r\n" + body

H = b"Host: a"
for i, v in enumerate([b"21000000000000000000", b"0x10", b"+5", b"-5", b"1_0", b"5.0", "٥".encode(), b"", b"5 5"]):
    refused(f"R1{i}", f"length {v!r}", req(H, b"Content-Length: " + v, body=b"xxxxx"), 400)
refused("R20", "two lengths", req(H, b"Content-Length: 5", b"Content-Length: 5", body=b"xxxxx"), 400)
tail = b"0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n"
refused("R21", "length then coding", req(H, b"Content-Length: 5", b"Transfer-Encoding: chunked", body=tail), 400)
refused("R22", "coding then length", req(H, b"Transfer-Encoding: chunked", b"Content-Length: 5", body=tail), 400)
for i, v in enumerate([b"1000000000000000f", b"0x5", b"+5", b" 5", b";x", b"", b"5 x"]):
    refused(f"R3{i}", f"chunk size {v!r}", req(H, b"Transfer-Encoding: chunked", body=v + b"\r\nabcde\r\n0\r\n\r\n"), 400)
for i, v in enumerate([b"Content-Length : 5", b"Transfer-Encoding : chunked", b"NoColonHere", b": x", b" folded: x", b"X-A: ab\x00cd", b"X-A: ab\rcd", b"X-A: ab\ncd"]):
    refused(f"R4{i}", f"field {v!r}", req(H, v), 400)
refused("R50", "no host", req(b"X: y"), 400)
refused("R51", "two hosts", req(H, H), 400)
refused("R52", "blank in host", req(b"Host: a b"), 400)
refused("R53", "slash in host", req(b"Host: a/b"), 400)
refused("R54", "folded line", req(H, b"X: y", b" z: w"), 400)
refused("R55", "blank before the line", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400)
for i, t in enumerate([b"/a b", b"/a\x01", b"/a#b", b"/a%00", b"/a%zz", b"a", b"ftp://a/", b"/\x80"]):
    refused(f"R6{i}", f"target {t!r}", b"GET " + t + b" HTTP/1.1\r\nHost: a\r\n\r\n", 400)
refused("R70", "long line", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414)
refused("R71", "large head", req(H, *[b"X%d: " % i + b"v" * 800 for i in range(90)]), 431)
refused("R72", "many fields", req(H, *[b"X%d: v" % i for i in range(101)]), 431)
refused("R73", "large body", req(H, b"Content-Length: 1048577"), 413)
refused("R74", "unknown coding", req(H, b"Transfer-Encoding: gzip, chunked"), 501)
refused("R75", "coding not last", req(H, b"Transfer-Encoding: chunked, gzip"), 400)
refused("R76", "version 2", b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505)
refused("R77", "expect tea", req(H, b"Expect: tea", b"Content-Length: 1"), 417)
refused("R78", "garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400)
refused("R79", "connect", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501)

s = connect(); s.sendall(b"\r\n\r\nGET http://b/hello/abs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
out, end = drain(s)
check("R80", "absolute form after empty lines", end and out.endswith(b'{"hello":"abs"}'), out)
s = connect(); s.sendall(b"GET /health HTTP/1.0\r\n\r\n"); out, end = drain(s)
check("R81", "1.0 closes", end and b"Connection: close" in out, out)
s = connect(); s.sendall(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"); out = answer(s)
s.sendall(G); check("R82", "1.0 keep-alive", b"Connection: keep-alive" in out and b"200 OK" in answer(s), out)
s = connect(); s.sendall(req(H, b"Transfer-Encoding: chunked", body=b"0005;ext=1\r\n{\"nam\r\n9\r\ne\":\"abc\"}\r\n0\r\nX-Trailer: t\r\n\r\n")); out = answer(s)
s.sendall(G); check("R83", "extension, zeros and trailer", out.endswith(b'{"greeting":"hello, abc"}') and b"200 OK" in answer(s), out)
s = connect(); s.sendall(b"HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n" + G.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")); out, end = drain(s)
first = out.split(b"\r\n\r\n", 1)[1]
check("R84", "head then get", first.startswith(b"HTTP/1.1 200 OK"), out)
s = connect(); s.sendall(b"GET //evil.example/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); out, end = drain(s)
check("R85", "double slash is a path", b" 404 " in out, out)

fds = lambda: len(os.listdir(f"/proc/{pid}/fd"))
time.sleep(0.3)
before = fds()
socks = [connect() for _ in range(2000)]
for s in socks:
    s.sendall(G)
served = sum(answer(s).endswith(b'{"ok":true}') for s in socks)
held = fds()
for s in socks:
    s.sendall(G)
again = sum(answer(s).endswith(b'{"ok":true}') for s in socks)
check("R90", "2000 keep-alive connections at once", served == 2000 and again == 2000 and held >= 2000, (served, again, before, held))
for s in socks:
    s.close()
for _ in range(100):
    if fds() <= before:
        break
    time.sleep(0.05)
check("R91", "descriptors back at the baseline", fds() <= before, (before, fds()))
s = connect(); s.sendall(G); check("R92", "still serves", answer(s).endswith(b'{"ok":true}'))
idle = [connect() for _ in range(50)]
sys.stdout.flush()
os.kill(pid, 15)
t = time.time()
for s in idle:
    drain(s)
check("R93", "stop closes idle connections", time.time() - t < 3, time.time() - t)
PY
status=$?
cat "$dir/raw"
checks=$((checks + $(grep -cE '^(ok|FAIL) ' "$dir/raw"))) failures=$((failures + $(grep -c '^FAIL ' "$dir/raw")))
[ $status = 0 ] || fail R99 raw-client "the client script ended with $status"

for _ in $(seq 60); do kill -0 "$server" 2>/dev/null || break; sleep 0.05; done
if kill -0 "$server" 2>/dev/null; then
  fail H30 stops-in-3s "still running"
else
  wait "$server"; same H30 stop-status 0 $?
  server=
fi
has H31 actors-back "actors_live=0" "$(grep wostats "$dir/err")"
has H32 objects-freed "objects_live=0" "$(grep wostats "$dir/err")"
has H33 descriptors-closed "descriptors_open=0" "$(grep wostats "$dir/err")"
echo "hello: $checks checks, $failures failures"
[ "$failures" = 0 ] || echo "server logs: $dir"
[ "$failures" = 0 ]
