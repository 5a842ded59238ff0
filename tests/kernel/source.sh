# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Debian's source of the kernel 6.12, for the scripts beside this file that build from it.
# They are bash with -euo pipefail, and have say(), which takes a line for people.

# Print the version of the source that apt would install.
source_version() {
	local version

	version=$(apt-cache policy linux-source-6.12 | sed -n 's/^ *Candidate: //p')
	if [ -z "$version" ] || [ "$version" = "(none)" ]; then
		echo "${0##*/}: apt knows no package linux-source-6.12: is bookworm-security configured?" >&2
		return 1
	fi
	echo "$version"
}

# Unpack the source here, in linux-source-6.12; nothing happens when it is there.
source_unpack() {
	[ ! -e unpacked ] || return 0
	say "fetching the source (about 150 MB)"
	rm -rf ./*
	apt-get download linux-source-6.12 >/dev/null 2>&1 || {
		echo "${0##*/}: apt-get download linux-source-6.12 failed" >&2
		return 1
	}
	dpkg-deb --fsys-tarfile linux-source-6.12_*.deb |
		tar -xf - ./usr/src/linux-source-6.12.tar.xz
	say "unpacking it"
	tar -xf usr/src/linux-source-6.12.tar.xz --exclude='*/Documentation/*/*'
	rm -rf usr linux-source-6.12_*.deb
	touch unpacked
}

# Make .config of a fragment and what that needs, and nothing else. A line of the fragment
# that did not take effect is an error: a check that is silently not there is worse than none.
# usage: source_configure FRAGMENT MAKE-ARGUMENT...
source_configure() {
	local fragment=$1 missing

	shift
	make -s "$@" KCONFIG_ALLCONFIG="$fragment" allnoconfig >/dev/null
	missing=$(grep -v '^#' "$fragment" | while read -r line; do
		[ -z "$line" ] || grep -qxF "$line" .config || echo "$line"
	done)
	if [ -n "$missing" ]; then
		echo "${0##*/}: lines of ${fragment##*/} that did not take effect:" >&2
		echo "$missing" >&2
		return 1
	fi
}

# Copy what an out-of-tree module build for an architecture reads.
# usage: source_headers FOLDER ARCHITECTURE...
source_headers() {
	local folder=$1 name

	shift
	mkdir -p "$folder"
	{
		find . -path "./${folder%%/*}" -prune -o \( -name 'Makefile*' -o -name 'Kconfig*' -o \
			-name 'Kbuild*' -o -name '*.sh' -o -name '*.pl' \) -type f -print
		find include scripts -type f
		for name in "$@"; do
			find "arch/$name" \( -name '*.h' -o -path '*/include/*' \) -type f
		done
		printf '%s\n' .config
		[ ! -e Module.symvers ] || echo Module.symvers
	} | sort -u | rsync -a --files-from=- ./ "$folder/"
}
