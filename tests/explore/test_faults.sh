#!/bin/sh
# test_faults.sh MKERNEL SOURCE_FOLDER: each scenario of scenarios/faults ends as its first line says, with a report.
MKERNEL=$1
FAULTS=$2/scenarios/faults
OUT=$(mktemp)
trap 'rm -f "$OUT"' EXIT
FAILED=0
SEEN=0

fail() {
    echo "FAILED: $*"
    sed 's/^/    | /' "$OUT"
    FAILED=1
}

# ends NAME CODE PATTERN
ends() {
    SEEN=$((SEEN + 1))
    timeout 60 "$MKERNEL" run "$FAULTS/$1.yaml" --csv --output none >"$OUT" 2>&1 </dev/null
    got=$?
    [ $got -eq "$2" ] || fail "$1: exit code $got, expected $2"
    grep -q "Exit code $2\.$" "$FAULTS/$1.yaml" || fail "$1: its first line does not say exit code $2"
    grep -Eq "$3" "$OUT" || fail "$1: does not say \"$3\""
    [ "$(grep -c . "$OUT")" -le 60 ] || fail "$1: more than two screens"
}

ends straggler      0 ',done,'
ends slow-link      0 ',done,'
ends lossy-link     0 ',done,'
ends dead-link      4 '^root cause: rank 3 queue .* put #[0-9]+, epoch [0-9]+, was lost on a dead link$'
ends dropped-put    4 '^root cause: rank 3 queue .* put #[0-9]+, epoch 1, was dropped by the network$'
ends duplicated-put 1 '^rank 3 queue .* put #[0-9]+, epoch 1, was delivered twice'
ends stopped-rank   4 '^root cause: rank 3 stopped at 20 us$'
[ $SEEN -eq "$(ls "$FAULTS" | wc -l)" ] || fail "scenarios/faults holds a scenario that this test does not know"

# What a world lacks cannot break.
refuses() {
    timeout 60 "$MKERNEL" run "$FAULTS/dropped-put.yaml" --output none --set "$1" >"$OUT" 2>&1
    got=$?
    [ $got -eq 2 ] || fail "--set $1: exit code $got, expected 2"
    grep -q "$2" "$OUT" || fail "--set $1: does not say \"$2\""
}
refuses sim.fault_rank=8 'expected a rank of this world, 0..7'
refuses world.nodes=1 'has no link between nodes'
refuses sim.fault=dropped_putt 'dropped_put'
refuses sim.fault_time=5 'unit'
refuses sim.fault_loss=1.5 'fault_loss'
[ $FAILED -eq 0 ] && echo "all as expected"
exit $FAILED
