#!/bin/sh
# A machine as SimGrid reads it, a run as LogGOPSim does.
GOAL_CHECK=$4
PLATFORM_CHECK=$5
. "$(dirname "$0")/common.sh" "$@"

# route FILE HOST HOST EXPECTED: links, bandwidth, latency, and the time of 100 MB
route() {
    "$PLATFORM_CHECK" "$1" "$2" "$3" 2>&1 | tail -1 >out
    grep -qx "$4" out || fail "$1: from $2 to $3 is not \"$4\""
}

expect 0 'platform: hgx.xml' export platform hgx-h200-cx7 --output hgx.xml
route hgx.xml gpu0 gpu1 '2 links 360000000000 B/s 600.0 ns 278.378 us'
route hgx.xml gpu3 gpu12 '4 links 48500000000 B/s 5000.0 ns 2066.856 us'
"$MKERNEL" export platform h200-nvlink2 >two.xml 2>out || fail "to standard output"
route two.xml gpu0 gpu1 '2 links 338000000000 B/s 600.0 ns 296.458 us'
expect 0 . export platform hgx-h200-efa --world 3x4 --output efa.xml
route efa.xml gpu0 gpu11 '4 links 45600000000 B/s .*'
expect 2 'machine' export platform h200-nvlink2 --world 2x2
for world in 8 -2x8 +2x8 ' 2x8' 2x8x 0x8 2x 99999999999x8; do
    expect 2 'expected NODESxGPUS' export platform hgx-h200-cx7 --world "$world"
done
expect 2 'unknown option "--point"' export platform hgx-h200-cx7 --point 1
expect 2 'unknown option "--world"' export goal small.yaml --output x.goal --world 2x8
expect 2 'hgx-h200-cx8' export platform hgx-h200-cx8

# Every kernel: what was sent is received, and an order exists. The longest chain of calcs fits the simulated time.
for scenario in ag_gemm gemm_reduce moe_dispatch_gemm ring_attention; do
    expect 0 "goal: $scenario.goal, the last epoch" export goal "$SOURCE/scenarios/smoke/$scenario.yaml" --output $scenario.goal \
        --set timing.mode=isolated
    took_ns=$(sed -n 's/.*run of \([0-9]*\)\.\([0-9][0-9]\) us/\1\20/p' out)
    "$GOAL_CHECK" $scenario.goal >longest 2>out || fail "$scenario.goal: not a schedule"
    [ "$(cat longest)" -gt 0 ] && [ "$(cat longest)" -le "$took_ns" ] ||
        fail "$scenario.goal: calcs of $(cat longest) ns in a run of $took_ns ns"
done
expect 0 . export goal small.yaml --point 2 --output two.goal
grep -q '^// ag_gemm unfused, 2 x 2 GPUs' two.goal || fail "--point 2 is not the unfused one"
expect 0 . export goal small.yaml --output two.goal --set problem.m=512
[ -e two.goal.1 ] || fail "a schedule was written over"

expect 2 'point 3 of small.yaml is a baseline' export goal small.yaml --point 3 --output x.goal
expect 2 'the points of small.yaml are 0..3' export goal small.yaml --point 4 --output x.goal
expect 2 'tasks; expected at most' export goal "$SOURCE/scenarios/ag_gemm/scale-16x8.yaml" --output x.goal \
    --set 'problem={kernel: ag_gemm, m: 262144, n: 8192, k: 1024}'
expect 2 'where to' export goal small.yaml
expect 2 'which machine' export platform
expect 2 'found "chakra"' export chakra x
[ -e x.goal ] && fail "a refused export left a file"
finish
