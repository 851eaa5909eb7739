"""What the checks of scripts/crash.py share: programs of this directory, started with faults and ended by force, and
the tool that looks into what they leave."""

import contextlib, json, os, random, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "scenarios"))
import harness
from harness import need

LOG_FAILED = 74
# Compaction has as much to do as it can have.
BUSY = dict(WO_CHECKPOINT_BYTES=4096, WO_CHECKPOINT_RATIO=1)


class Bench:
    """What all checks share, and the directory of the one at hand."""

    def __init__(self, args, seed):
        self.short, self.rng, self.args = args.short, random.Random(seed), args
        self.builder = harness.Builder(args.woc)
        self.shim = self.compile_shim()
        self.running = []

    def compile_shim(self):
        cc = shutil.which("cc") or shutil.which("gcc")
        if cc is None:
            return None
        out = os.path.join(self.builder.dir, "fault.so")
        source = os.path.join(ROOT, "tests/crash/fault.c")
        subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", out, source], check=True)
        return out

    def start(self, name, *args, data, faults=None, before=(), **env):
        """`faults`: what the shim does. `before`: a command that starts the program."""
        program = self.builder.executable(os.path.join("tests/crash", name + ".wo"))
        if faults:
            env.update({f"FAULT_{k.upper()}": v for k, v in faults.items()})
            env.update(FAULT_DIR=os.path.realpath(data), LD_PRELOAD=self.shim)
        run = harness.Running([*before, program, *map(str, args)], harness.environment(WO_DATA=data, **env), self.dir)
        self.running.append(run)
        return run

    def db(self, form, data, before=()):
        argv = [*before, self.builder.woc, "db", *form.split(), data]
        return subprocess.run(argv, capture_output=True, text=True, env=harness.environment())

    def look(self, form, data, before=()):
        """What `woc db` says of a store that nobody has open."""
        done = self.db(form, data, before)
        need(done.returncode == 0, f"woc db {form}: status {done.returncode}", done.stdout[-1000:], done.stderr[-1000:])
        return done.stdout

    def check(self, data, before=()):
        """Nothing is wrong in a store; the ids that the next rows get, by class."""
        need("nothing wrong" in self.look("check", data, before), "woc db check says something else")
        stat = json.loads(self.look("stat --json", data, before))
        return {table["class"]: table["next_id"] for table in stat["tables"]}

    @contextlib.contextmanager
    def place(self):
        self.dir = tempfile.mkdtemp(prefix="wo-crash-")
        try:
            yield self.dir
        finally:
            for run in self.running:
                run.kill()
            self.running = []
            shutil.rmtree(self.dir, ignore_errors=True)
