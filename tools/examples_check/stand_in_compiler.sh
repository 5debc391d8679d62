#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands in for each program of a chip's toolchain while ESP-IDF configures: what it is asked to write is empty.
prefix=$(basename "$0")
prefix=${prefix%-*}
out=
before=
for word in "$@"; do
    case "$word" in
        -dumpmachine) echo "$prefix"; exit ;;
        --version) echo "$prefix-gcc 14.2.0"; exit ;;
    esac
    [ "$before" = -o ] && out=$word
    before=$word
done
case " $* " in *" -E "*) exec gcc -E -x c /dev/null ;; esac
[ -z "$out" ] || : >"$out"
