#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns the headers the ConnectX model is compiled against: QEMU's own headers
# from the Debian source package of exactly the installed QEMU, the qapi
# headers generated from them, and linux/mlx5/mlx5_ifc.h from the newest Debian
# kernel headers package.  Nothing is installed; the system's package lists are
# not changed.  Prints the folder that holds the result.  Idempotent.
#
# usage: prepare-headers.sh
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/krcore
qemu=$(dpkg-query -W -f '${source:Version}' qemu-system-x86) || {
	echo "prepare-headers: install the package qemu-system-x86" >&2
	exit 1
}
dir=$cache/model-headers/$(printf '%s' "$qemu" | tr ':~' '__')
if [ -e "$dir/done" ]; then
	echo "$dir"
	exit 0
fi
mkdir -p "$cache"
exec 9> "$cache/model-headers.lock"
flock 9
if [ -e "$dir/done" ]; then
	echo "$dir"
	exit 0
fi
rm -rf "$dir"
mkdir -p "$dir/lists/partial" "$dir/src" "$dir/deb"
cd "$dir"

# a private source list: Debian's own entries of this system, as deb-src
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt-get indextargets --format "deb-src [signed-by=$keyring] \$(REPO_URI) \$(RELEASE) main" \
	'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u > src.list
[ -s src.list ] || {
	echo "prepare-headers: apt knows no Debian archive; run apt-get update" >&2
	exit 1
}
apt_src() {
	apt-get -q -o Dir::Etc::sourcelist="$dir/src.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$dir/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o APT::Sandbox::User=root "$@" >&2
}
apt_src update
(cd src && apt_src source --download-only "qemu=$qemu")
(cd src && dpkg-source --no-check -x qemu_*.dsc qemu >&2)
(cd src/qemu && python3 scripts/qapi-gen.py -b -o "$dir/gen/qapi" qapi/qapi-schema.json >&2)

# what QEMU's configure would have found; sizes of its structures depend on it
cat > gen/config-host.h <<'EOF'
#define CONFIG_POSIX 1
#define CONFIG_LINUX 1
#define CONFIG_IOVEC 1
#define CONFIG_ATOMIC64 1
#define CONFIG_INT128 1
#define HOST_X86_64 1
#define CONFIG_HOST_DSOSUF ".so"
EOF
: > gen/config-poison.h

# the layouts of the firmware commands
hdr=$(apt-cache search --names-only '^linux-headers-[0-9.]+.*-common$' |
	cut -d' ' -f1 | sort -V | tail -1)
(cd deb && apt-get -q -o APT::Sandbox::User=root download "$hdr" >&2)
mkdir -p ifc/linux/mlx5
dpkg-deb --fsys-tarfile deb/"$hdr"_*.deb |
	tar x -C ifc/linux/mlx5 --wildcards --transform 's,.*/,,' \
		'*/include/linux/mlx5/mlx5_ifc.h' '*/include/linux/mlx5/mlx5_ifc_fpga.h'
echo "$hdr" > ifc/version

mv src/qemu/include src/qemu/linux-headers .
mkdir -p tcg && mv src/qemu/tcg/i386 tcg/
rm -rf src deb lists
touch "$dir/done"
echo "$dir"
