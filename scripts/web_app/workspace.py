"""Copies of porch and of programs that use it, as their users have them: porch in a git repository, fetched by tag."""
import atexit, os, shutil, subprocess, tempfile

from gate import WOC
from web_app.probes import PORCH

EXAMPLES = os.path.join("docs", "examples")
PATH_DEP = 'porch = { path = "../porch" }'
# No settings of the user's own, and no network.
GIT = dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0",
           GIT_AUTHOR_NAME="gate", GIT_AUTHOR_EMAIL="gate@localhost", GIT_COMMITTER_NAME="gate", GIT_COMMITTER_EMAIL="gate@localhost")


def copy(name, to):
    source = PORCH if name == "porch" else os.path.join(EXAMPLES, name)
    shutil.copytree(source, to, ignore=shutil.ignore_patterns("target", ".wo-*", "wo.lock", "data"))


class Workspace:
    """A temporary directory, gone at the end of the process, with porch in it as a repository tagged v0.1.0."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="web-app-gate-")
        atexit.register(shutil.rmtree, self.dir, ignore_errors=True)
        self.porch = self.path("porch")
        copy("porch", self.porch)
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "porch"], ["tag", "v0.1.0"]):
            subprocess.run(["git", "-C", self.porch, *command], check=True, env=GIT)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def app(self, name, copied=None):
        """A copy of an example program that takes porch from the repository."""
        to = self.path(copied or name)
        copy(name, to)
        edit(os.path.join(to, "wo.toml"), PATH_DEP, f'porch = {{ git = "file://{self.porch}", rev = "v0.1.0" }}')
        return to


def edit(path, old, new):
    """Replaces `old` by `new` in a file that has it exactly once."""
    with open(path) as f:
        text = f.read()
    if text.count(old) != 1:
        raise SystemExit(f"{path} has {old!r} {text.count(old)} times")
    with open(path, "w") as f:
        f.write(text.replace(old, new))


def woc(*args):
    """Exit status and all output of the compiler."""
    done = subprocess.run([WOC, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=GIT, timeout=120)
    return done.returncode, done.stdout
