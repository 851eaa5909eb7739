#!/usr/bin/env bash
# Explores the orders in which threads may run the lock-free parts of the scheduler (runtime/sched: `inbox`, `counts`)
# with loom: every interleaving and every value that the memory model lets an atomic give, up to loom's bounds.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo test -p sched --features explore --lib explore
