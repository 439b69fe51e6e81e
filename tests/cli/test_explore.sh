#!/bin/sh
# Exploration as a user meets it: what passes, what fails, and that the command printed repeats the failure.
. "$(dirname "$0")/common.sh" "$@"

expect 0 '^small.yaml: 30 runs of 3 programs in .* seeds 5 to 14: nothing found$' explore small.yaml --seeds 10 --first 5
sed '/fused:/d' small.yaml >baseline.yaml
expect 2 'all variants are baselines' explore baseline.yaml
expect 2 'one too many' explore small.yaml small.yaml
expect 2 '--seeds 0' explore small.yaml --seeds 0
expect 2 'did you mean "--seeds"' explore small.yaml --seed 3

# A fault that every seed runs into, and the command that is printed for it.
expect 4 'fails with seed 7: no progress' explore small.yaml --first 7 --seeds 2 --set sim.fault=dropped_put --jobs 1
cp out first
repeat=$(sed -n 's/^repeat it with: mkernel //p' out)
[ -n "$repeat" ] || fail "no command to repeat it"
eval "timeout 120 \"$MKERNEL\" $repeat" >out 2>&1
[ $? -eq 4 ] && cmp -s first out || fail "mkernel $repeat: not the same failure"
sed -e 's/{kernel.*}/{kernel: moe_dispatch_gemm, tokens: 16, hidden: 16, inter: 16, experts: 4, top_k: 2, capacity: 4}/; /check/d; s/comm_sms: .4, 8./comm_sms: 4/' small.yaml >moe.yaml
expect 4 'moe_dispatch_gemm fused, tokens [0-9]+ hidden .* fails with seed 1' explore moe.yaml --seeds 1 --set sim.fault=dropped_put
expect 1 'fails with seed 1: wrong result' explore small.yaml --seeds 3 --set sim.fault=duplicated_put
finish
