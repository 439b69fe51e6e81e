# Sourced by the tests in this folder: test_X.sh MKERNEL JSON_LINES SOURCE_FOLDER
MKERNEL=$1
JSON_LINES=$2
SOURCE=$3
FAILED=0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1

# A scenario of four points that takes milliseconds.
cat >small.yaml <<'END'
problem:  {kernel: ag_gemm, m: 256, n: 64, k: 128}
machine:  hgx-h200-cx7
world:    {nodes: 2, gpus_per_node: 2}
variants:
  fused:   {comm_sms: [4, 8]}
  unfused: {}
  nccl:    {}
timing:   {mode: isolated}
check:    {backend: cpu, m: 64, n: 32, k: 64, epochs: 2}
END

fail() {
    echo "FAILED: $*"
    sed 's/^/    | /' out
    FAILED=1
}

# expect CODE PATTERN ARGS...: mkernel ARGS exits with CODE and prints PATTERN (extended regex) somewhere
expect() {
    code=$1
    pattern=$2
    shift 2
    timeout 120 "$MKERNEL" "$@" >out 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] || fail "mkernel $*: exit code $got, expected $code"
    grep -Eq -- "$pattern" out || fail "mkernel $*: does not say \"$pattern\""
}

finish() {
    [ $FAILED -eq 0 ] && echo "all as expected"
    exit $FAILED
}
