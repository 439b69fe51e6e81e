#!/bin/sh
# compare.sh MKERNEL NAME          runs NAME.yaml twice, compares with NAME.csv
# compare.sh MKERNEL NAME update   writes NAME.csv: look at the diff before you commit it
#
# CPU seconds and memory, the last two columns, are not part of what repeats.
set -eu
mkernel="$1"
name="$2"
rows="$(mktemp)"
trap 'rm -f "$rows"' EXIT

run() {
    "$mkernel" run "$name.yaml" --csv --no-verify --output none --jobs "$1" >"$rows.raw"
    sed 's/,[^,]*,[^,]*$//' "$rows.raw" >"$rows"
    rm -f "$rows.raw"
}

run 2
if [ "${3:-}" = update ]; then
    cp "$rows" "$name.csv"
    exit 0
fi
diff -u "$name.csv" "$rows"
run 1 # alone as in a sweep
diff -u "$name.csv" "$rows"
