# Each recipe is one call of cargo, woc or a script.

# every test of the workspace
test:
    cargo test

# the gate of continuous integration
check:
    .ci/run

# serve the hello app
hello *ARGS:
    cargo run --release -p woc -- run docs/examples/hello -- {{ARGS}}

# measure beside native peers
bench *ARGS:
    python3 bench/run.py {{ARGS}}

# the hello app against real clients
smoke:
    scripts/hello-accept.sh

# chat rooms over WebSockets against real clients
chat:
    scripts/chat-accept.sh

# the storefront and porch's durable middleware against real clients
web-app:
    cargo build --release --quiet -p woc
    scripts/web-app-accept.sh

# four HTTP clients get the same answers of the storefront; the clients have to be there
web-app-clients *ARGS:
    cargo build --release --quiet -p woc
    python3 scripts/storefront-clients.py --all {{ARGS}}

# the storefront killed under load
web-app-crash *ARGS:
    cargo build --release --quiet -p woc
    python3 scripts/storefront-crash.py --runs 50 {{ARGS}}

# edits of porch that have to turn the web-app gate's legs red
gate-mutants *LEGS:
    cargo build --release --quiet -p woc
    scripts/gate-mutants.sh {{LEGS}}

# the fibers example
fibers:
    scripts/fibers-accept.sh

# the runtime's acceptance scenarios, all of them at every setting and full size
scenarios *ARGS:
    scripts/scenarios-accept.sh --full {{ARGS}}

# programs under load, stopped at random moments
stress *ARGS:
    python3 scripts/stress.py {{ARGS}}

# durable tables: killed processes, failing disks, races, and many seeds of the simulated disk
crash *ARGS:
    python3 scripts/crash.py {{ARGS}}

# the reader of stores that is written from docs/store-format.md, against `woc db`
format *ARGS:
    python3 scripts/format.py {{ARGS}}

# random queries with and without indexes
queries *ARGS:
    python3 scripts/queries.py {{ARGS}}

# actors and tables
db-actor:
    scripts/db-actor-accept.sh

# departments and people in a durable store
employee:
    scripts/employee-accept.sh

# the program that measures the store, at a small size
db-bench:
    scripts/db-bench-accept.sh

# mutated corpus files through the compiler, as many as CASES says; fuzz/README.md has the coverage-guided targets
fuzz CASES="20000":
    FUZZ_CASES={{CASES}} cargo test --release -p corpus --test mutate
