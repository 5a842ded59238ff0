# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""RDMA in microseconds: queues and messages of krcore, by the kernel module of this node.

    import krcore

    with krcore.Node() as node, node.region(bytearray(4096), remote_read=True) as region:
        print(region.pack().hex())          # 24 bytes that a peer needs to READ it
        input()

    data = krcore.fetch(bytes.fromhex(...)) # elsewhere

A Node is one open /dev/krcore. It makes regions of the memory of Python's objects, queues that
READ, WRITE and do atomics on a peer's memory, services, and connections for messages. Each closes
with its `with` block, with close(), or with its node.

Errors: a wrong argument raises TypeError or ValueError, and what was closed Closed, a ValueError;
all else is an Error, an OSError with the errno and text of the library.

Threads: any number may use a node, and all that it has made, at once. A call waits without holding
up the others. None may be made in the handler of a signal. Handlers run while a call waits for a
completion or a letter, and what they raise ends it; a request that was posted is then still under
way.

Processes: a child of fork() cannot use what its parent has opened.

docs/python.md is longer; krcore(7) says what a node needs.
"""

from ._abi import lib as _lib
from ._error import Closed, Error
from ._message import Connection, Large, Listener, Peer, Service
from ._node import Info, Node, Port
from ._queue import Queue, QueueInfo, fetch
from ._region import Reference, Region

__all__ = ["Closed", "Connection", "Error", "Info", "Large", "Listener", "Node", "Peer", "Port",
           "Queue", "QueueInfo", "Reference", "Region", "Service", "fetch", "version"]

for _kind in (Closed, Error):
    _kind.__module__ = __name__


def version():
    """Version of the library, such as "0.1.0"."""
    return _lib.krcore_version().decode()
