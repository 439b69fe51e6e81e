#!/bin/sh
# bench_links over a runtime that is none: mkernel calibrate reads what it writes, and it writes over nothing.
#
# test_bench_links.sh BENCH_LINKS MKERNEL
set -eu
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$1" "$work/links" shares=2
"$2" calibrate h200-nvlink2 "$work/links/copies.csv" "$work/links/quantities.csv" >"$work/out"
for row in 'copy .*push, drained, 8 CTAs, 256 KiB' 'quantity .*peer tile hop, 65536 bytes' 'quantity .*engine copy, 268435456 bytes'; do
    grep -q "$row" "$work/out" || { echo "no row \"$row\" in"; cat "$work/out"; exit 1; }
done
if "$1" "$work/links" shares=2 2>"$work/said"; then
    echo "it wrote over what was there"
    exit 1
fi
grep -q 'File exists' "$work/said"
