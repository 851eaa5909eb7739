# What the acceptance gates share. Sourced with the leg that a missing tool fails, and the tools:
#   . "$(dirname "$0")/gate.sh" LEG TOOL...
# Goes to the repository's root and exports WOC: the compiler under test, else target/release/woc, built here.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
leg=$1
shift
for tool in "$@"; do
  command -v "$tool" >/dev/null || { echo "FAIL $leg tools -- $tool is missing"; exit 1; }
done
if [ -z "${WOC:-}" ]; then
  WOC=$PWD/target/release/woc
  cargo build --release --quiet -p woc || exit 1
fi
export WOC PYTHONDONTWRITEBYTECODE=1

# Legs of gates that are written in shell.
checks=0 failures=0
ok() { checks=$((checks + 1)); echo "ok   $1 $2"; }
fail() { checks=$((checks + 1)); failures=$((failures + 1)); echo "FAIL $1 $2 -- $3"; }
# leg name expected actual
same() { if [ "$3" = "$4" ]; then ok "$1" "$2"; else fail "$1" "$2" "wanted $(printf %q "$3"), got $(printf %q "$4")"; fi; }
# leg name fragment text
has() { case "$4" in *"$3"*) ok "$1" "$2" ;; *) fail "$1" "$2" "no $(printf %q "$3") in $(printf %q "$4")" ;; esac; }
