#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Hand data over: 24 bytes of text go from where they are to where they are wanted.

    handoff.py give TEXT      print the 24 bytes; the text is there until Enter
    handoff.py fetch BYTES    print the text
"""

import sys

import krcore


def give(text):
    """Let peers READ the text until Enter. A runtime of functions would wait for the other one."""
    with krcore.Node() as node, node.region(bytearray(text), remote_read=True) as region:
        print(region.pack().hex(), flush=True)
        sys.stdin.readline()


def main():
    """What the arguments say."""
    match sys.argv[1:]:
        case ["give", text]:
            give(text.encode())
        case ["fetch", packed]:
            print(krcore.fetch(bytes.fromhex(packed)).decode())
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"handoff.py: {error}")
