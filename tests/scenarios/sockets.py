"""Scenarios of 11.12 and what a server keeps after many connections."""

import os, resource, socket, threading, time

from actors import client
from harness import need, scenario


def opened(c, how, **more):
    p = c.start("descriptors", how, **more)
    return p, int(p.line("port ")[0])


@scenario("fd_3_closing_wakes_the_reader")
def close_wakes(c):
    c.run("descriptors", "close").clean(["9 Bad file descriptor", "at once true"])


@scenario("fd_1_fd_2_a_closed_number_reaches_no_other_connection")
def old_number(c):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    p, port = opened(c, "old-number")
    peers = [client(port) for _ in range(1001)]
    p.end(30).clean([f"port {port}", "main 9 Bad file descriptor", "main 9 Bad file descriptor", "reused false"])
    for s in peers:
        need(s.recv(10) == b"", "a connection got bytes meant for another")
        s.close()


def end_of_stream(c, how, expect):
    p, port = opened(c, how)
    s = client(port)
    s.sendall(b"first")
    need(p.line()[0] == "first", "the line")
    if how == "dies-shared":
        need(s.recv(10) == b"w", "the second actor's byte")
    s.sendall(b"last")
    began = time.monotonic()
    got = s.recv(10)
    took = time.monotonic() - began
    e = p.end(20)
    e.clean([f"port {port}", "first", *expect], reports=True)
    need(e.errors[0].startswith("fiber trap 8 at receive:") and "done with last" in e.errors[0], "report", e.errors)
    return got, took


@scenario("fd_5_a_dead_actors_connection_is_closed", attempts=2)
def dies(c):
    got, took = end_of_stream(c, "dies", ["end"])
    need(got == b"" and took < 0.1 + 0.3, "end of stream", got, took)


@scenario("fd_5_a_connection_that_another_uses_stays_open")
def dies_shared(c):
    got, _ = end_of_stream(c, "dies-shared", ["1", "end"])
    need(got == b"w", "the second actor's next byte", got)


def peers(c, how, host, shown):
    p, port = opened(c, how)
    s = client(port, host)
    mine = shown + ":" + str(s.getsockname()[1])
    need(s.makefile().readline() == mine + "\n", "net.peer of the accepted end", mine)
    p.end(20).clean([f"port {port}", "listener <>", f"own {shown}:{port}", "ports agree true"])


@scenario("net_peers_agree_over_ipv4")
def peers_four(c):
    peers(c, "four", "127.0.0.1", "127.0.0.1")


@scenario("net_peers_agree_over_ipv6")
def peers_six(c):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        print("note net_peers_agree_over_ipv6: this machine has no ::1")
        return
    peers(c, "six", "::1", "[::1]")


@scenario("net_1_the_descriptor_limit_of_case_h29")
def descriptor_limit(c):
    p = c.start("connections", nofile=64)
    port = int(p.line("port ")[0])
    crowd = []
    for _ in range(100):
        crowd.append(client(port))
    time.sleep(0.3)
    cpu, began = p.cpu_seconds(), time.monotonic()
    time.sleep(2.0)
    share = (p.cpu_seconds() - cpu) / (time.monotonic() - began)
    need(share < 0.05, "share of a CPU at the limit", share)
    for s in crowd:
        s.close()
    began = time.monotonic()
    s = client(port)
    s.sendall(b"next\n")
    need(s.recv(10) == b"next\n", "the next client is not served")
    need(time.monotonic() - began < 5, "recovery took", time.monotonic() - began)
    s.close()
    p.signal()
    e = p.end(20).within(3)
    notes = [x for x in e.errors if not x.startswith("wostats ")]
    need(1 <= len(notes) <= 2 and all("descriptor limit" in x for x in notes), "notices", notes)
    need(e.status == 0 and e.stats["objects_live"] == "0", "end", e.status, e.stats)


@scenario("wait_5_texts_to_a_slow_client_do_not_mix")
def slow_client(c):
    p = c.start("descriptors", "slow-client")
    port = int(p.line("port ")[0])
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20)
    s.connect(("127.0.0.1", port))
    got = bytearray()
    for _ in range(20):
        time.sleep(0.01)
        got += s.recv(1000)
    while part := s.recv(65536):
        got += part
    a, b = b"a" * 100_000, b"b" * 100_000
    need(bytes(got) in (a + b, b + a), "mixed", len(got))
    p.end(20).clean([f"port {port}", "written", "written"])


@scenario("wait_5_wait_6_many_write_and_read_one_connection")
def shared_connection(c):
    p = c.start("shared-connection")
    port = int(p.line("port ")[0])
    out, into = client(port), None
    time.sleep(0.05)
    into = client(port)
    text = b"0123456789" * 20_000
    sender = threading.Thread(target=lambda: [into.sendall(text) for _ in range(10)], daemon=True)
    sender.start()
    got = bytearray()
    while part := out.recv(1 << 16):
        got += part
    sender.join(20)
    lines = got.decode().splitlines()
    need(len(lines) == 24 * 60, "lines", len(lines))
    for line in lines:
        words = line.split()
        need(len(set(words)) == 1 and 3000 <= len(line), "a torn line", line[:100])
    p.end(20).clean([f"port {port}", "read 2000000"])
    into.close()


@scenario("out_2_a_printed_line_survives_sigkill")
def printed(c):
    path = os.path.join(c.dir, "out")
    with open(path, "wb") as out:
        p = c.start("descriptors", "print", stdout=out)
    until = time.monotonic() + 20
    # Compiled programs load quickly, but not in a known time: the line itself says when it was printed.
    while not os.path.getsize(path) and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(0.05)
    p.kill()
    with open(path) as f:
        need(f.read() == "the line\n", "the file")


def stat(s):
    s.sendall(b"stat\n")
    return {k: int(v) for k, v in (f.split("=") for f in s.makefile().readline().split())}


def settled(s, base):
    """The counters once they are back at `base`, or after 5 s."""
    until = time.monotonic() + 5
    while True:
        now = stat(s)
        if all(now[k] <= base[k] for k in ("actors_live", "fibers_live", "descriptors_open", "objects_live")) or time.monotonic() > until:
            return now
        time.sleep(0.05)


def short_connections(port, n):
    for i in range(n):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
            line = b"line %d\n" % i
            s.sendall(line)
            need(s.recv(100) == line, "echo")
            if i % 3 == 0:
                # A client that resets instead of closing.
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@scenario("rcl_1_short_connections_leave_nothing_of_case_a09", heavy=True)
def connections(c):
    p = c.start("connections")
    port = int(p.line("port ")[0])
    s = client(port)
    short_connections(port, 1000)
    time.sleep(0.3)
    base, resident = stat(s), p.resident_kib()
    short_connections(port, 99_000 if c.full else 4_000)
    now = settled(s, base)
    for name in ("actors_live", "fibers_live", "descriptors_open", "objects_live"):
        need(now[name] <= base[name] + 2, f"{name} grew", base, now)
    need(p.resident_kib() <= resident * 1.25 + 8192, "resident KiB grew", resident, p.resident_kib())
    s.close()
    p.signal()
    e = p.end(20)
    # A client that resets may meet a write: its actor dies with trap 9.
    e.clean([f"port {port}"], reports=True).within(3)
    need(all("trap 9 at " in x for x in e.errors if x.startswith("fiber trap")), "reports", e.errors[:5])
