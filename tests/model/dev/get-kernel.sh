#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns: stock Debian kernels for the guests: the newest package of a series is
# downloaded and unpacked into the cache; nothing is installed. Prints the
# folder; it has boot/vmlinuz-* and lib/modules/*. Idempotent.
#
# usage: get-kernel.sh 6.1|6.12
set -eu

case ${1:-} in
6.1) pattern='^linux-image-6\.1\.0-[0-9]+-amd64$' ;;
6.12) pattern='^linux-image-6\.12\.[0-9]+\+deb12-amd64$' ;;
*)
	echo "usage: get-kernel.sh 6.1|6.12" >&2
	exit 2
	;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/krcore/model-kernels
have=$(cat "$cache/$1.name" 2>/dev/null || true)
if [ -n "$have" ] && [ -e "$cache/$have/done" ]; then
	echo "$cache/$have"
	exit 0
fi
pkg=$(apt-cache search --names-only "$pattern" | cut -d' ' -f1 | sort -V | tail -1)
[ -n "$pkg" ] || {
	echo "get-kernel: no package for series $1; run apt-get update" >&2
	exit 1
}
rm -rf "${cache:?}/$pkg"
mkdir -p "$cache/$pkg"
cd "$cache/$pkg"
apt-get -q -o APT::Sandbox::User=root download "$pkg" >&2
dpkg-deb --fsys-tarfile ./*.deb | tar x --exclude='*/drivers/gpu/*' --exclude='*/sound/*' \
	--exclude='*/drivers/media/*' --exclude='*/wireless/*'
rm -f ./*.deb
for ver in lib/modules/*; do
	/sbin/depmod -b . "${ver##*/}" 2>/dev/null || true
done
: > "done"
echo "$pkg" > "$cache/$1.name"
echo "$cache/$pkg"
