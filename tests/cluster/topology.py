# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the cluster looks like, read from topology.toml and checked."""

import dataclasses
import ipaddress
import re
import tomllib

from . import host

DEFAULT = host.TESTS / "cluster" / "topology.toml"
MAX_GUESTS = 16     # ports of the switch


@dataclasses.dataclass(frozen=True)
class GuestSpec:
    """One guest: its name, its place in the cluster, what it is given."""
    name: str
    index: int
    address: str
    prefix: int
    mtu: int
    cpus: int
    memory_mb: int
    roles: tuple

    @property
    def mac(self):
        """Locally administered, the same in every run."""
        return f"52:54:00:77:00:{self.index + 1:02x}"


def _error(path, text):
    raise host.ClusterError(f"{path}: {text}")


def _number(path, section, values, key, low, high):
    value = values.get(key)
    if not isinstance(value, int) or not low <= value <= high:
        _error(path, f"[{section}] {key}: {value!r} is not a number from {low} to {high}")
    return value


def _guest(path, index, name, values, network):
    section = f"guest.{name}"
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name):
        _error(path, f"[{section}]: not a host name")
    unknown = set(values) - {"address", "roles", "cpus", "memory_mb"}
    if unknown:
        _error(path, f"[{section}] {min(unknown)}: unknown key")
    try:
        address = str(ipaddress.IPv4Address(values.get("address")))
    except ValueError:
        _error(path, f"[{section}] address: {values.get('address')!r} is no IPv4 address")
    return GuestSpec(name, index, address,
                     _number(path, "network", network, "prefix", 8, 30),
                     _number(path, "network", network, "mtu", 576, 9000),
                     _number(path, section, values, "cpus", 1, 16),
                     _number(path, section, values, "memory_mb", 256, 65536),
                     tuple(values.get("roles", ())))


def load(path=DEFAULT, cpus=None):
    """The guests of a topology file, in its order; `cpus`: of each node instead of its own."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        _error(path, error.strerror)
    except tomllib.TOMLDecodeError as error:
        _error(path, error)
    guests = data.get("guest", {})
    if not 1 <= len(guests) <= MAX_GUESTS:
        _error(path, f"{len(guests)} guests: there can be 1 to {MAX_GUESTS}")
    found = [_guest(path, index, name, {**data.get("defaults", {}), **values},
                    data.get("network", {}))
             for index, (name, values) in enumerate(guests.items())]
    if cpus:
        found = [dataclasses.replace(guest, cpus=cpus) if "node" in guest.roles else guest
                 for guest in found]
    addresses = [guest.address for guest in found]
    for guest in found:
        if addresses.count(guest.address) > 1:
            _error(path, f"[guest.{guest.name}] address: {guest.address} is taken twice")
    return found
