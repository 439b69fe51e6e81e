#!/bin/sh
# The table, its machine-readable forms, and the result file.
. "$(dirname "$0")/common.sh" "$@"

# What stands in the file and on stdout
expect 0 '^# checked: cpu, 2 x 2, m 64 n 32 k 64, 2 epochs: 3 programs exact$' run small.yaml --output r/a.jsonl
grep -Eq '^ag_gemm: fused (wins|loses|ties)' out || fail "no sentence at the end"
grep -Eq '^ ag_gemm .* nccl .* 1\.000 .*NCCL model 2\.30' out || fail "the baseline does not name its model"
[ "$("$JSON_LINES" <r/a.jsonl | tr '\n' ' ')" = "run check check check point point point point end " ] ||
    fail "r/a.jsonl: not the records expected"
expect 0 'results: r/a.jsonl.1$' run small.yaml --output r/a.jsonl
[ "$(ls -A r | tr '\n' ' ')" = "a.jsonl a.jsonl.1 " ] || fail "r/ holds something else: $(ls -A r)"
expect 0 'results: results/local/small-[0-9]{8}T[0-9]{6}Z.jsonl$' run small.yaml

# The same simulated times on every run, alone or side by side
"$MKERNEL" run small.yaml --csv --output none --jobs 1 | cut -d, -f1-25 >one.csv
"$MKERNEL" run small.yaml --csv --output none --jobs 4 | cut -d, -f1-25 >four.csv
cmp one.csv four.csv || fail "--jobs changes results"
[ "$(wc -l <one.csv)" -eq 5 ] || fail "--csv: not a header and four rows"

# Columns line up, for large numbers too: verdicts stand below their heading.
expect 0 'best' run small.yaml --output none --set 'problem.m=[256,1048576]'
awk '/^# kernel/ { at = index($0, "verdict") }
     /^ ag_gemm/ && substr($0, at - 1) !~ /^ (best|ok|slower)( |$)/ { exit 1 }' out ||
    fail "columns do not line up"

"$MKERNEL" run small.yaml --json --output none | "$JSON_LINES" >out || fail "--json: not JSON lines"
[ "$(grep -c point out)" -eq 4 ] || fail "--json: not four points"
"$MKERNEL" run small.yaml --quiet --output none >out 2>&1
[ "$(wc -l <out)" -eq 1 ] || fail "--quiet prints more than the sentence"

# A backend without the model of a baseline says so and is no failure
expect 0 'skipped' run small.yaml --backend cpu --output none --set timing.iterations=2

# Colour: on a terminal only, and not with NO_COLOR
escape=$(printf '\033')
if command -v script >/dev/null; then
    TERM=xterm script -qec "$MKERNEL run small.yaml --output none" /dev/null >out </dev/null
    grep -q "$escape\\[32m" out || fail "no colour on a terminal"
    NO_COLOR=1 TERM=xterm script -qec "$MKERNEL run small.yaml --output none" /dev/null >out </dev/null
    grep -q "$escape" out && fail "colour in spite of NO_COLOR"
fi
"$MKERNEL" run small.yaml --output none >out 2>&1
grep -q "$escape" out && fail "colour in a file"

# What the last sentence says
cat >moe.yaml <<'END'
problem:  {kernel: moe_dispatch_ffn_combine, tokens: 64, hidden: 64, inter: 32, experts: 8, top_k: 2}
machine:  hgx-h200-cx7
world:    {nodes: 2, gpus_per_node: 2}
variants: {fused: {}, nccl: {}, streams: {}}
END
expect 0 'loses to NCCL.*\(and trails hand-overlapped streams: .*little of the time goes to the GEMMs' run moe.yaml --output none
expect 2 'nothing to compare: [^;]*\.$' run moe.yaml --output none --set problem.routing=hot
expect 2 'of different kinds' run moe.yaml --set 'problem.kernel=[moe_dispatch_gemm,moe_dispatch_ffn_combine]'

# Columns stand below each other whatever the names, and lines end where their text does
sed "s/unfused: *{}/größer: {program: unfused}/" small.yaml >names.yaml
expect 0 '^ ag_gemm .* 2 x 2        größer  -          isolated' run names.yaml --output none
expect 0 '^ ag_gemm .* 2 x 2        fused   comm_sms=8 isolated' run names.yaml --output none
grep -q ' $' out && fail "blanks at a line's end"

# A threshold that nothing meets
printf 'threshold: 1000\n' | cat small.yaml - >strict.yaml
expect 3 'below the threshold of 1000' run strict.yaml --output none

# Full and forbidden places: the table is printed all the same
expect 5 'No space left on device' run small.yaml --output /dev/full
grep -q '^ ag_gemm' out || fail "no table although only the file failed"
expect 5 'cannot create folder' run small.yaml --output /proc/nothing/r.jsonl
grep -q '^ ag_gemm' out || fail "no table although only the file failed"
"$MKERNEL" run small.yaml --output none >/dev/full 2>out
[ $? -eq 5 ] || fail "a full standard output is not reported"

# The record holds the scenario that was run, whatever has become of its file since.  A reader of the pipe opens it
# behind the one who writes, who has read the file by then.
cp small.yaml moving.yaml
mkfifo pipe
"$MKERNEL" run moving.yaml --quiet --output pipe >out 2>&1 &
exec 4<pipe
echo 'seed: nonsense' >moving.yaml
head -1 <&4 >first
exec 4<&-
wait $!
grep -q '"scenario_text":"problem:  {kernel: ag_gemm' first || fail "not the scenario that was run: $(cat first)"

# Two files: the worst decides
expect 2 'missing.yaml' run small.yaml missing.yaml --output none
finish
