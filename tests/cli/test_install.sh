#!/bin/sh
# cmake --install, the prefix moved afterwards: the binary takes what it ships with from there, wherever it is called.
. "$(dirname "$0")/common.sh" "$@"
CMAKE=$4
BUILD=$5

expect 0 "^ok +shipped files +$SOURCE: " doctor

# A component has a list of installed files of its own: that of a real installation stays as it is.
DESTDIR=$WORK/stage "$CMAKE" --install "$BUILD" --prefix /opt/first --component Unspecified >out 2>&1 || fail "cmake --install"
mkdir apps work
mv stage/opt/first apps/moved
[ -z "$(find stage -type f)" ] || fail "installed outside its prefix: $(find stage -type f)"
[ "$(ls apps/moved)" = "$(printf 'bin\nshare')" ] || fail "installed more: $(ls apps/moved)"
[ "$(ls apps/moved/bin)" = mkernel ] || fail "installed more programs: $(ls apps/moved/bin)"
[ -s apps/moved/share/man/man1/mkernel.1 ] || fail "no man page"
[ -s apps/moved/share/doc/mkernel/docs/launch.md ] || fail "no docs"

PREFIX=$WORK/apps/moved
SHARE=$PREFIX/share/mkernel
MKERNEL=$PREFIX/bin/mkernel
cp small.yaml work
cd work || exit 1
sed 's/^title:.*/title: of the prefix alone/' "$SHARE/scenarios/machines/hgx-h200-cx7.yaml" \
    >"$SHARE/scenarios/machines/of-the-prefix.yaml"

expect 0 "^ok +shipped files +$SHARE: " doctor
expect 0 "of the prefix alone \\($SHARE/scenarios/machines/of-the-prefix.yaml\\)" list
grep -q "^  $SHARE/scenarios/quickstart.yaml" out || fail "does not list the scenarios of the prefix"
grep -q "$SOURCE/scenarios" out && fail "lists what is in the source tree"
for scenario in $(sed -n "s|^  \($SHARE/scenarios/[^ ]*yaml\) .*|\1|p" out); do
    expect 0 '^points +[0-9]' show "$scenario"
done
expect 0 '^ag_gemm: ' run "$SHARE/scenarios/smoke/one-gpu.yaml" --output none
expect 0 '^# machine: of-the-prefix, ' run small.yaml --set machine=of-the-prefix --output small.jsonl
expect 2 'did you mean "of-the-prefix"' run small.yaml --set machine=of-the-prefixes --output none
expect 0 'small.html' report small.jsonl -o small.html
ln -s "$MKERNEL" linked
./linked doctor | grep -q "^ok  *shipped files  *$SHARE: " || fail "called by a link it finds something else"
(
    PATH=$PREFIX/bin:$PATH
    unset MKERNEL
    "$SHARE/scripts/campaign" plan c --sweep problem.m=256,512 small.yaml >out 2>&1
) || fail "campaign does not find mkernel on the PATH"

# A user's own scenarios stand beside those of the prefix.
mkdir scenarios
sed '1i # mine' small.yaml >scenarios/mine.yaml
expect 0 '^  scenarios/mine.yaml +mine' list scenarios
grep -q "^  $SHARE/scenarios/quickstart.yaml" out || fail "hides the scenarios of the prefix"

# Measurements, too, are those of the prefix.
rm "$SHARE/results/calibration.csv" "$SHARE/results/reference/nccl-sources.csv"
expect 2 "$SHARE/results/calibration.csv: No such file" calibrate h200-1
expect 2 "$SHARE/results/reference/nccl-sources.csv: No such file" validate --output none
expect 0 '^absent \(optional\) +shipped files +[^ ]+ is not there, or not whole' doctor
finish
