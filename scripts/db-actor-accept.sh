#!/usr/bin/env bash
# Acceptance gate of docs/examples/db-actor: actors and tables (runtime specification 11.4), in memory and with a store,
# and what a program with a durable table says at its start.
# usage: scripts/db-actor-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `db-actor: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" A00 timeout
for name in $(env | sed -n 's/^\(WO_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
dir=$(mktemp -d)
trap '[ "$failures" = 0 ] && rm -rf "$dir"' EXIT
app=$PWD/docs/examples/db-actor
built=$dir/db-actor
"$WOC" build "$app" -o "$built" || { fail A01 build "woc build failed"; echo "db-actor: $checks checks, $failures failures"; exit 1; }
ok A01 build

# runs a command in an empty directory with WO_STATS; leaves $status, $out, $err
run() {
  rm -rf "$dir/cwd"
  mkdir "$dir/cwd"
  (cd "$dir/cwd" && WO_STATS=1 timeout 60 "$@") >"$dir/out" 2>"$dir/err"
  status=$?
  out=$(cat "$dir/out") err=$(cat "$dir/err")
}
# leg name: the run ended well, with the notice, the counters and nothing else on stderr, and made no file
clean() {
  same "$1" "$2: status" 0 "$status"
  has "$1" "$2: notice" "WO_EPHEMERAL=1" "$(head -1 "$dir/err")"
  has "$1" "$2: nothing left behind" "objects_live=0" "$(tail -1 "$dir/err")"
  same "$1" "$2: nothing else on stderr" 2 "$(wc -l <"$dir/err" | tr -d ' ')"
  same "$1" "$2: no file" "" "$(ls -A "$dir/cwd")"
}

one=$'writer 1 sum 10\nwriter 2 sum 30\nmain 2 rows sum 30'
for opt in 1 0; do
  run env WO_OPT=$opt WO_EPHEMERAL=1 WO_SHARDS=1 "$WOC" run "$app"
  same A02 "one shard, WO_OPT=$opt" "$one" "$out"
  clean A02 "one shard, WO_OPT=$opt"
done
run env WO_EPHEMERAL=1 WO_SHARDS=1 WO_REDUCTIONS=1 "$built"
same A03 "one shard, built, the shortest slices" "$one" "$out"
clean A03 "one shard, built, the shortest slices"

# more shards: the order of the writers is open, and both may see both rows
for shards in 2 4 16 default; do
  for _ in 1 2 3; do
    if [ $shards = default ]; then run env WO_EPHEMERAL=1 "$built"; else run env WO_EPHEMERAL=1 WO_SHARDS=$shards "$built"; fi
    same A04 "shards $shards: last line" "main 2 rows sum 30" "$(tail -1 "$dir/out")"
    same A04 "shards $shards: one line per writer" $'writer 1\nwriter 2' "$(sed -n 's/^\(writer [12]\) sum [0-9]*$/\1/p' "$dir/out" | sort)"
    has A04 "shards $shards: one writer sees both rows" "sum 30" "$(grep '^writer' "$dir/out")"
    same A04 "shards $shards: three lines" 3 "$(wc -l <"$dir/out" | tr -d ' ')"
    clean A04 "shards $shards"
  done
done

# leg name lines: the run ended well, and beside the counters said only so many lines on stderr
kept() {
  same "$1" "$2: status" 0 "$status"
  has "$1" "$2: nothing left behind" "objects_live=0" "$(tail -1 "$dir/err")"
  same "$1" "$2: lines on stderr" $(($3 + 1)) "$(wc -l <"$dir/err" | tr -d ' ')"
}
# durable rows are there at the next start
data=$dir/rows
for rows in 2 4 6; do
  run env WO_DATA="$data" "$built"
  same A06 "start $((rows / 2)): last line" "main $rows rows sum $((rows * 15))" "$(tail -1 "$dir/out")"
  kept A06 "start $((rows / 2))" 0
  same A06 "start $((rows / 2)): nothing elsewhere" "" "$(ls -A "$dir/cwd")"
done
run "$WOC" db check "$data"
same A06 "nothing wrong in the store" 0 "$status"
run "$WOC" db dump "$data"
same A06 "six rows in the store" 6 "$(grep -c '^{"table":"Mark","id":[1-6],"row":{"v":[12]0}}$' "$dir/out")"
# `woc run` keeps them in the project and says so
mkdir "$dir/project"
cp "$app"/wo.toml "$app"/*.wo "$dir/project"
for rows in 2 4; do
  run "$WOC" run "$dir/project"
  same A07 "woc run $((rows / 2)): last line" "main $rows rows sum $((rows * 15))" "$(tail -1 "$dir/out")"
  kept A07 "woc run $((rows / 2))" 1
  for part in "${WOC##*/}: " "$dir/project/.wo-data" WO_DATA; do
    has A07 "woc run $((rows / 2)): names $part" "$part" "$(head -1 "$dir/err")"
  done
  same A07 "woc run $((rows / 2)): nothing elsewhere" "" "$(ls -A "$dir/cwd")"
done

# leg name command...: refused before any code runs, in one line, and nothing was made
refused() {
  local leg=$1 name=$2
  shift 2
  run env WO_STATS=0 "$@"
  same "$leg" "$name: status" 2 "$status"
  same "$leg" "$name: no output" "" "$out"
  same "$leg" "$name: one line" 1 "$(wc -l <"$dir/err" | tr -d ' ')"
  same "$leg" "$name: no file" "" "$(ls -A "$dir/cwd")"
}
refused A05 "no variable" "$built"
for part in "db-actor: " Mark WO_DATA= WO_EPHEMERAL=1 "durable: false"; do has A05 "names $part" "$part" "$err"; done
same A05 "begins with the program" "db-actor: " "${err:0:10}"
refused A08 "both" WO_DATA=rows WO_EPHEMERAL=1 "$built"
has A08 "says so" "WO_EPHEMERAL" "$err"
has A08 "says why" "incompatible with WO_DATA" "$err"
refused A09 "another value" WO_EPHEMERAL=yes "$built"
has A09 "names the value" "WO_EPHEMERAL=yes" "$err"
has A09 "names the right one" "WO_EPHEMERAL=1" "$err"
refused A10 "an empty WO_DATA is none" WO_DATA= "$built"
has A10 "names the class" Mark "$err"

echo "db-actor: $checks checks, $failures failures"
[ "$failures" = 0 ]
