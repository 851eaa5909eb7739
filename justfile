# Each recipe is one call of cargo, woc or a script.

# every test of the workspace
test:
    cargo test --workspace

# the gate of continuous integration
check:
    .ci/run

# serve the hello app
hello *ARGS:
    cargo run --release -p woc -- run docs/examples/hello -- {{ARGS}}

# measure the hello app
bench *ARGS:
    python3 bench/run.py {{ARGS}}

# the corpus in the release profile
smoke:
    cargo test --release -p corpus --test corpus

# mutated corpus files through the compiler, as many as FUZZ_CASES says
fuzz CASES="20000":
    FUZZ_CASES={{CASES}} cargo test --release -p corpus --test mutate
