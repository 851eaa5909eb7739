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

# measure the hello app
bench *ARGS:
    python3 bench/run.py {{ARGS}}

# the hello app against real clients
smoke:
    scripts/hello-accept.sh

# actors and tables
db-actor:
    scripts/db-actor-accept.sh

# mutated corpus files through the compiler, as many as CASES says; fuzz/README.md has the coverage-guided targets
fuzz CASES="20000":
    FUZZ_CASES={{CASES}} cargo test --release -p corpus --test mutate
