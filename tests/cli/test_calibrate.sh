#!/bin/sh
# mkernel calibrate: the shipped machine files are what their measurements give; a changed one is put right; bad input.
. "$(dirname "$0")/common.sh" "$@"

calibrate() {
    code=$1 pattern=$2
    shift 2
    expect "$code" "$pattern" calibrate "$@"
}

# MKERNEL_FEW_MACHINES: sanitizers see what they can see in two.
machines='h200-1 h200-nvlink2 hgx-h200-cx7 hgx-h200-efa'
[ -z "$MKERNEL_FEW_MACHINES" ] || machines='h200-1 hgx-h200-efa'
for machine in $machines; do
    calibrate 0 'constants fitted' $machine --results "$SOURCE/results"
    grep -q replaced out && fail "calibrate $machine does not give the shipped values"
    fitted=$(sed -n 's/^# \([0-9]*\) constants fitted.*/\1/p' out)
    [ "${fitted:-11}" -le 10 ] || fail "$machine has $fitted fitted constants, more than ten"
done
grep -q 'hop .*not determined\|net_rate .*not determined' out || fail 'does not say what is not determined'

# A machine that is 20 % off comes back, in a file of its own that can be used at once.
sed 's/^    1.39ms: 0.668us/    1.39ms: 0.8us/' "$SOURCE/scenarios/machines/h200-1.yaml" >off.yaml
grep -h '"gpu_run"\|"gemm"' "$SOURCE/results/cuda-h200.1.jsonl" >gemm.jsonl
calibrate 0 'gemm.steps.1.39ms +0.8us +0.66.*replaced' off.yaml gemm.jsonl -o fitted.yaml
grep -Eq '^ gemm +fitted +5 .* [0-9]\.[0-9] *$' out || fail 'no residuals'
grep -Eq '^    1.39ms: 0.66[0-9]+us +# fitted .* rows' fitted.yaml || fail "fitted.yaml lacks the step: $(cat fitted.yaml)"
grep -q '^base: off.yaml' fitted.yaml || fail 'fitted.yaml has no base'
calibrate 0 'kept: within two spreads' fitted.yaml gemm.jsonl -o second.yaml
grep -q '^# fitted.yaml has a base itself' second.yaml || fail 'a base of a base was written'
calibrate 2 'second.yaml: exists already' off.yaml gemm.jsonl -o second.yaml
[ -z "$(find . -name '*.yaml.*')" ] || fail 'a temporary file was left behind'
calibrate 5 'cannot write' off.yaml gemm.jsonl -o absent/x.yaml

calibrate 2 'which machine' --results x
calibrate 2 'expected the name of a file' h200-1 --output -
calibrate 2 'no machine "h201-1".*did you mean "h200-1"' h201-1
calibrate 2 'nothing measured on machine off is listed' off.yaml --results "$SOURCE/results"
calibrate 2 'calibration.csv: No such file' h200-1 --results .
calibrate 2 'expected records, one JSON' h200-1 absent.jsonl
calibrate 2 'absent.csv: No such file' h200-1 absent.csv
calibrate 2 'no plain GEMM, attention, copy or quantity' h200-1 off.yaml
sed 's/NVIDIA H200/NVIDIA A100/' gemm.jsonl >other.jsonl
calibrate 2 'other.jsonl:1: measured on NVIDIA A100; machine h200-1 has' h200-1 other.jsonl
sed '3s/8192x8192x8192/8192x0x8192/' gemm.jsonl >zero.jsonl
calibrate 2 'zero.jsonl:3: gemm of shape "8192x0x8192"' h200-1 zero.jsonl
grep -h '"gpu_run"\|"walks"' "$SOURCE/results/cuda-h200-attention.jsonl" >walks.jsonl
calibrate 0 'attention.carry .*read off' h200-1 walks.jsonl
sed '4s/chain of 4/chain of 1/' walks.jsonl >short.jsonl
calibrate 2 'short.jsonl:4: walks of shape "64x12288x128"' h200-1 short.jsonl
sed '2d' walks.jsonl >alone.jsonl
calibrate 2 'alone.jsonl:3: walks of shape "64x12288x128"' h200-1 alone.jsonl
sed '2s/$/}/' gemm.jsonl >broken.jsonl
calibrate 2 'broken.jsonl:2:[0-9]+: ' h200-1 broken.jsonl
head -3 "$SOURCE/results/reference/h200/copies-2gpu.csv" >copies.csv
calibrate 2 'copies between GPUs.*machine h200-1 has one GPU' h200-1 copies.csv
sed '3s/,256,/,0,/' copies.csv >none.csv
calibrate 2 'none.csv:3: size_kib: 0 is no whole number' h200-nvlink2 none.csv
printf 'quantity,bytes,value,unit\nstream hope,,5,us\n' >hope.csv
calibrate 2 'no quantity is called "stream hope"; did you mean "stream hop"' h200-1 hope.csv
printf 'quantity,bytes,value,unit\nstream hop,,-5,us\n' >minus.csv
calibrate 2 'minus.csv:2: value: -5 is no time or rate' h200-1 minus.csv
printf 'quantity,bytes,value,unit\nstream hop,,5,ms\n' >unit.csv
calibrate 2 'unit.csv:2: wrong unit' h200-1 unit.csv
finish
