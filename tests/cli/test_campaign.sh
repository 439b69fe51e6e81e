#!/bin/sh
# scripts/campaign here, and under a Slurm that is two small scripts.
. "$(dirname "$0")/common.sh" "$@"
export MKERNEL
CAMPAIGN=$SOURCE/scripts/campaign
STATE=results/campaigns/c

# campaign CODE PATTERN ARGS...
campaign() {
    code=$1
    pattern=$2
    shift 2
    timeout 120 "$CAMPAIGN" "$@" >out 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] || fail "campaign $*: exit code $got, expected $code"
    grep -Eq -- "$pattern" out || fail "campaign $*: does not say \"$pattern\""
}

campaign 2 'plan it first' run c
campaign 2 'which scenarios' plan c
campaign 2 'followed by what it needs' plan c small.yaml --sweep world.nodes=
campaign 2 'followed by what it needs' plan c small.yaml --sweep
campaign 2 'there is no backend "simm"' plan c --backend simm small.yaml
campaign 2 'letters, digits' plan ../c small.yaml
campaign 2 'unknown key' plan wrong --sweep problem.q=1,2 small.yaml

campaign 0 '4 points' plan c --sweep problem.m=256,512 --sweep timing.mode=isolated,pipelined small.yaml
campaign 0 '4 points' plan c --sweep problem.m=256,512 --sweep timing.mode=isolated,pipelined small.yaml
campaign 2 'holds other points' plan c --sweep problem.m=128 small.yaml
campaign 4 '^ +1 +waiting +small.yaml --set problem.m=256 --set timing.mode=isolated' status c
campaign 2 'expected whole seconds' run c --local --limit 5m
campaign 0 'run small.yaml --set problem.m=512 --set timing.mode=pipelined' run c --local --dry-run
[ -e $STATE/1.code ] && fail "a dry run runs"

# A point that is done stays as it is, one that failed is tried again when that is asked for.
campaign 0 'point 3 of 4' run c --local
echo mark >>$STATE/1.log
echo 4 >$STATE/2.code
campaign 1 '^ +2 +failed 4' run c --local
campaign 0 '^ +2 +done' run c --local --retry
tail -n 1 $STATE/1.log | grep -q mark || fail "a point that was done ran again"
"$CAMPAIGN" collect c >all.jsonl
"$JSON_LINES" all.jsonl >out || fail "what was collected is no JSON"
[ "$(grep -c '"record": *"end"' all.jsonl)" -eq 4 ] || fail "not every point was collected"

# A point that takes too long costs its time and no other point.
campaign 0 '2 points' plan late --sweep problem.m=256,65536 --sweep problem.n=65536 --set problem.k=65536 small.yaml
campaign 1 'failed 4' run late --local --limit 1

# Slurm: a job a point, with its nodes, limit and options; what is queued is left alone.
mkdir -p bin
cat >bin/sbatch <<'END'
#!/bin/sh
echo "$@" >>sbatch.calls
[ -e hold ] || for command; do :; done
[ -e hold ] || SLURM_JOB_ID=7 sh -c "$command"
echo 7
END
printf '#!/bin/sh\n[ ! -e hold ] || echo 7 PENDING\n' >bin/squeue
chmod +x bin/sbatch bin/squeue
PATH=$PWD/bin:$PATH
campaign 0 '1 points' plan slurm --set timing.mode=pipelined small.yaml
campaign 0 '^sbatch --parsable .*--nodes=1 .*--time=12 .*--partition=debug --wrap' run slurm --dry-run --limit 600 \
    -- --partition=debug
touch hold
campaign 4 'queued 7' run slurm
campaign 4 'queued 7' run slurm
[ "$(wc -l <sbatch.calls)" -eq 1 ] || fail "a queued point was submitted again"
rm hold
campaign 0 'done' run slurm
[ -s results/campaigns/slurm/1.jsonl ] || fail "the job left no result"

# Across nodes: as many as the point's world has.
campaign 0 '2 points' plan wide --across --backend cpu --set cpu.transport=ofi --sweep world.nodes=2,3 small.yaml
campaign 0 '^sbatch --parsable .*--nodes=3 --ntasks-per-node=1' run wide --dry-run
sed 's/nodes: 2/nodes: [2, 3]/' small.yaml >many.yaml
campaign 2 'needs one number of nodes' plan many --across many.yaml
finish
