#!/bin/sh
# mkernel validate on a handful of rows: what it writes, bounds, and tables that are wrong.
. "$(dirname "$0")/common.sh" "$@"

REFERENCE=$SOURCE/results/reference
mkdir -p results/reference/h200
cd results/reference || exit 1
cp "$REFERENCE/nccl-sources.csv" .
{ head -1 "$REFERENCE/nccl-published.csv"; grep 'aws-batch' "$REFERENCE/nccl-published.csv" | sed -n '20p;40p;56p'; } >nccl-published.csv
head -3 "$REFERENCE/h200/nccl-2gpu.csv" >h200/nccl-2gpu.csv
head -2 "$REFERENCE/h200/copies-2gpu.csv" >h200/copies-2gpu.csv
head -2 "$REFERENCE/h200/gemm-2gpu.csv" >h200/gemm-2gpu.csv
cd ../..
cat >results/calibration.csv <<'END'
machine,file,use,note
h200-nvlink2,reference/h200/copies-2gpu.csv,fit,
END
validate() {
    code=$1 pattern=$2
    shift 2
    expect "$code" "$pattern" validate --results results --scenarios "$SOURCE/scenarios" "$@"
}

validate 0 'class +nccl in a node, >= 1 MiB' --output new/kept --bounds bounds.csv --record
for file in rows.csv summary.csv; do
    [ -s "new/kept/$file" ] || fail "no $file"
    [ ! -e "new/kept/$file.new" ] || fail "$file.new was left behind"
done
[ "$(wc -l <new/kept/rows.csv)" = 10 ] || fail "rows.csv has $(wc -l <new/kept/rows.csv) lines"
grep -q '"fused two GPUs, fused"' bounds.csv || fail 'bounds.csv lacks a class'
validate 0 'held out' --output none --bounds bounds.csv
sed 's/^\("fused two GPUs, nccl"\),.*/\1,0.1,0.1/' bounds.csv >tight.csv
validate 1 'error .* at most 0.1 and 0.1 are recorded' --output none --bounds tight.csv
validate 2 'absent.csv: No such file' --output none --bounds absent.csv
sed -i 's/copies-2gpu/absent/' results/calibration.csv
validate 2 'absent.csv: No such file' --output none --bounds bounds.csv
sed -i '2s/p5.48xlarge: one node/p5.48xlarge: two nodes/' results/reference/nccl-published.csv
validate 2 'nccl-published.csv:2: hardware that nccl-sources.csv does not list' --output none
finish
