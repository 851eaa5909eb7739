"""T17: the bound of memory. Tables are filled with fill.wo until a row is refused: that leaves no trace, there is room
after deletions, a start under the same bound finds all rows, and by default the process stays within its group."""

import os, subprocess

from bench import need

MB = 16
GROUP = 256 << 20


def fill(bench, place, most, before=(), **more):
    """Fills a store, looks at it, and starts it again; the most memory that it took, in bytes."""
    data = None if "WO_EPHEMERAL" in more else os.path.join(place, "data")
    # A log that is only read again has no need of a slow disk.
    free = dict(faults=dict(sync="free")) if bench.shim and data else {}
    run = bench.start("fill", "fill", most, data=data, before=before, **free, **more)
    end = run.end(600)
    need(end.status == 0, f"status {end.status}", end.errors[:5], end.lines[-5:])
    need(len(end.lines) == 2, "something is wrong", end.lines[:10])
    full, rows = (int(line.split(" ")[1]) for line in end.lines)
    # What a tenth has left holds most of a tenth again; the last rows before a refusal may be small ones.
    need(full >= 100 and (rows - full) * 20 > full, f"{rows} rows after {full} and a tenth of them deleted")
    if data is None:
        return end.peak_kib << 10
    ids = bench.check(data)
    need(ids == {"Item": rows + 1}, f"ids {ids} after {rows} rows")
    again = bench.start("fill", "show", most, full, rows, data=data, before=before, **more).end(600)
    need(again.status == 0 and not again.errors, f"status {again.status}", again.errors[:5])
    need(again.lines == [f"rows {rows - (full + 6) // 10}"], "something is wrong after a start", again.lines[:10])
    bench.check(data)
    return max(end.peak_kib, again.peak_kib) << 10


def bound(bench):
    for more in (dict(WO_EPHEMERAL=1), {}, dict(WO_CHECKPOINT_RATIO=1)):
        for most in (40_000, 1000) if not bench.short else (40_000,):
            with bench.place() as place:
                peak = fill(bench, place, most, WO_DB_MB=MB, **more)
                need(peak < (MB << 20) * 4, f"{peak >> 20} MiB for a bound of {MB}")


def own_group():
    """A directory in which control groups with a bound of memory can be made, within the group of this process, and the
    files that set the bound."""
    with open("/proc/self/mounts") as f:
        mounts = [line.split(" ")[1:4] for line in f]
    with open("/proc/self/cgroup") as f:
        own = [line.rstrip("\n").split(":", 2)[1:] for line in f]
    for mount, system, options in mounts:
        for controllers, path in own:
            place = os.path.join(mount, path.lstrip("/"))
            if not os.access(place, os.W_OK):
                continue
            if system == "cgroup" and "memory" in options.split(",") and "memory" in controllers.split(","):
                return place, {"memory.limit_in_bytes": GROUP}
            if system == "cgroup2" and not controllers:
                with open(os.path.join(place, "cgroup.subtree_control")) as f:
                    if "memory" in f.read().split():
                        return place, {"memory.max": GROUP, "memory.swap.max": 0}
    return None, {}


def small_group(bench):
    """In a real group, if one can be made; and in any case where the system's files say that there is one: then what
    the process takes at most must be less."""
    sizes = (100_000,) if bench.short else (100_000, 1000, 40)
    group, (parent, bounds) = None, own_group()
    if parent:
        group = os.path.join(parent, f"wo-crash-{os.getpid()}")
        os.mkdir(group)
        try:
            for name, value in bounds.items():
                with open(os.path.join(group, name), "w") as f:
                    f.write(str(value))
            enter = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh"]
            for most in sizes:
                for more in (dict(WO_EPHEMERAL=1), {}):
                    with bench.place() as place:
                        fill(bench, place, most, enter, **more)
        finally:
            os.rmdir(group)
    script = f'mount -t tmpfs none /sys/fs/cgroup && echo {GROUP} > /sys/fs/cgroup/memory.max && exec "$@"'
    stand_in = ["unshare", "-m", "sh", "-c", script, "sh"]
    if subprocess.run([*stand_in, "true"], capture_output=True).returncode:
        return None if group else "no control group can be made here, nor a stand-in for its files"
    peaks = []
    for most in sizes:
        for more in (dict(WO_EPHEMERAL=1), {}):
            with bench.place() as place:
                peaks.append(fill(bench, place, most, stand_in, **more))
                need(peaks[-1] < GROUP, f"{peaks[-1] >> 20} MiB in a group of {GROUP >> 20}", most, more)
    if not group:
        taken = f"{max(peaks) >> 20} MiB were taken where files speak of a group of {GROUP >> 20}"
        return f"no control group can be made here; {taken}"
    return None
