#!/bin/sh
# test_no_device.sh MKERNEL: without a GPU `--backend cuda` is exit code 5 and one clear line, and `doctor` is
# content.  Skipped where there is a GPU.
if "$1" doctor | grep -Eq '^ok +cuda backend'; then
    echo "test_no_device: skipped: there is a GPU"
    exit 77
fi
said="$("$1" run scenarios/smoke/ag_gemm.yaml --backend cuda 2>&1)"
code=$?
echo "$said"
[ "$code" -eq 5 ] || exit 1
[ "$(echo "$said" | wc -l)" -eq 1 ] || exit 1
echo "$said" | grep -q 'backend cuda cannot run here: no CUDA device' || exit 1
"$1" doctor | grep -Eq '^absent \(optional\) +cuda backend'
