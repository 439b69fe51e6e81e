#!/bin/sh
# NCCL's topology into a machine that runs, nccl-tests' output into results that compare and report take.
. "$(dirname "$0")/common.sh" "$@"
XML=$SOURCE/tests/fuzz/corpus_xml
TESTS=$SOURCE/tests/fuzz/corpus_nccl_tests
H200=$SOURCE/results/reference/h200

# holds FILE KEY VALUE: a key of a machine file
holds() { grep -Eq "^ *$2: +$3( |\$)" "$1" || { cp "$1" out; fail "$1: $2 is not $3"; }; }

# A real dump of two H200s, alone and with the graphs that NCCL found there
expect 0 'none of its 1 network devices \(eth0, 10000 Mb/s\) has GPUDirect' import topology "$H200/nccl-topo-2gpu.xml"
holds h200-2gpu.yaml gpus_per_node 2
holds h200-2gpu.yaml model H200
holds h200-2gpu.yaml nodes_max 1
expect 2 'exists already' import topology "$H200/nccl-topo-2gpu.xml"
expect 0 'wrote two.yaml: 2 x H200, no network' import topology "$H200/nccl-topo-2gpu.xml" "$H200/nccl-graph-2gpu.xml" --output two.yaml
holds two.yaml ring_channels_1node 12
holds two.yaml ring_intra_1node 30GB/s
holds two.yaml multicast false
sed -e 's/hgx-h200-cx7/two.yaml/; s/nodes: 2/nodes: 1/' small.yaml >two-small.yaml
expect 0 '^ag_gemm: fused' run two-small.yaml --output none

# A node of eight with a NIC each; NICs that do not fall evenly; GPUs of which nothing is known
expect 0 'wrote hgx.yaml: 8 x H100, 8 x 400 Gb/s' import topology "$XML/hgx-8x400.xml" --output hgx.yaml --name mine --nodes 4
holds hgx.yaml gpus_per_node 8
holds hgx.yaml per_gpu 1
holds hgx.yaml rate 48.5GB/s
holds hgx.yaml cpu amd
holds hgx.yaml nodes_max 4
sed -e 's/hgx-h200-cx7/hgx.yaml/' small.yaml >hgx-small.yaml
expect 0 '^ag_gemm: fused' run hgx-small.yaml --output none
sed '/mlx5_[4567]/d' "$XML/hgx-8x400.xml" >four.xml
expect 0 '4 NICs of 400 Gb/s do not fall evenly to 8 GPUs: taken as 8 of 200' import topology four.xml --output four.yaml
sed 's/0x2330/0x20b0/; s/sm="90"/sm="80"/' "$XML/hgx-8x400.xml" >a100.xml
expect 2 'PCI device 0x20b0, sm 80: no machine of that kind' import topology a100.xml
expect 0 '8 x H100' import topology a100.xml --gpu H100 --output a100.yaml

# Hostile and damaged XML
expect 2 'entities.xml:2:[0-9]+: expected no document type' import topology "$XML/entities.xml"
expect 2 'nested deeper' import topology "$XML/deep.xml"
expect 2 'truncated.xml:9:[0-9]+: ' import topology "$XML/truncated.xml"
expect 2 'numbers.xml:1:[0-9]+: expected a number .* "-3"' import topology "$XML/numbers.xml"
expect 2 'expected <system>' import topology "$XML/other-root.xml"
expect 2 'only the graph file' import topology "$XML/nccl-graph-2gpu.xml"
expect 2 'No such file' import topology nowhere.xml

# nccl-tests: text and JSON, out-of-place and in-place
expect 0 'results: ag.jsonl, 6 points of all_gather on 2 x 8 GPUs' import nccl-tests "$TESTS/all-gather-2x8.txt" --output ag.jsonl
[ "$("$JSON_LINES" <ag.jsonl | tr '\n' ' ')" = "run point point point point point point end " ] || fail "ag.jsonl: not the records expected"
grep -q '"kernel":"all_gather","variant":"out-of-place","program":"nccl","bytes":33554432,"nodes":2,"gpus_per_node":8' ag.jsonl || fail "ag.jsonl: no such point"
grep -q '"machine":{"name":"NVIDIA H200"}' ag.jsonl || fail "ag.jsonl: no machine"
grep -q '"model":"measured, mean of 20 iterations"' ag.jsonl || fail "ag.jsonl: no number of iterations"
expect 0 '3 points of all_reduce on 1 x 2 GPUs' import nccl-tests "$TESTS/all-reduce-8.json" --output ar.jsonl --machine hgx
expect 0 '2 points of reduce on 1 x 2 GPUs' import nccl-tests "$TESTS/old.txt" --collective reduce --output old.jsonl
expect 0 '^6 points in common: 0 slower' compare ag.jsonl ag.jsonl
expect 0 'report: nccl.html' report ag.jsonl ar.jsonl -o nccl.html
cat "$TESTS/all-gather-2x8.txt" "$TESTS/all-gather-2x8.txt" | sed '/Rank/d' >twice.txt
expect 0 '6 points of all_gather' import nccl-tests twice.txt --world 2x8 --output twice.jsonl
grep -q '"samples_us":\[60.0,60.0\]' twice.jsonl || fail "two results of one point are not taken together"

# What cannot be
sed 's/    60.00/    6.000/' "$TESTS/all-gather-2x8.txt" >moved.txt
expect 2 'moved.txt:27: algbw is not size / time' import nccl-tests moved.txt
sed 's/16.38       0/16.38       7/' "$TESTS/all-gather-2x8.txt" >wrong.txt
expect 0 '1 points have wrong elements' import nccl-tests wrong.txt --output wrong.jsonl
expect 1 '1 failed' compare ag.jsonl wrong.jsonl
expect 2 'negative.txt:1: expected a time above 0' import nccl-tests "$TESTS/negative.txt" --collective all_gather --world 1x2
expect 2 'expected a time above 0' import nccl-tests "$TESTS/nan.txt" --collective all_gather --world 1x2
expect 2 'short.txt:1: expected size, count' import nccl-tests "$TESTS/short.txt"
expect 2 'maximum parsing depth' import nccl-tests "$TESTS/deep.json"
expect 2 'truncated.json:1:700: not JSON' import nccl-tests "$TESTS/truncated.json"
expect 2 'no result in it' import nccl-tests "$TESTS/empty.txt"
expect 2 'which collective' import nccl-tests "$TESTS/old.txt"
sed '/Rank/d' "$TESTS/all-gather-2x8.txt" >ranks.txt
expect 2 'no list of devices' import nccl-tests ranks.txt
expect 2 'expected NODESxGPUS' import nccl-tests ranks.txt --world 2by8
expect 2 'expected topology or nccl-tests' import
expect 2 'found "chakra"' import chakra x
expect 2 'which file' import topology
expect 2 'one too many' import nccl-tests ranks.txt wrong.txt
expect 2 'unknown option "--world"' import topology "$XML/hgx-8x400.xml" --world 2x8
expect 2 "not a machine's name" import topology "$XML/hgx-8x400.xml" --name '../x'
expect 2 "not a machine's name" import topology "$XML/hgx-8x400.xml" --name "$(printf 'a\nb: c')"
expect 2 'error: no measured values for GPU model "A100"' import topology "$XML/hgx-8x400.xml" --gpu A100
finish
