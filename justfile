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
    bench/run {{ARGS}}

# the corpus in the release profile
smoke:
    cargo test --release -p corpus --test corpus

# mutate corpus files and feed them to the parser
fuzz *ARGS:
    cargo fuzz run parse {{ARGS}}
