#!/bin/sh
# One node for all: the same times as every node by itself, for every kernel whose ranks do the same, and a refusal
# elsewhere.
. "$(dirname "$0")/common.sh" "$@"

run() {
    "$MKERNEL" run "$@" --csv --no-verify --output none 2>out
}

# Status, model, time, tasks, puts and flows of each row; quoted cells may hold commas.
rows() {
    sed 's/"[^"]*of \([0-9]* nodes\)[^"]*"/folded/g; s/"[^"]*"/text/g' "$1" | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["tasks"] > 0 { print $at["median_us"], $at["tasks"], $at["puts"], $at["flows"], $at["model"] }'
}

# FILE: folded and whole on the worlds of the issue; times within 0.5 %, the rest the same.
same() {
    for world in "2 4" "2 8" "4 8"; do
        set -- "$1" $world
        for fold in none node; do
            run "$1" --set sim.engine=fluid --set sim.fold=$fold --set world.nodes="$2" \
                --set world.gpus_per_node="$3" >$fold.csv || fail "$1, $2 x $3, fold $fold"
            rows $fold.csv >$fold
        done
        paste none node | awk '{ d = $1 > $6 ? $1 - $6 : $6 - $1 }
            $5 ~ /folded/ || $10 !~ /folded/ || d > 0.005 * $1 || $2 != $7 || $3 != $8 || $4 != $9 {
                print "row " NR ": " $0; bad = 1 }
            END { exit bad || NR == 0 }' >out || fail "$1, $2 x $3: folding changes the result"
    done
}

# PATTERN OPTIONS...: refused, with a reason.
refused() {
    expect 2 "sim.fold: one node cannot stand for all [0-9]*: .*$1" \
        run "$2" --no-verify --output none --set sim.fold=node --set world.nodes=4
}

gemm='tile_m: 16, tile_n: 32, chunk: 2KiB'
cat >gathers.yaml <<EOF
problem:  {kernel: ag_gemm, m: 1024, n: 96, k: 64}
machine:  hgx-h200-cx7
world:    {nodes: 2, gpus_per_node: 4}
variants:
  fused:   {$gemm, inter: [ring, direct], order: [local, arrival]}
  each:    {program: fused, $gemm, panels: 2, fan_out: each}
  unfused: {$gemm}
timing:   {mode: pipelined, warmup: 1, iterations: 2}
EOF
cat >reduces.yaml <<EOF
problem:  {kernel: [gemm_rs, gemm_ar], m: 1024, n: 128, k: 64}
machine:  hgx-h200-cx7
world:    {nodes: 2, gpus_per_node: 4}
variants:
  fused:   {$gemm, reduce: [epilogue, crew, switch], order: [interleave, rotate]}
  unfused: {$gemm}
timing:   {mode: pipelined, warmup: 1, iterations: 2}
EOF
cat >attends.yaml <<EOF
problem:  {kernel: ring_attention, seq: 1024, batch: 2, heads: 4, kv_heads: 2, head_dim: 64}
machine:  hgx-h200-efa
world:    {nodes: 2, gpus_per_node: 4}
variants:
  fused:   {tile_m: 16, chunk: 2KiB, split: [0, 1], order: [owner, head]}
  unfused: {tile_m: 16, chunk: 2KiB}
timing:   {mode: pipelined, warmup: 1, iterations: 2}
EOF
same gathers.yaml
same reduces.yaml
same attends.yaml

# What differs from node to node, or is asked for on every rank.
sed 's/order: \[local, arrival\]/order: rank/' gathers.yaml >rank.yaml
sed 's/m: 1024/m: 1027/' gathers.yaml >ragged.yaml
sed 's/head_dim: 64}/head_dim: 64, causal: true}/' attends.yaml >causal.yaml
sed '/^check:/d; /^sim:/d' "$SOURCE/scenarios/smoke/moe_dispatch_gemm.yaml" >routed.yaml
refused 'task 0 of queue compute of gpu 0 has other work on node 1 than on node 0' rank.yaml
refused 'has other work on node 1 than on node 0' ragged.yaml
refused 'has other work' causal.yaml
refused 'routing tables' routed.yaml
expect 2 'perturbed' run gathers.yaml --no-verify --output none --set sim.fold=node --set sim.jitter=0.1
expect 2 'data are moved' run gathers.yaml --no-verify --output none --set sim.fold=node --set sim.data=true
expect 2 'engines are auto, fluid' run gathers.yaml --no-verify --output none --set sim.fold=node --set sim.engine=kernel
expect 2 'fold' run gathers.yaml --no-verify --output none --set sim.fold=rank

# By itself above 1024 ranks, where ranks do the same.
printf 'base: hgx-h200-cx7\ngpus_per_node: 352\n' >wide.yaml
cat >large.yaml <<EOF
problem:  {kernel: ag_gemm, m: 1056, n: 32, k: 64}
machine:  wide.yaml
world:    {nodes: 3, gpus_per_node: 352}
variants:
  fused:   {$gemm, order: [arrival, rank]}
timing:   {mode: isolated}
EOF
run large.yaml >large.csv || fail "1056 ranks"
rows large.csv >large
[ "$(grep -c folded large)" = 1 ] || fail "1056 ranks: one of the two programs folds"
finish
