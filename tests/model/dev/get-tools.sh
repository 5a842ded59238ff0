#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns: judges that come from packages that need not be installed: UCX and
# iperf3 are downloaded and unpacked into the cache. Prints the folder.
#
# usage: get-tools.sh
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/krcore/model-tools
if [ ! -e "$cache/done" ]; then
	rm -rf "$cache"
	mkdir -p "$cache/deb"
	cd "$cache/deb"
	apt-get -q -o APT::Sandbox::User=root download ucx-utils libucx0 iperf3 libiperf0 \
		libsctp1 >&2
	for deb in *.deb; do
		dpkg-deb -x "$deb" "$cache"
	done
	rm -rf "$cache/deb"
	: > "$cache/done"
fi
echo "$cache"
