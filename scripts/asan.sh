#!/usr/bin/env bash
# The runtime's tests under the address sanitizer; with `corpus`, also `woc` itself over the programs of tests/corpus; with
# `stress`, programs under load that are stopped at random moments (runtime 11.11).
# usage: scripts/asan.sh [corpus|stress]   (ASAN_TARGET names the build directory; default: target/asan)
# Needs no nightly compiler: RUSTC_BOOTSTRAP allows the flag. Exit 0 iff everything passed.
set -eu
cd "$(dirname "$0")/.."
target="${ASAN_TARGET:-$PWD/target/asan}"
mkdir -p "$target"
# The workspace's crates are instrumented; Cranelift and the other dependencies are compiled as ever.
printf '#!/bin/sh\nexec "$@" -Zsanitizer=address\n' >"$target/rustc"
chmod +x "$target/rustc"
export RUSTC_BOOTSTRAP=1 RUSTC_WORKSPACE_WRAPPER="$target/rustc" CARGO_TARGET_DIR="$target"
# Stacks of fibers are the scheduler's own memory: fake stacks would outlive them.
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=${ASAN_LEAKS:-0}:allocator_may_return_null=1:${ASAN_EXTRA:-}"
cargo test --features sched/sanitizer -p abi -p codec -p values -p sched -p builtins --tests
[ -n "${1:-}" ] || exit 0
cargo build --features woc/sanitizer -p woc
woc=$(realpath "$target/debug/woc") root=$PWD
if [ "$1" = stress ]; then
  python3 scripts/stress.py --woc "$woc" --scenario parked-callers --runs 30 --shards 1,4,default --reductions 4000,1 --slack 10
  exec python3 scripts/stress.py --woc "$woc" --runs 5 --slack 10
fi
bad=0 all=0
for case in tests/corpus/run/* tests/corpus/trap/*; do
  args=() vars=() flags=() wanted=0
  [[ $case != tests/corpus/trap/* ]] || wanted=1
  [ ! -f "$case/fixture.exit" ] || wanted=$(tr -d '[:space:]' <"$case/fixture.exit")
  [ ! -f "$case/fixture.flags" ] || for name in $(<"$case/fixture.flags"); do flags+=(-D "$name"); done
  [ ! -f "$case/fixture.args" ] || mapfile -t args <"$case/fixture.args"
  [ ! -f "$case/fixture.env" ] || mapfile -t vars <"$case/fixture.env"
  for way in "1 1" "0 1" "1 4"; do
    read -r opt shards <<<"$way"
    all=$((all + 1))
    scratch=$(mktemp -d)
    err=$scratch/err
    mkdir "$scratch/work"
    status=0
    (cd "$scratch/work" && env WO_SHARDS="$shards" WO_EPHEMERAL=1 WO_OPT="$opt" "${vars[@]}" \
      timeout 120 "$woc" run "${flags[@]}" "$root/$case" -- "${args[@]}") >/dev/null 2>"$err" || status=$?
    # A program that did not run as it should has shown nothing.
    if [ "$status" != "$wanted" ] || grep -q 'AddressSanitizer' "$err"; then
      bad=$((bad + 1))
      echo "FAIL $case (WO_OPT=$opt WO_SHARDS=$shards): status $status, wanted $wanted"
      head -40 "$err"
    fi
    rm -rf "$scratch"
  done
done
echo "asan: $all runs, $bad failures"
[ "$all" -gt 0 ] && [ "$bad" = 0 ]
