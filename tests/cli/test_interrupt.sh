#!/bin/sh
# Ctrl-C and SIGTERM: children end, what is complete is kept, exit code 130.
. "$(dirname "$0")/common.sh" "$@"

# Small points first, then one that takes many seconds.
cat >long.yaml <<'END'
problem:  {kernel: ag_gemm, m: [256, 262144], n: m/2, k: 16384}
machine:  hgx-h200-cx7
world:    {nodes: 16, gpus_per_node: 8}
variants: {fused: {tile_m: 16, tile_n: 16}}
END

# Waits until a child of process $1 has computed for more than a second: that is the second point.
wait_for_long_point() {
    for _ in $(seq 600); do
        cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '
            $4 == parent && $14 > 150 { found = 1 } END { exit !found }' && return
        sleep 0.1
    done
    fail "the second point never ran"
}

for signal in INT TERM; do
    # A background job of a shell script ignores SIGINT unless something resets it.
    env --default-signal=INT "$MKERNEL" run long.yaml --no-verify --jobs 1 --output "$WORK/$signal.jsonl" >out 2>&1 &
    pid=$!
    wait_for_long_point $pid
    kill -$signal $pid || fail "ended before it could be interrupted"
    wait $pid
    code=$?
    [ $code -eq 130 ] || fail "SIG$signal: exit code $code, expected 130"
    grep -q 'interrupted: 1 of 2 points are complete' out || fail "SIG$signal: no message"
    grep -q 'stopped from outside' out || fail "SIG$signal: the run does not say where it stood"
    [ "$("$JSON_LINES" <$signal.jsonl | tr '\n' ' ')" = "run point end " ] ||
        fail "SIG$signal: not the records expected"
    grep -q '"interrupted":true' $signal.jsonl || fail "SIG$signal: the file does not say so"
    grep -qsa "$WORK/$signal[.]jsonl" /proc/[0-9]*/cmdline && fail "SIG$signal: a child is still there"
done

# Verbs that have nothing to keep, and crashes, end by the signal itself: no library of ours has a say in it.
mkfifo full
for signal in INT TERM SEGV; do
    exec 3<>full # of which one line is read: it has begun and cannot end
    env --default-signal=INT "$MKERNEL" show long.yaml --program 0 --tasks 100000 >full 2>out &
    pid=$!
    read -r _ <&3
    kill -$signal $pid
    wait $pid 2>/dev/null
    code=$?
    [ "$(kill -l $code)" = $signal ] || fail "SIG$signal: exit code $code of a verb without results"
    [ -s out ] && fail "SIG$signal: says something"
    exec 3>&-
done
ls ./*.btr >out 2>/dev/null && fail "files of a crash are left"

[ "$(ls -A | grep -c '^\.')" -eq 0 ] || fail "temporary files are left: $(ls -A)"
finish
