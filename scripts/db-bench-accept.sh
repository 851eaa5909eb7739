#!/usr/bin/env bash
# Acceptance gate of docs/examples/db-bench: every figure at a small size, in memory and on disk. What it measures is
# bench/run.py's affair; here each says one line of the right form.
# usage: scripts/db-bench-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `db-bench: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" B00 timeout
for name in $(env | sed -n 's/^\(WO_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
dir=$(mktemp -d)
trap '[ "$failures" = 0 ] && rm -rf "$dir"' EXIT
built=$dir/db-bench
"$WOC" build docs/examples/db-bench -o "$built" || { fail B01 build "woc build failed"; echo "db-bench: $checks checks, $failures failures"; exit 1; }
ok B01 build

# leg, the line with N for each number, the variable that says where the rows are, the arguments
gives() {
  local leg=$1 form=$2 place=$3
  shift 3
  rm -rf "$dir/data"
  local out
  out=$(env "$place" timeout 120 "$built" "$@" 2>"$dir/err")
  same "$leg" "$*: status" 0 $?
  same "$leg" "$*: line" "$form" "$(sed 's/:[0-9.]*\b\([,}]\)/:N\1/g' <<<"$out")"
}
rate='{"per_s":N,"per_cpu_s":N}'
load='"read_p50_us":N,"read_p99_us":N,"read_max_us":N,"write_p50_us":N,"write_p99_us":N,"write_max_us":N}'
memory=WO_EPHEMERAL=1 disk=WO_DATA=$dir/data
gives B02 '{"writers":N,"per_s":N,"per_cpu_s":N,"p50_us":null,"p99_us":null}' $memory insert 1000 3
gives B02 "$rate" $memory update 1000 1 1
gives B02 "$rate" $memory update 1000 4 3
gives B02 "$rate" $memory lookup 1000 1000 2
for kind in items ints indexed links texts; do
  gives B02 '{"per_s":N,"per_cpu_s":N,"bytes":N,"half_bytes":N}' $memory $kind 10000
done
gives B02 '{"deleted_us":N,"refused_us":N}' $memory restrict 1000
gives B03 '{"writers":N,"per_s":N,"per_cpu_s":N,"p50_us":N,"p99_us":N}' "$disk" insert 200 8
gives B03 "$rate" "$disk" update 50 1 1
gives B03 '{"per_s":N,"writes_per_s":N,"p50_us":N,"p99_us":N,"max_us":N}' "$disk" mixed 200 4 200
gives B03 '{"reads_per_s":N,"writes_per_s":N,'"$load" "$disk" load 200 8 50 200
gives B03 '{"rows":N}' "$disk" open

# Each query both ways, and each way the one that its name says.
took=
for query in equal one range prefix first last sorted sort count; do
  took+=",\"${query}_us\":N,\"${query}_loose_us\":N"
done
gives B06 "{${took:1}}" $memory queries 10000
plans=$("$WOC" dump plan docs/examples/db-bench | sed -n 's/.*queries.wo:[0-9]*: //p')
same B06 plans "Part equal shelf
Part equal shelf
Part range weight
Part equal zone aisle
Part walk weight, index
Part walk weight, index
Part range weight, index
Part range weight, sort
Part range weight
LoosePart scan, filter
LoosePart scan, filter
LoosePart scan, filter
LoosePart scan, filter
LoosePart scan, heap
LoosePart scan, heap
LoosePart scan, filter, sort
LoosePart scan, filter, sort
LoosePart scan, filter" "$plans"

export WO_DATA=$dir/killed
"$built" fill 500 >"$dir/out" 2>"$dir/err" &
child=$!
for _ in $(seq 600); do
  [ -s "$dir/out" ] && break
  sleep 0.1
done
# bash tells of a killed child on stderr
{ kill -9 $child; wait $child; } 2>/dev/null
same B04 "says that it has filled" filled "$(cat "$dir/out")"
same B04 "all rows are there after SIGKILL" '{"rows":500}' "$("$built" open)"

for bad in "" "fly" "insert 10" "insert 0 1" "insert ten 1" "open 3"; do
  # the words of an argument list
  # shellcheck disable=SC2086
  "$built" $bad >"$dir/out" 2>"$dir/err"
  same B05 "'$bad' is misuse" 2 $?
  has B05 "'$bad': usage" "usage: db-bench insert" "$(cat "$dir/err")"
done

echo "db-bench: $checks checks, $failures failures"
[ "$failures" = 0 ]
