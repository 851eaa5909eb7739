#!/usr/bin/env bash
# Acceptance gate of docs/examples/employee: each command is a process of its own, so what one says was done by others
# and came back from the store; one of them is killed in the middle of its work.
# usage: scripts/employee-accept.sh   (WOC names the compiler; default: target/release/woc, built when missing)
# Prints `ok <leg> <name>` or `FAIL <leg> <name> -- <why>`, then `employee: N checks, M failures`; exit 0 iff M = 0.
. "$(dirname "$0")/gate.sh" E00 timeout
for name in $(env | sed -n 's/^\(WO_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
dir=$(mktemp -d)
trap '[ "$failures" = 0 ] && rm -rf "$dir"' EXIT
built=$dir/employee
"$WOC" build docs/examples/employee -o "$built" || { fail E01 build "woc build failed"; echo "employee: $checks checks, $failures failures"; exit 1; }
ok E01 build
export WO_DATA=$dir/data

# leg, status, what it prints, the first line on stderr, then the arguments: one process
says() {
  local leg=$1 status=$2 out=$3 err=$4
  shift 4
  timeout 60 "$built" "$@" >"$dir/out" 2>"$dir/err"
  same "$leg" "$*: status" "$status" $?
  same "$leg" "$*: output" "$out" "$(cat "$dir/out")"
  same "$leg" "$*: error" "$err" "$(head -1 "$dir/err")"
}
# leg, what it prints, the arguments
does() {
  local leg=$1 out=$2
  shift 2
  says "$leg" 0 "$out" "" "$@"
}
# leg, the error, the arguments
refuses() {
  local leg=$1 err=$2
  shift 2
  says "$leg" 1 "" "employee: $err" "$@"
}
misused() {
  local leg=$1 err=$2
  shift 2
  says "$leg" 2 "" "employee: $err" "$@"
  has "$leg" "$*: usage" "usage: employee seed [TRAINEES]" "$(cat "$dir/err")"
}

does E02 nobody list
refuses E02 "nobody is called Ivo Hale; \`employee list\` shows everybody" show "Ivo Hale"
does E02 "hired Nora Voss
hired Ivo Hale
hired Mara Lind
hired Tomas Beck
hired Elin Storm
hired Paul Kerr
hired Rosa Quist
hired Jon Aske" seed
refuses E02 "there are departments already" seed

does E03 "Elin Storm    Painter         Frames   4000  2018-01-08
Ivo Hale      Head of frames  Frames   6100  2012-09-15
Jon Aske      Bookkeeper      Office   4600  2016-10-03
Mara Lind     Head of wheels  Wheels   5900  2013-02-01
Nora Voss     Director        Office   8200  2011-04-01
page 1 of 2, 8 people" list
does E03 "Paul Kerr     Wheelwright     Wheels   3700  2019-11-04
Rosa Quist    Wheelwright     Wheels   3700  2021-05-17
Tomas Beck    Welder          Frames   4300  2015-06-10
page 2 of 2, 8 people" list --page 2
# Equal salaries keep the order in which people came, also where the highest comes first.
does E03 "Elin Storm    Painter         Frames   4000  2018-01-08
Paul Kerr     Wheelwright     Wheels   3700  2019-11-04
Rosa Quist    Wheelwright     Wheels   3700  2021-05-17
page 2 of 2, 8 people" list --order salary --page 2
does E03 "Ivo Hale      Head of frames  Frames   6100  2012-09-15
Tomas Beck    Welder          Frames   4300  2015-06-10
Elin Storm    Painter         Frames   4000  2018-01-08
page 1 of 1, 3 people" list --dept Frames --order hired
does E03 "Ivo Hale, Head of frames
  department  Frames
  salary      6100
  hired       2012-09-15
  reports to  Nora Voss
  manages     Elin Storm, Tomas Beck" show "Ivo Hale"
does E03 "Nora Voss, Director
  department  Office
  salary      8200
  hired       2011-04-01
  reports to  nobody
  manages     Ivo Hale, Jon Aske, Mara Lind" show "Nora Voss"

# changes, each found by later processes: in the row, in the index of the listing, in both backlinks
does E04 "Elin Storm moves from Frames to Wheels" move "Elin Storm" Wheels
does E04 "Elin Storm reports to Mara Lind" report "Elin Storm" "Mara Lind"
does E04 "Elin Storm is Wheelwright now and earns 4150" promote "Elin Storm" Wheelwright 150
does E04 "Mara Lind     Head of wheels  Wheels   5900  2013-02-01
Elin Storm    Wheelwright     Wheels   4150  2018-01-08
Paul Kerr     Wheelwright     Wheels   3700  2019-11-04
Rosa Quist    Wheelwright     Wheels   3700  2021-05-17
page 1 of 1, 4 people" list --dept Wheels --order salary
does E04 "Mara Lind, Head of wheels
  department  Wheels
  salary      5900
  hired       2013-02-01
  reports to  Nora Voss
  manages     Elin Storm, Paul Kerr, Rosa Quist" show "Mara Lind"

# what the store does not let go, and how to make it
refuses E05 "Ivo Hale cannot go: row is still referenced (restrict); \`employee report\` finds another manager for Tomas Beck" fire "Ivo Hale"
refuses E05 "Frames cannot be deleted: row is still referenced (restrict); \`employee move\` finds another department for Ivo Hale, Tomas Beck" delete Frames
refuses E05 "Nora Voss would report to Nora Voss" report "Nora Voss" "Paul Kerr"
does E05 "Tomas Beck reports to Nora Voss" report "Tomas Beck" "Nora Voss"
does E05 "Ivo Hale has left" fire "Ivo Hale"
refuses E05 "nobody is called Ivo Hale; \`employee list\` shows everybody" show "Ivo Hale"
does E05 "Tomas Beck moves from Frames to Office" move "Tomas Beck" Office
does E05 "Frames is no more" delete Frames
refuses E05 "there is no department Frames; there are: Office, Wheels" list --dept Frames
does E05 "Jon Aske      Bookkeeper      Office   4600  2016-10-03
Nora Voss     Director        Office   8200  2011-04-01
Tomas Beck    Welder          Office   4300  2015-06-10
page 1 of 1, 3 people" list --dept Office

misused E06 "a command is missing"
misused E06 "there is no command fly" fly
misused E06 "move takes 2 arguments, 1 are given" move "Paul Kerr"
misused E06 "the raise much is not a number from 0 on" promote "Paul Kerr" Director much
misused E06 "--page is a number from 1 on, not 0" list --page 0
misused E06 "--order is name, salary or hired, not age" list --order age
misused E06 "list has no option --all" list --all yes
misused E06 "a value for --dept is missing" list --dept
refuses E06 "there is no page 3, the last one is 2" list --page 3

# killed in the middle: everybody whose line was printed is there; nobody else but the one whose line was on its way, and
# the next one
export WO_DATA=$dir/killed
"$built" seed 1000000 >"$dir/printed" 2>"$dir/err" &
child=$!
for _ in $(seq 600); do
  [ "$(wc -l <"$dir/printed")" -ge 200 ] && break
  sleep 0.1
done
# bash tells of a killed child on stderr
{ kill -9 $child; wait $child; } 2>/dev/null
same E07 "killed while it worked" 137 $?
printed=$(wc -l <"$dir/printed" | tr -d ' ')
kept=$(timeout 60 "$built" list --dept Frames | sed -n 's/^page 1 of [0-9]*, \([0-9]*\) people$/\1/p')
if [ "$printed" -ge 200 ]; then ok E07 "it had come far enough"; else fail E07 "it had come far enough" "$printed lines"; fi
# five of the first eight are in other departments
lost=$((printed - (kept + 5)))
case $lost in 0 | -1 | -2) ok E07 "no more and no less" ;; *) fail E07 "no more and no less" "$printed printed, $((kept + 5)) there" ;; esac
does E07 "Trainee $((kept - 3)), Trainee
  department  Frames
  salary      2400
  hired       2024-09-01
  reports to  Ivo Hale
  manages     nobody" show "Trainee $((kept - 3))"
refuses E07 "nobody is called Trainee $((kept - 2)); \`employee list\` shows everybody" show "Trainee $((kept - 2))"
does E07 "Trainee 1 moves from Frames to Office" move "Trainee 1" Office
has E07 "the move is kept" "  department  Office" "$("$built" show "Trainee 1")"

# from its sources, where the store is beside them
cp -r docs/examples/employee "$dir/sources"
unset WO_DATA
mkdir "$dir/cwd"
cd "$dir/cwd" || exit 1
"$WOC" run "$dir/sources" -- seed >/dev/null 2>"$dir/err"
has E08 "woc run names the store" "sources/.wo-data" "$(cat "$dir/err")"
has E08 "woc run finds what was done" "page 1 of 2, 8 people" "$("$WOC" run "$dir/sources" -- list 2>/dev/null)"
same E08 "no file elsewhere" "" "$(ls -A "$dir/cwd")"

echo "employee: $checks checks, $failures failures"
[ "$failures" = 0 ]
