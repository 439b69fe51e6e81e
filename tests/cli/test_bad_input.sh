#!/bin/sh
# No scenario may crash, hang or give a number silently: one message, the right exit code.
. "$(dirname "$0")/common.sh" "$@"

# with OLD NEW: bad.yaml is small.yaml with one replacement
with() {
    sed "s/$1/$2/" small.yaml >bad.yaml
    cmp -s small.yaml bad.yaml && fail "replacement of $1 has no effect"
}

with 'timing:' 'timng:'
expect 2 'bad.yaml:[0-9]+:[0-9]+: .*did you mean "timing"' run bad.yaml
with 'comm_sms' 'com_sms'
expect 2 'bad.yaml:[0-9]+:[0-9]+: .*comm_sms' run bad.yaml
with 'comm_sms: \[4, 8\]' 'chunk: 5us'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'm: 256' 'm: -5'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'm: 256' 'm: 0'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'm: 256' 'm: 99999999999999999999999'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'm: 256' 'm: 1152921504606846976'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'nodes: 2' 'nodes: 4000000000'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'nodes: 2' 'nodes: 0'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with 'gpus_per_node: 2' 'gpus_per_node: 9'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
with '\[4, 8\]' '[4, 500]'
expect 2 'bad.yaml:[0-9]+:[0-9]+: .*(SMs|workers)' run bad.yaml
with 'kernel: ag_gemm' 'kernel: ag_gem'
expect 2 'did you mean "ag_gemm"' run bad.yaml
with 'hgx-h200-cx7' 'hgx-h200-cx8'
expect 2 'did you mean "hgx-h200-cx7"' run bad.yaml
with 'problem:' 'problem: {'
expect 2 'bad.yaml:[0-9]+:[0-9]+: ' run bad.yaml
expect 2 'simm' run small.yaml --backend simm
expect 2 'problem.q' run small.yaml --set problem.q=4
expect 2 'error: --set cpu.*: cpu.transport_options: transport loopback has no option "reoder"; did you mean "reorder"' \
    run small.yaml --set cpu.transport_options=reoder=true
expect 2 'cpu.transport_options: delay_max 5: "5" has no unit' run small.yaml --set cpu.transport_options=delay_max=5
expect 2 'cpu.transport_options: seed lacks a value' run small.yaml --set cpu.transport_options=seed

expect 2 'missing.yaml' run missing.yaml
mkdir folder
expect 2 'folder' run folder
: >empty.yaml
expect 2 'empty.yaml' run empty.yaml
printf '\000\001\377\376ELF\033[31m' >binary.yaml
expect 2 'binary.yaml' run binary.yaml
head -c 3000000 /dev/zero | tr '\0' 'a' >huge.yaml
expect 2 'huge.yaml' run huge.yaml
expect 2 '/dev/zero' run /dev/zero
mkfifo pipe pipe.csv
expect 2 'pipe: is a device, pipe or socket; expected a YAML file' run pipe
expect 2 'pipe.csv: is a device, pipe or socket; expected a table' calibrate h200-1 pipe.csv
for table in pipe nowhere.csv; do
    printf 'published: {table: %s, hardware: h, system: s, library: l}\n' $table | cat small.yaml - >published.yaml
    expect 2 "$table" run published.yaml
done
expect 2 'published.yaml:10:20: published.table: there is no file' run published.yaml
expect 2 '/dev/null' run /dev/null
if [ "$(id -u)" -ne 0 ]; then
    cp small.yaml secret.yaml
    chmod 000 secret.yaml
    expect 2 'secret.yaml' run secret.yaml
fi
[ -e results ] && fail "a refused scenario left results behind"

# Nothing is called proved that was not.
expect 5 '0 of 0 programs proved, 3 points not proved' verify small.yaml --set problem.m=200000000
# Nor is anything timed that no GPU of the machine can hold.
expect 2 'small.yaml:5:3: the buffers of this program take 640.* GB of each GPU; expected at most the 141 GB' \
    run small.yaml --set problem.m=1000000000

expect 5 'needs up to .*\([0-9]+ bytes\)' run small.yaml --memory 1KiB
# Hundreds of times as long as the limit, lest it is done before anybody looks.
expect 4 'no result after .* s of real time' run small.yaml --set problem.m=4000000 --no-verify --timeout 1ms --output none
finish
