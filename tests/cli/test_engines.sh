#!/bin/sh
# Large worlds share links by our own solver: on small ones it must give SimGrid's times, for every kernel, within 0.5 %.
. "$(dirname "$0")/common.sh" "$@"

# The column median_us; quoted cells may hold commas.
medians() {
    sed 's/"[^"]*"/text/g' "$1" |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "median_us") at = i; next } { print $at }'
}

for scenario in "$SOURCE"/scenarios/smoke/*.yaml; do
    sed '/^check:/d' "$scenario" >smoke.yaml
    for engine in auto fluid; do
        "$MKERNEL" run smoke.yaml --csv --no-verify --output none --set sim.data=false --set sim.engine=$engine \
            >$engine.csv 2>out || fail "$scenario with $engine"
        medians $engine.csv >$engine
    done
    grep -q 'simgrid' auto.csv || fail "$scenario: SimGrid is not what auto takes on a small world"
    grep -q 'max-min fair' fluid.csv || fail "$scenario: no fluid engine"
    paste auto fluid | awk '{ d = $1 > $2 ? $1 - $2 : $2 - $1 }
        $1 == "" || d > 0.005 * $1 { print "row " NR ": " $0; bad = 1 }
        END { exit bad || NR == 0 }' >out || fail "$scenario: times differ"
done
finish
