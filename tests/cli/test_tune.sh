#!/bin/sh
# The search as a user meets it: the answer, what it leaves behind, and that the answer repeats.
. "$(dirname "$0")/common.sh" "$@"

expect 0 '^ag_gemm, m 256 n 64 k 128, 2 x 2, isolated: nccl, .* us, .*over the best program' tune small.yaml --points 30 --output t.jsonl --scenario s/tuned
grep -Eq '^  comm_sms  ' out || fail "no landscape"
[ "$("$JSON_LINES" <t.jsonl | sort | uniq -c | tr -s ' \n' ' ')" = " 1 end 32 point 1 run 1 tuned " ] ||
    fail "t.jsonl: not the records expected"

# What it prints and what it writes give the time that it promises.
program=$(sed -n 's/.*"program_us":\([0-9.]*\).*/\1/p' t.jsonl)
sets=$(grep -o -- '--set variants.*' out)
[ -n "$program" ] && [ -n "$sets" ] || fail "no answer to repeat"
expect 0 "\"median_us\":$program,.*" run s/tuned.yaml --json --output none
expect 0 "\"median_us\":$program,.*" run small.yaml $sets --json --output none

# Nothing is overwritten; the same seed and budget give the same answer however many run at once.
expect 0 'results: t.jsonl.1$' tune small.yaml --points 6 --output t.jsonl
"$MKERNEL" tune small.yaml --points 30 --output none --jobs 1 >one
"$MKERNEL" tune small.yaml --points 30 --output none --jobs 4 >four
cmp one four || fail "--jobs changes the answer"
expect 0 'results: results/local/small-tune-' tune small.yaml --points 3
"$MKERNEL" tune small.yaml --points 6 --json --output none | "$JSON_LINES" >out || fail "--json: not JSON lines"
expect 0 'programs timed' tune small.yaml --time 2s --output none
# Each problem its own scenario
expect 0 'scenario: two-2.yaml' tune small.yaml --points 4 --set 'problem.m=[128,256]' --output none --scenario two.yaml
expect 0 'ag_gemm' run two-1.yaml two-2.yaml --output none

sed '/fused:/d' small.yaml >baseline.yaml
expect 2 'all variants are baselines' tune baseline.yaml --output none
expect 2 'one too many' tune small.yaml small.yaml
expect 2 '--points 0' tune small.yaml --points 0
expect 2 'unit' tune small.yaml --time 5
expect 2 'option --scenario needs a value' tune small.yaml --scenario ''
expect 2 'did you mean "--points"' tune small.yaml --point 3
expect 4 'no progress' tune small.yaml --points 4 --set sim.fault=dropped_put --output none
finish
