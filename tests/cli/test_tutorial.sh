#!/bin/sh
# The commands of docs/tutorial.md, as they stand.
. "$(dirname "$0")/common.sh" "$@"
ln -s "$SOURCE/scenarios" "$SOURCE/tests" .
mkdir bin
ln -s "$MKERNEL" bin/mkernel
PATH=$WORK/bin:$PATH

grep -E '^    (mkernel|cp) ' "$SOURCE/docs/tutorial.md" >commands
[ "$(wc -l <commands)" -ge 8 ] || fail "docs/tutorial.md: fewer commands than it had"
sh -e commands >out 2>&1 || fail "a command of docs/tutorial.md fails"
for file in mine.yaml mine.jsonl split.jsonl fused-0.json.gz report.html both.html compare.xml; do
    [ -s $file ] || fail "docs/tutorial.md: no $file at the end"
done
for picture in report.png timeline.png; do
    [ -s "$SOURCE/docs/$picture" ] || fail "docs/$picture is missing"
done
finish
