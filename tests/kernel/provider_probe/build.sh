#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Owns: building the provider with its test module for a stock Debian kernel, with
# W=1 and sparse. Prints the built module; anything a compiler says is a failure.
#
# usage: build.sh 6.1|6.12 BUILD-FOLDER
set -eu

here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../../..")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp "$here"/Kbuild "$here"/*.[ch] "$root/kmod/compat.mk" "$stage/"
cp -r "$root/kmod/base" "$root/kmod/hw" "$root/proto" "$stage/"
"$root/tests/model/dev/build-kmod.sh" "$1" "$stage" "$2" 2>"$stage/log" || {
	cat "$stage/log" >&2
	exit 1
}
if grep -E 'warning:|error:' "$stage/log" >&2; then
	exit 1
fi
