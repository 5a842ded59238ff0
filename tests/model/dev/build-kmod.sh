#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns: building an out-of-tree module for a stock Debian kernel that is not
# installed: its headers and kbuild packages are unpacked into the cache.
# Prints the built module.
#
# usage: build-kmod.sh 6.1|6.12 SOURCE-FOLDER BUILD-FOLDER
set -eu

here=$(dirname "$(realpath "$0")")
kernel=$("$here/get-kernel.sh" "$1")
ver=$(basename "$kernel"/lib/modules/*)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/krcore
hdr=$cache/model-kernels/headers-$ver
if [ ! -e "$hdr/done" ]; then
	rm -rf "$hdr"
	mkdir -p "$hdr/deb"
	common=linux-headers-$(echo "$ver" | sed 's/-amd64$//')-common
	kbuild=$(apt-cache depends "linux-headers-$ver" |
		sed -n 's/.*Depends: \(linux-kbuild-[^ ]*\)/\1/p')
	(cd "$hdr/deb" && apt-get -q -o APT::Sandbox::User=root download \
		"linux-headers-$ver" "$common" "$kbuild" >&2)
	for deb in "$hdr"/deb/*.deb; do
		dpkg-deb -x "$deb" "$hdr"
	done
	rm -rf "$hdr/deb"
	# the headers name their parts by absolute path
	find "$hdr/usr/src/linux-headers-$ver" -name Makefile -maxdepth 1 \
		-exec sed -i "s,/usr/src,$hdr/usr/src,g; s,/usr/lib/linux,$hdr/usr/lib/linux,g" {} +
	for link in "$hdr/usr/src/linux-headers-$ver"/scripts "$hdr/usr/src/linux-headers-$ver"/tools \
		"$hdr/usr/src/linux-headers-${ver%-amd64}-common"/scripts \
		"$hdr/usr/src/linux-headers-${ver%-amd64}-common"/tools; do
		[ -L "$link" ] || continue
		to=$(readlink "$link")
		case $to in
		/*) ln -sfn "$hdr$to" "$link" ;;
		esac
	done
	: > "$hdr/done"
fi
# at a place that has always the same name, for ccache knows objects by the whole command
place=$cache/model-kernels/build-$(basename "$3")
exec 9>"$place.lock" # make has it, too: what a killed script leaves behind ends first
flock 9
rm -rf "$place"
mkdir -p "$place" "$3"
cp -r "$2"/. "$place"
make -s -C "$hdr/usr/src/linux-headers-$ver" M="$place" CONFIG_DEBUG_INFO_BTF_MODULES= \
	KCFLAGS=-g0 W=1 modules >&2
rm -f "$3"/*.ko
cp "$place"/*.ko "$3"
ls "$(realpath "$3")"/*.ko
