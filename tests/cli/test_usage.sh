#!/bin/sh
# Verbs, flags and their help.
. "$(dirname "$0")/common.sh" "$@"

# Every command would wait for what libfabric brings along: see backends/net/ofi_library.c.
ldd "$MKERNEL" | grep libfabric >out && fail "linked to libfabric"

expect 2 'usage: mkernel COMMAND'
expect 0 'usage: mkernel COMMAND' help
expect 0 'usage: mkernel COMMAND' --help
expect 0 '^mkernel [0-9]+\.[0-9]+\.[0-9]+ \(.+\)$' --version
for verb in $("$MKERNEL" help | sed -n "s/^  \([a-z]*\)  .*/\1/p"); do
    expect 0 '^examples?:' $verb --help
    expect 0 '^examples?:' help $verb
    grep -q "mkernel $verb" "$SOURCE/docs/mkernel.1" || fail "docs/mkernel.1 lacks $verb"
done
for verb in run verify tune explore compare report show import export validate machine doctor; do
    "$MKERNEL" $verb --help >out
    for flag in $(grep -Eo -- '^  --[a-z]+' out | grep -v -- --help); do
        sed 's/\\-/-/g' "$SOURCE/docs/mkernel.1" | grep -q -- "$flag" ||
            fail "docs/mkernel.1 lacks $flag of $verb"
    done
done

expect 2 'did you mean "run"' rnu
expect 2 'unknown command' frobnicate
expect 2 'did you mean "--json"' run small.yaml --jsn
expect 2 'unknown option "--colour"' run small.yaml --colour
expect 2 'needs a value' run small.yaml --set
expect 2 'takes no value' run small.yaml --json=yes
expect 2 'option --output needs a value' run small.yaml --output ''
expect 2 'option --trace needs a value' run small.yaml --trace= --output none
expect 2 'two forms' run small.yaml --json --csv
[ "$(ls)" = "$(printf 'out\nsmall.yaml')" ] || fail "a refused command left something: $(ls)"
expect 2 'which scenario' run
expect 2 'which scenario' show
expect 2 'which scenario' explore
expect 2 'which scenario' tune
expect 2 'did you mean "kernels"' list kernel
expect 2 '--jobs 0' run small.yaml --jobs 0
expect 2 '--jobs many' run small.yaml --jobs many
expect 2 'unit' run small.yaml --timeout 5
expect 2 'unit' run small.yaml --memory 5
expect 2 'one too many' doctor small.yaml small.yaml
expect 2 'no such folder' doctor --root nowhere
expect 2 'which one' doctor --set problem.m=8
expect 2 'cannot open|No such file' doctor now

expect 0 'ag_gemm' list
expect 0 'comm_sms' list kernels
expect 0 'sim: ' list backends
expect 0 'timing:' list keys
expect 0 '^ok +SimGrid' doctor
"$MKERNEL" list backends | grep -q '^  cuda:' || expect 0 '^absent \(optional\) +CUDA  ' doctor
expect 0 'everything that small.yaml needs is here' doctor small.yaml
expect 0 '"verdict": "ok"' doctor --json
expect 5 '^missing +memory' doctor small.yaml --backend cpu --set 'problem.m=524288' --set 'problem.k=65536'
expect 0 '^not looked at +memory' doctor --root .
cd "$SOURCE" || exit 1
"$MKERNEL" list machines >"$WORK/out" && grep -q hgx-h200-cx7 "$WORK/out" || FAILED=1
"$MKERNEL" list scenarios >"$WORK/out" && grep -q scenarios/quickstart.yaml "$WORK/out" || FAILED=1
cd "$WORK" || exit 1

expect 0 '^points   4$' show small.yaml
expect 0 'comm_sms=8' show small.yaml
expect 0 '^queue compute: ' show small.yaml --program 3
expect 0 'wait ready\[' show small.yaml --program 3 --tasks all
expect 0 '^ag_gemm unfused: rank 1 of 4' show small.yaml --program 1 --point 2
expect 0 '^digraph ' show small.yaml --dot
expect 2 'ranks are 0\.\.3' show small.yaml --program 4
expect 2 'expected --program RANK or --dot' show small.yaml --point 1
expect 2 'expected --program RANK as well' show small.yaml --tasks 3
expect 2 'not a number.*or "all"' show small.yaml --program 0 --tasks many
expect 2 'without --program' show small.yaml --dot --program 0
expect 2 'points of small.yaml are 0\.\.3' show small.yaml --program 0 --point 4
expect 2 'is a baseline and has no program' show small.yaml --program 0 --point 3
expect 2 'draws at most' show small.yaml --dot --set problem.m=65536 --set problem.n=65536
finish
