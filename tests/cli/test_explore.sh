#!/bin/sh
# Exploration as a user meets it: what passes, what fails, and that the command printed repeats the failure.
. "$(dirname "$0")/common.sh" "$@"

expect 0 '^small.yaml: 30 runs of 3 programs in .* seeds 5 to 14: nothing found$' explore small.yaml --seeds 10 --first 5
sed '/fused:/d' small.yaml >baseline.yaml
expect 2 'all variants are baselines' explore baseline.yaml
expect 2 'one scenario at a time' explore small.yaml small.yaml
expect 2 '--seeds 0' explore small.yaml --seeds 0
expect 2 'did you mean "--seeds"' explore small.yaml --seed 3

# A fault that every seed runs into, and the command that is printed for it.
expect 4 'fails with seed 7: no progress' explore small.yaml --first 7 --seeds 2 --set sim.fault=dropped_put --jobs 1
cp out first
repeat=$(sed -n 's/^repeat it with: mkernel //p' out)
[ -n "$repeat" ] || fail "no command to repeat it"
eval "timeout 120 \"$MKERNEL\" $repeat" >out 2>&1
[ $? -eq 4 ] && cmp -s first out || fail "mkernel $repeat: not the same failure"
expect 1 'fails with seed 1: wrong result' explore small.yaml --seeds 3 --set sim.fault=duplicated_put
finish
