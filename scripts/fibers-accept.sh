#!/usr/bin/env bash
# Acceptance gate of docs/examples/fibers: slices and sleepers (runtime 11.1 and 11.2) at several shard counts, with
# optimisation on and off.
# usage: scripts/fibers-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `fibers: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" F00 awk mktemp
dir=$(mktemp -d)
cleanup() { [ "$failures" = 0 ] && rm -rf "$dir"; }
trap cleanup EXIT
for name in $(env | sed -n 's/^\(WO_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done

# settings program -- lines to stdout; the status, and stderr but for the counters, to files
run() {
  env "${settings[@]}" WO_STATS=1 timeout 20 "$WOC" run docs/examples/fibers -- "$1" 2>"$dir/stderr"
  echo $? >"$dir/status"
}
# leg name -- how the last run ended
ended() {
  same "$1" "$2 status" 0 "$(cat "$dir/status")"
  same "$1" "$2 stderr" "" "$(grep -v '^wostats ' "$dir/stderr")"
  has "$1" "$2 objects" "objects_live=0" "$(grep '^wostats ' "$dir/stderr")"
}

for shards in 1 4 default; do
  for opt in 1 0; do
    for io in unset epoll; do
      settings=(WO_OPT=$opt)
      [ $shards = default ] || settings+=(WO_SHARDS=$shards)
      [ $io = unset ] || settings+=(WO_IO=$io)
      at="shards=$shards opt=$opt io=$io"
      same F01 "slices $at" $'meter 10\nmeter 30\nmeter 60\nspun' "$(run slices)"
      ended F02 "slices $at"
      run sleepers >"$dir/lines"
      same F03 "ticks $at" "$(seq -f 'tick %g' 8)" "$(grep '^tick' "$dir/lines")"
      same F04 "lines $at" 11 "$(wc -l <"$dir/lines")"
      same F05 "down and up $at" $'down\nup' "$(grep -v -e '^tick' -e '^end$' "$dir/lines")"
      same F06 "last $at" end "$(tail -1 "$dir/lines")"
      between=$(awk '/^down$/ { on = 1 } /^up$/ { on = 0 } on && /^tick/ { n++ } END { print n + 0 }' "$dir/lines")
      same F07 "ticks between down and up $at" yes "$([ "$between" -ge 3 ] && echo yes || echo "only $between")"
      ended F08 "sleepers $at"
    done
  done
done
if "$WOC" run docs/examples/fibers >/dev/null 2>"$dir/stderr"; then status=0; else status=$?; fi
same F09 usage "2 usage: fibers slices|sleepers" "$status $(cat "$dir/stderr")"
echo "fibers: $checks checks, $failures failures"
[ "$failures" = 0 ]
