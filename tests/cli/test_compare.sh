#!/bin/sh
# Two result files side by side: what counts as the same point, as slower, as noise; damaged files.
. "$(dirname "$0")/common.sh" "$@"

run='{"record":"run","schema":1,"version":"0","commit":"c","date":"d","backend":"sim","machine":{"name":"m"}}'
# point M STATUS MEDIAN SAMPLES
point() {
    printf '{"record":"point","kernel":"ag_gemm","variant":"fused","program":"fused","backend":"sim","status":"%s",' "$2"
    printf '"resolved":{"problem.m":"%s","params.chunk":"1MiB"%s},"median_us":%s,"samples_us":[%s]}\n' "$1" "$5" "$3" "$4"
}
file() { { echo "$run"; cat; } >"$1"; }

{ point 1 done 100 99,100,101; point 2 done 100 80,100,120; point 3 done 100 100; point 4 done 100 100; point 5 hang 0; } | file a.jsonl
{ point 1 done 110 109,110,111; point 2 done 110 90,110,130; point 3 done 101 101; point 4 done 90 90; point 5 hang 0; } | file b.jsonl
expect 3 '^5 points in common: 1 slower by more than 2 %, 1 faster, 1 the same, 1 within their spread, 0 failed, 0 fixed, 1 without a time$' \
    compare a.jsonl b.jsonl
for row in 'm=1 +100.00 +110.00 +\+10.00 +2.00 slower' 'm=2 .* noise' 'm=3 .* \+1.00 +0.00 same' 'm=4 .* -10.00 .* faster' 'm=5 +- +- +- +- no time'; do
    grep -Eq "$row" out || fail "compare: no row $row"
done
expect 0 '0 slower by more than 20' compare a.jsonl b.jsonl --threshold 20
expect 0 '0 slower by more than 12 %, 0 faster' compare b.jsonl a.jsonl --threshold 12
expect 3 'junit: j.xml$' compare a.jsonl b.jsonl --junit j.xml
grep -q 'tests="5" failures="1" errors="0" skipped="1"' j.xml || fail "j.xml: wrong counts"
grep -q '<failure type="slower" message="110.00 us, was 100.00 us: +10.0 %"/>' j.xml || fail "j.xml: no failure"
expect 3 ',,,,,no time$' compare a.jsonl b.jsonl --csv
[ "$("$MKERNEL" compare a.jsonl b.jsonl --csv | wc -l)" -eq 6 ] || fail "--csv: not a header and five rows"

# A point that fails now, one that is missing, keys that only one file knows
point 1 wrong 0 | file c.jsonl
expect 1 '1 failed' compare a.jsonl c.jsonl
grep -q 'warning: c.jsonl: 4 points of a.jsonl are missing, the first stands in its line 3' out || fail "nothing said of missing points"
point 1 done 100 100 ',"params.new":"7"' | file d.jsonl
expect 0 '1 points in common' compare a.jsonl d.jsonl
point 9 done 100 100 | file e.jsonl
expect 2 'no point in common' compare a.jsonl e.jsonl
{ point 1 done 1 1; point 1 done 2 2; } | file twins.jsonl
expect 2 'twins.jsonl:3: the same point as in line 2' compare a.jsonl twins.jsonl
# What one file sweeps and the other does not know cannot be paired; where nothing is to be paired it does no harm.
{ point 1 done 1 1 ',"params.new":"7"'; point 1 done 2 2 ',"params.new":"8"'; } | file sweep.jsonl
expect 2 'sweep.jsonl:3: differs from line 2 in params.new, which a.jsonl does not know: .*; expected one value' \
    compare a.jsonl sweep.jsonl
expect 2 'compare: e.jsonl and sweep.jsonl have no point in common' compare e.jsonl sweep.jsonl

# Runs of the command itself, and other machines
expect 0 . run small.yaml --output r.jsonl
expect 0 '^4 points in common: 0 slower' compare r.jsonl r.jsonl
expect 0 . run small.yaml --output h.jsonl --set machine=hgx-h200-efa
expect 3 'on hgx-h200-efa' compare r.jsonl h.jsonl

expect 0 . import nccl-tests "$SOURCE/tests/fuzz/corpus_nccl_tests/all-gather-2x8.txt" --output nccl.jsonl
expect 2 'r.jsonl and nccl.jsonl have no point in common' compare r.jsonl nccl.jsonl

# What a backend does not have is not there; it has not failed.  Names stay one field.
sed "s/unfused: *{}/'a,b \"c\"': {program: unfused}/" small.yaml >names.yaml
expect 0 . run names.yaml --output sim.jsonl
expect 0 . run names.yaml --output cpu.jsonl --backend cpu
expect 3 '^3 points in common: 3 slower .* 0 failed' compare sim.jsonl cpu.jsonl
expect 3 '^ag_gemm,"a,b ""c""",unfused,"ag_gemm a,b ""c"" \(unfused\) ' compare sim.jsonl cpu.jsonl --csv

# What is no result file
expect 2 'a folder' compare a.jsonl .
expect 2 'No such file' compare a.jsonl missing.jsonl
expect 2 'x:1:[0-9]+: not JSON' compare a.jsonl "$(echo '{"record":' >x; echo x)"
expect 2 'y:1: no "record"' compare a.jsonl "$(echo '{"benchmark": 1}' >y; echo y)"
expect 2 'schema 7, expected 1' compare a.jsonl "$(echo '{"record":"run","schema":7}' >z; echo z)"
{ point 1 done -5 1; } | file negative.jsonl
expect 2 'negative.jsonl:2: "median_us" is no time' compare a.jsonl negative.jsonl
{ point 1 done 1e308 1; } | file endless.jsonl
expect 2 'endless.jsonl:2: "median_us" is no time' compare a.jsonl endless.jsonl
{ point 1 done 5 1e308; } | file endless.jsonl
expect 2 'endless.jsonl:2: "samples_us" holds' compare a.jsonl endless.jsonl
sed '$d' r.jsonl >cut.jsonl
expect 0 'warning: cut.jsonl:8: no "end" record' compare r.jsonl cut.jsonl
sed 's/"interrupted":false/"interrupted":true/' r.jsonl >stopped.jsonl
expect 0 'warning: stopped.jsonl:9: this run was interrupted' compare r.jsonl stopped.jsonl
"$MKERNEL" compare r.jsonl r.jsonl 2>&1 | grep warning && fail "warns of a whole file"
{ point 1 done 5 '"x"'; } | file text.jsonl
expect 2 'something that is no time' compare a.jsonl text.jsonl
: >empty.jsonl
expect 2 'empty.jsonl:[01]: no "run" record' compare a.jsonl empty.jsonl
{ :; } | file pointless.jsonl
expect 2 'pointless.jsonl: no point in it' compare a.jsonl pointless.jsonl
expect 2 'pointless.jsonl: no point in it' compare pointless.jsonl a.jsonl
expect 2 'which two result files' compare a.jsonl
expect 2 'one too many' compare a.jsonl a.jsonl a.jsonl
expect 2 'threshold' compare a.jsonl a.jsonl --threshold x
finish
