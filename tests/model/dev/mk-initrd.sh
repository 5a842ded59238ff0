#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Owns: the initramfs of the light guests: static busybox, the modules of the
# RDMA stack, 9p and virtio with what they depend on, and guest-init.
#
# usage: mk-initrd.sh KERNEL-FOLDER OUT [EXTRA-MODULE-FILE...]
set -eu

here=$(dirname "$(realpath "$0")")
kernel=$1
out=$2
shift 2
ver=$(basename "$kernel"/lib/modules/*)
want="virtio_pci virtio_net 9p 9pnet_virtio af_packet mlx5_core mlx5_ib ib_uverbs ib_umad rdma_ucm
ib_ipoib"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/bin" "$tmp/proc" "$tmp/sys" "$tmp/dev" "$tmp/tmp" "$tmp/host" "$tmp/extra"
cp /bin/busybox "$tmp/bin/busybox"
cp "$here/guest-init" "$tmp/init"
chmod 755 "$tmp/init"
for mod in $want; do
	/sbin/modprobe -d "$kernel" -S "$ver" --show-depends "$mod" 2>/dev/null
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r ko; do
	rel=lib/modules/${ko#*/lib/modules/}
	mkdir -p "$tmp/$(dirname "$rel")"
	cp "$ko" "$tmp/$rel"
done
cp "$kernel/lib/modules/$ver"/modules.builtin* "$kernel/lib/modules/$ver"/modules.order \
	"$tmp/lib/modules/$ver/"
/sbin/depmod -b "$tmp" "$ver"
for extra; do
	cp "$extra" "$tmp/extra/"
done
(cd "$tmp" && find . | cpio -o -H newc --quiet | gzip -1) > "$out.new"
mv "$out.new" "$out"
