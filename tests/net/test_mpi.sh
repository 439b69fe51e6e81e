#!/bin/sh
# test_mpi.sh MKERNEL JSON_LINES SOURCE_FOLDER: two processes of mpirun, one a node, on the cpu backend over TCP.
. "$(dirname "$0")/../cli/common.sh" "$@"
MPI=$SOURCE/scripts/mpi
HERE="--backend cpu --transport ofi"
# Open MPI gives the others a second to end when one has failed.  By then they have said all: MPI_Finalize() waits.
export OMPI_MCA_odls_base_sigkill_timeout=0

"$MKERNEL" doctor >doctor
for part in MPI libfabric launcher; do
    grep -Eq "^ok +$part" doctor || {
        echo "test_mpi: skipped: no $part"
        exit 77
    }
done

# together CODE PATTERN ARGS...: like expect, with two processes, and in under 60 seconds
together() {
    code=$1
    pattern=$2
    shift 2
    timeout 60 "$MPI" 2 "$MKERNEL" "$@" >out 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] || fail "two nodes: mkernel $*: exit code $got, expected $code"
    grep -Eq -- "$pattern" out || fail "two nodes: mkernel $*: does not say \"$pattern\""
    grep -q "$(printf '\033')" out && fail "two nodes: mkernel $*: colour, though nobody reads it on a terminal"
}

# scenario NAME PROBLEM PARAMETERS MODES: two nodes of two GPUs; the cpu backend checks every element
scenario() {
    cat >"$1.yaml" <<END
problem:  $2
machine:  hgx-h200-cx7
world:    {nodes: 2, gpus_per_node: 2}
variants:
  fused:   $3
timing:   {mode: $4, warmup: 0, iterations: 3}
END
}

# ---- every kernel, over several epochs ----

scenario gemm '{kernel: [ag_gemm, gemm_rs, gemm_ar], m: 72, n: 40, k: 65}' '{tile_m: 16, tile_n: 32, chunk: 1KiB}' \
    '[pipelined, isolated]'
scenario attention '{kernel: ring_attention, seq: 61, heads: 2, kv_heads: 1, head_dim: 64, causal: true}' \
    '{tile_m: 16, chunk: 2KiB}' pipelined
scenario moe '{kernel: moe_dispatch_gemm, tokens: 60, hidden: 65, inter: 70, experts: 8, top_k: 2}' \
    '{tile_m: 16, tile_n: 32, chunk: 1KiB}' pipelined
for file in gemm attention moe; do
    together 0 'fused' run $file.yaml $HERE --output $file.jsonl
    "$JSON_LINES" $file.jsonl >/dev/null || fail "$file: the result file is no JSON lines"
    [ "$(ls $file.jsonl*)" = $file.jsonl ] || fail "$file: more than one result file"
    grep -q '"elements_checked": *0[,}]' $file.jsonl && fail "$file: nothing was checked"
    grep -q '"latency_p99_us"' $file.jsonl || fail "$file: no counters of the proxy"
done

# ---- what does not fit ----

sed 's/nodes: 2/nodes: 3/' gemm.yaml >three.yaml
together 2 'three.yaml:3:19: nodes: 3 in the scenario, but 2 processes' run three.yaml $HERE
together 2 'backend sim runs all nodes in one process' run gemm.yaml
together 2 'loopback stays inside one process' run attention.yaml --backend cpu --output none
together 2 'did you mean "ofi"' run gemm.yaml --backend cpu --transport off
together 2 'no option "povider"; did you mean "provider"' run attention.yaml $HERE --output none \
    --set 'cpu.transport_options=povider=tcp'
[ "$(grep -c povider out)" -eq 1 ] || fail "both nodes' words are printed"
if grep -q '^absent (optional) *cuda backend *no CUDA device' doctor; then
    together 5 'backend cuda cannot run here: no CUDA device' run gemm.yaml --backend cuda --transport ofi
fi
timeout 60 "$MPI" 1 "$MKERNEL" run gemm.yaml $HERE : -np 1 "$MKERNEL" run gemm.yaml $HERE --set problem.m=80 >out 2>&1
[ $? -eq 2 ] || fail "two scenarios are not refused"
grep -q 'reads another scenario' out || fail "two scenarios are not named"

# ---- a node's run, or all of a node, dies ----

# begin: a run that would take minutes, in the background; sets $mpirun, and $node1 and $run1, its parent and child
begin() {
    timeout 60 "$MPI" 2 "$MKERNEL" run attention.yaml $HERE --output none \
        --set problem.seq=2000 --set problem.heads=8 --set timing.iterations=256 >out 2>&1 &
    mpirun=$!
    run1=
    while [ -z "$run1" ] && kill -0 $mpirun; do
        sleep 0.2
        node1=$(pgrep -f "^$MKERNEL run attention.yaml" | while read -r pid; do
            grep -qz '^OMPI_COMM_WORLD_RANK=1$' "/proc/$pid/environ" && echo "$pid" && break
        done)
        [ -z "$node1" ] || run1=$(pgrep -P "$node1")
    done
    sleep 0.5
    began=$(date +%s)
}

# ended_soon CODE PATTERN
ended_soon() {
    wait $mpirun
    got=$?
    [ $(($(date +%s) - began)) -lt 10 ] || fail "ten seconds after the fault it was still there"
    echo "$got" | grep -Eq "^($1)$" || fail "exit code $got, expected $1"
    grep -Eq "$2" out || fail "does not say $2"
}

begin
kill -KILL "$run1"
ended_soon '4|5' 'node 1 on .*killed by signal 9'

begin
kill -KILL "$node1"
ended_soon '137' 'rank 1.*signal 9'
finish
