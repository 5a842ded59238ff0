#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns: judges that come from packages that need not be installed: UCX, iperf3
# and rdma-core's pyverbs with its tests (rdma-core/tests) are downloaded and
# unpacked into the cache, once for each list of versions. Prints the folder.
#
# usage: get-tools.sh
set -eu

packages="ucx-utils libucx0 iperf3 libiperf0 libsctp1 python3-pyverbs"
# shellcheck disable=SC2086 # a list of words
key=$({ cat "$0"; apt-cache policy $packages; } | grep -v -e '\*\*\*' -e Installed |
	sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/krcore/model-tools/$key
if [ ! -e "$cache/done" ]; then
	rm -rf "$cache"
	mkdir -p "$cache/deb"
	cd "$cache/deb"
	# shellcheck disable=SC2086
	apt-get -q -o APT::Sandbox::User=root download $packages >&2
	for deb in *.deb; do
		dpkg-deb -x "$deb" "$cache"
	done
	cd "$cache"
	rm -rf "$cache/deb"
	# Debian ships the tests among the documents, the longer ones compressed
	mkdir "$cache/rdma-core"
	cp -r "$cache/usr/share/doc/rdma-core/tests" "$cache/rdma-core/tests"
	find "$cache/rdma-core/tests" -name '*.gz' -exec gunzip {} +
	: > "$cache/done"
fi
echo "$cache"
