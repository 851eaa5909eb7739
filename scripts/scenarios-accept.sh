#!/usr/bin/env bash
# Acceptance gate of the runtime specification's section 11: tests/scenarios, each program a process of its own.
# usage: scripts/scenarios-accept.sh [--full] [--shards LIST] [--only WORD] ...   (WOC names the compiler; default:
#        target/release/woc, built when missing; tests/scenarios/run.py says the rest)
. "$(dirname "$0")/gate.sh" S00 python3
exec python3 tests/scenarios/run.py "$@"
