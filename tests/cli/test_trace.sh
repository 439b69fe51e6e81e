#!/bin/sh
# Traces: strict JSON of the documented form, the same tasks in sim and cpu, never larger than asked for.
TRACE_CHECK=$4
. "$(dirname "$0")/common.sh" "$@"

# check FILE NAMES: the file is as docs/trace.md says; its tasks go to NAMES
check() {
    "$TRACE_CHECK" "$1" >names 2>out || fail "$1: not as docs/trace.md says"
    sort -u names >"$2"
    [ -s "$2" ] || fail "$1: no task in it"
}

one="--set variants.fused.comm_sms=4 --output none --no-verify"
# shellcheck disable=SC2086  # words
{
    sed -e '/unfused/d' -e '/nccl/d' small.yaml >one.yaml
    expect 0 'trace: sim.json$' run one.yaml $one --trace sim.json
    expect 0 'trace: cpu.json$' run one.yaml $one --trace cpu.json --backend cpu
}
check sim.json sim.names
check cpu.json cpu.names
diff sim.names cpu.names >out || fail "sim and cpu name tasks differently"
for event in '"ph":"s"' '"ph":"f"' '"name":"nic GB/s"' '"name":"nvlink GB/s"' '"name":"wait ready\[' '"name":"put #0"'; do
    grep -q "$event" sim.json || fail "sim.json: no $event"
done

# The names are what `show` prints.
"$MKERNEL" show one.yaml --program 0 --set variants.fused.comm_sms=4 --tasks all >out
sed -n 's/^0 [a-z]* //p' sim.names | sort -u | while read -r name; do
    grep -q "^  $name\( \|\$\)" out || echo "$name"
done >missing
[ -s missing ] && fail "show does not know these: $(cat missing)"

# Several points, each with a file of its own; names that are taken stay as they are; compressed
expect 0 'trace: t-2.json.gz$' run small.yaml --output none --trace t.json.gz
gzip -t t-0.json.gz t-1.json.gz t-2.json.gz 2>out || fail "not gzip"
gzip -dc t-2.json.gz >t-2.json && check t-2.json names2
[ -e t-3.json.gz ] && fail "a trace of a baseline"
expect 0 'trace: sim.json.1$' run one.yaml --output none --no-verify --trace sim.json --set variants.fused.comm_sms=4
cmp sim.json sim.json.1 || fail "a trace does not repeat"

# The result says where it is.
expect 0 . run one.yaml --set variants.fused.comm_sms=4 --output r.jsonl --trace r.json
grep -q '"trace":"r.json"' r.jsonl || fail "r.jsonl does not name its trace"

# Smaller than asked for, and it says how
expect 0 'trace: large.json holds one worker a crew, .*16 ranks \(--trace-limit' \
    run one.yaml --output none --no-verify --trace large.json --trace-limit 1MiB \
    --set world.nodes=2 --set world.gpus_per_node=8 --set 'problem={kernel: ag_gemm, m: 16384, n: 1024, k: 16384}' \
    --set variants.fused.comm_sms=8
[ "$(wc -c <large.json)" -le 1048576 ] || fail "large.json is larger than 1 MiB"
check large.json names3
grep -q '"left_out":"one worker a crew' large.json || fail "large.json does not say what it lacks"
grep -q '"name":"compute workers"' large.json || fail "large.json: no counters of its crews"

# A hang leaves its trace; what cannot be written is an error.
cat >hang.yaml <<'END'
sim: {fault: dropped_put}
END
cat one.yaml hang.yaml >hangs.yaml
expect 4 'no progress' run hangs.yaml --output none --trace hang.json --set variants.fused.comm_sms=4
check hang.json names4
expect 5 'No space left|cannot write' run one.yaml --output none --trace /dev/full --set variants.fused.comm_sms=4
expect 2 'expected a size' run one.yaml --trace x.json --trace-limit 5
expect 2 'only baselines' run one.yaml --trace x.json --set 'variants={nccl: {}}'
finish
