#!/bin/sh
# test_soft_roce.sh SOURCE_FOLDER BUILD_FOLDER: the verbs transport in an emulated machine.  It installs packages and
# takes a minute or two, so it has to be asked for, as scripts/test does.
[ "${MKERNEL_SOFT_ROCE:-off}" = on ] || {
    echo "test_soft_roce: skipped: MKERNEL_SOFT_ROCE=on runs it"
    exit 77
}
exec "$1/scripts/soft-roce" "$2"
