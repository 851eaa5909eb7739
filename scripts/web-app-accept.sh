#!/usr/bin/env bash
# Acceptance gate of the storefront (docs/examples/web-app) and of porch's durable middleware, with real clients.
# usage: scripts/web-app-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# WA_PORT: the storefront's port, else a free one. GATE_SKIP="W68 ..." leaves legs out, which fails the gate unless
# GATE_SKIP_OK=1. Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `web-app: N checks, M failures`.
tools="curl git python3 gzip"
# The clock leg's.
case " ${GATE_SKIP:-} " in *" W68 "*) ;; *) tools="$tools faketime" ;; esac
# shellcheck disable=SC2086
. "$(dirname "$0")/gate.sh" W0 $tools
ulimit -n 8192 || exit 1
exec python3 - <<'PY'
import sys

sys.path.insert(0, "scripts")
import gate
from web_app import idempotent, limiter, storefront

storefront.run()
limiter.run()
idempotent.run()
gate.finish("web-app")
PY
