"""Programs of scripts/probes, each built with a flat copy of porch: without manifest, in one package with it."""
import atexit, os, shutil, subprocess, tempfile, traceback

import gate

# The porch under test; a mutant's copy where gate-mutants.sh says so.
PORCH = os.environ.get("PORCH_DIR", "docs/examples/porch")
PLACES = {"keypool": "middleware"}
built = {}


def build(name):
    """The executable of a probe and what the compiler printed; the executable is None when it was refused."""
    if name not in built:
        top = tempfile.mkdtemp(prefix="wo-probe-")
        atexit.register(shutil.rmtree, top, True)
        folder = os.path.join(top, name)
        shutil.copytree(PORCH, folder, ignore=shutil.ignore_patterns("wo.toml", "*_test.wo", "target", ".wo-*"))
        shutil.copy(f"scripts/probes/{name}.wo", os.path.join(folder, PLACES.get(name, ""), f"{name}_probe.wo"))
        done = subprocess.run([gate.WOC, "build", folder], capture_output=True, text=True)
        path = os.path.join(folder, "target", name)
        built[name] = path if done.returncode == 0 and os.path.isfile(path) else None, done.stdout + done.stderr
    return built[name]


def data():
    """A fresh directory for a store."""
    path = tempfile.mkdtemp(prefix="wo-data-")
    atexit.register(shutil.rmtree, path, True)
    return path


class Probe(gate.Server):
    """A probe that serves on a port that the system chose."""

    def __init__(self, leg, name, *args, store=None, env={}):
        self.store = store or data()
        kept = {} if "WO_EPHEMERAL" in env else {"WO_DATA": self.store}
        super().__init__(leg, build(name)[0], "0", *map(str, args), env=dict(kept, **env), files=(8192, 8192))

    def text(self, target, *fields):
        """The body of an answer that has to be 200."""
        status, _, body = self.ask(target, *fields)
        return body if status == 200 else f"status {status}: {body}"

    def number(self, target):
        return int(self.text(target))

    def kill(self):
        """SIGKILL, at once."""
        self.p.kill()
        self.p.wait()


def legs(table, only=()):
    """Runs the legs of a table, name to function, or those of them that are asked for and not skipped."""
    unknown = set(only) - set(table)
    if unknown:
        raise SystemExit(f"no such leg: {unknown}")
    for leg, run in table.items():
        if only and leg not in only:
            continue
        if gate.skipped(leg):
            continue
        try:
            run(leg)
        except Exception:
            gate.check(leg, "ran to its end", False, traceback.format_exc())
