# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What a host is, as far as it says so: kernel, processor, module, cards and their firmware.

No name and no address of it is in what is returned but those of its RDMA ports. A fact that is
not to be had is None, and `missing` says why.
"""

# One fact a line, NAME=VALUE; an empty value is one that could not be read.
SCRIPT = r"""
one() { printf '%s=%s\n' "$1" "$(cat "$2" 2>/dev/null | head -n 1)"; }
printf 'kernel=%s\n' "$(uname -r)"
printf 'machine=%s\n' "$(uname -m)"
printf 'processors=%s\n' "$(getconf _NPROCESSORS_ONLN)"
printf 'processor=%s\n' "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
if grep -q '^flags.* hypervisor' /proc/cpuinfo; then echo virtual=yes; else echo virtual=no; fi
printf 'governor=%s\n' "$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null)"
printf 'ofed=%s\n' "$(ofed_info -s 2>/dev/null)"
printf 'rdma_core=%s\n' "$(dpkg-query -W -f '${Version}' rdma-core 2>/dev/null ||
	rpm -q --qf '%{VERSION}-%{RELEASE}' rdma-core 2>/dev/null)"
one module /sys/module/krcore/version
one module_srcversion /sys/module/krcore/srcversion
for f in /sys/devices/system/cpu/vulnerabilities/*; do
	[ -r "$f" ] && one "mitigation.${f##*/}" "$f"
done
for f in /sys/module/krcore/parameters/*; do
	[ -r "$f" ] && one "parameter.${f##*/}" "$f"
done
for d in /sys/class/infiniband/*; do
	[ -d "$d" ] || continue
	n=${d##*/}
	for a in fw_ver board_id hca_type; do one "device.$n.$a" "$d/$a"; done
	one "device.$n.pci_vendor" "$d/device/vendor"
	one "device.$n.pci_device" "$d/device/device"
	printf 'device.%s.driver=%s\n' "$n" "$(basename "$(readlink "$d/device/driver")" 2>/dev/null)"
	printf 'device.%s.numa_node=%s\n' "$n" "$(cat "$d/device/numa_node" 2>/dev/null)"
	p=$d/ports/1
	one "device.$n.state" "$p/state"
	one "device.$n.link_layer" "$p/link_layer"
	one "device.$n.rate" "$p/rate"
	printf 'device.%s.mtu=%s\n' "$n" "$(cat "$d"/device/net/*/mtu 2>/dev/null | head -n 1)"
	i=0
	while [ "$i" -lt 32 ]; do
		t=$(cat "$p/gid_attrs/types/$i" 2>/dev/null)
		[ "$t" = 'RoCE v2' ] && printf 'gid.%s=%s\n' "$n" "$(cat "$p/gids/$i")"
		i=$((i + 1))
	done
done
true
"""

WHY = {
    "governor": "no cpufreq",
    "ofed": "no ofed_info: the kernel's own drivers",
    "rdma_core": "neither dpkg nor rpm knows rdma-core",
    "module": "krcore.ko is not loaded",
    "module_srcversion": "krcore.ko is not loaded",
}
DEVICE = ("fw_ver", "board_id", "hca_type", "pci_vendor", "pci_device", "driver", "numa_node",
          "state", "link_layer", "rate", "mtu")
NUMBERS = ("processors", "mtu", "numa_node")
MAPPED = "0000:0000:0000:0000:0000:ffff:"


def _value(key, text):
    if not text:
        return None
    return int(text) if key in NUMBERS and text.lstrip("-").isdigit() else text


def address_of_gid(gid):
    """The IPv4 address that a GID stands for, or None."""
    if not gid.startswith(MAPPED):
        return None
    digits = gid.removeprefix(MAPPED).replace(":", "")
    return ".".join(str(int(digits[i:i + 2], 16)) for i in range(0, 8, 2))


def parse(text):
    """Facts of what the script printed, and the IPv4 addresses of ports that are up."""
    found = {"mitigations": {}, "parameters": {}, "devices": [], "missing": {}}
    devices, gids = {}, {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if not equals:
            continue
        kind, _, rest = key.partition(".")
        if kind in ("mitigation", "parameter"):
            found[f"{kind}s"][rest] = value
        elif kind == "device":
            name, _, fact = rest.rpartition(".")
            devices.setdefault(name, {"name": name})[fact] = _value(fact, value)
        elif kind == "gid":
            gids.setdefault(rest, []).append(address_of_gid(value))
        else:
            found[key] = _value(key, value)
            if found[key] is None:
                found["missing"][key] = WHY.get(key, "the system does not say")
    if not devices:
        found["missing"]["devices"] = "nothing in /sys/class/infiniband: no RDMA device"
    for name in sorted(devices):
        device = devices[name]
        for fact in DEVICE:
            if device.setdefault(fact, None) is None:
                found["missing"][f"devices.{name}.{fact}"] = "sysfs does not say"
        found["devices"].append(device)
    found["virtual"] = found.get("virtual") == "yes"
    up = [name for name in sorted(devices) if (devices[name]["state"] or "").startswith("4:")]
    return found, [address for name in up for address in gids.get(name, []) if address]
