"""Legs W1 to W7, W57, W58: what the compiler makes of porch and its programs, and what they refuse at their start."""
import glob, os, re, subprocess

import gate
from gate import Server, check, same
from web_app.client import TOKEN
from web_app.workspace import edit, woc


def build(space):
    app = space.app("web-app")
    status, out = woc(app)
    built = os.access(os.path.join(app, "target", "web-app"), os.X_OK)
    good = status == 0 and built and os.path.exists(os.path.join(app, "wo.lock"))
    check("W1", "woc builds the app and locks porch", good, (status, out))
    if not good:
        gate.finish("web-app")
    return app


def compile_legs(space):
    same("W2", "woc on porch says nothing", (0, ""), woc(space.porch))
    bad = space.app("web-app", "web-app-internal")
    edit(os.path.join(bad, "main.wo"), "-- web-app <port>:", "use porch/internal\n-- web-app <port>:")
    status, out = woc(bad)
    check("W3", "internal modules stay internal", status == 1 and "main.wo:1:1" in out and "WO-E108" in out, (status, out))
    bad = space.app("web-app", "web-app-junk")
    edit(os.path.join(bad, "wo.toml"), 'version = "0.1.0"', 'version = "0.1.0"\nkind = "junk"')
    status, out = woc(bad)
    check("W4", "an unknown kind", status == 2 and "WO-E109" in out and "junk" in out, (status, out))
    for name in ("hello", "chat"):
        app = space.app(name)
        status, out = woc(app)
        built = os.access(os.path.join(app, "target", name), os.X_OK)
        check("W5", f"woc builds {name}", status == 0 and built, (status, out))


def code_of(path):
    """The source without comments and texts."""
    with open(path) as f:
        return re.sub(r'--[^\n]*|"(?:\\.|[^"\\])*"', "", f.read())


def static_legs(space):
    middleware = os.path.join(space.porch, "middleware")
    limiter = code_of(os.path.join(middleware, "limiter.wo"))
    touches = re.findall(r"\b(?:from|insert|delete|select|RateLimitCounter|IdempotencyKey|rate_limit_counters|idempotency_keys)\b", limiter)
    same("W6", "the limiter touches no table", [], touches)
    with open(os.path.join(middleware, "limiter.wo")) as f:
        same("W6", "nor names one", [], re.findall("rate_limit_counters|idempotency_keys", f.read()))
    store = code_of(os.path.join(middleware, "store.wo"))
    declared = re.findall(r"^\s*(?:pub )?(class|typedef|type|interface|fn|const|test)\b", store, re.M)
    same("W6", "store.wo declares its two classes", ["class"] * 2, declared)
    swallowed = [(os.path.basename(f), found) for f in sorted(glob.glob(os.path.join(middleware, "*.wo")))
                 for found in re.findall(r"[^\n]*\bcatch \(\w+\)\s*(?:nil\b|\{\s*(?:nil\s*)?\})", code_of(f))]
    same("W6", "no failure is swallowed", [], swallowed)


def gc_leg(space, app):
    for path in (app, space.path("hello"), space.path("chat")):
        status, out = woc("dump", "gc", path)
        traced = [line.split()[0] for line in out.splitlines() if line.split()[1:2] == ["gc"]]
        same("W58", f"only Pool is traced in {os.path.basename(path)}", (0, ["Pool"]), (status, traced))


def start_legs(space, app):
    program = os.path.join(app, "target", "web-app")

    def run(*args, **env):
        clean = {k: v for k, v in os.environ.items() if k not in ("WO_DATA", "WO_EPHEMERAL", "WA_TOKEN")}
        try:
            done = subprocess.run([program, *args], env={**clean, **env}, capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired as e:
            return "runs on", e.stdout, e.stderr
        return done.returncode, done.stdout, done.stderr

    status, out, err = run("0", WA_TOKEN=TOKEN)
    check("W7", "no store, no start", status == 2 and "WO_DATA" in err and out == "", (status, out, err))
    for leg, name, args, env in [
        ("W57", "no port", [], {"WA_TOKEN": TOKEN}), ("W57", "two ports", ["0", "0"], {"WA_TOKEN": TOKEN}),
        ("W57", "no number", ["8o"], {"WA_TOKEN": TOKEN}), ("W57", "a port too large", ["65536"], {"WA_TOKEN": TOKEN}),
        ("W57", "no token", ["0"], {}), ("W57", "an empty token", ["0"], {"WA_TOKEN": ""}),
        ("W57", "WA_LIMIT=x", ["0"], {"WA_TOKEN": TOKEN, "WA_LIMIT": "x"}),
        ("W57", "WA_IDLE_MS=-1", ["0"], {"WA_TOKEN": TOKEN, "WA_IDLE_MS": "-1"}),
    ]:
        status, out, err = run(*args, WO_DATA=space.path("unused"), **env)
        check(leg, name, status == 2 and out == "" and "usage: " in err, (status, out, err))
    for name, target in [("hello", "/health"), ("chat", "/")]:
        other = Server("W7", os.path.join(space.path(name), "target", name), "0")
        same("W7", f"{name} needs no store", 200, other.ask(target)[0])
        other.stop("W7", f"{name} stops")


def legs(space, app):
    compile_legs(space)
    start_legs(space, app)
    static_legs(space)
    gc_leg(space, app)
