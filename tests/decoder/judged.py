# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the tests of decoders of packets share: golden vectors, and the verdict of C code beside
that of a decoder.
"""

import re
import subprocess


def vectors(text):
    """name -> bytes of the golden vectors of a file's text."""
    return {name: bytes.fromhex(digits)
            for name, digits in re.findall(r"^([A-Z]+): (.*)$", text, re.M)}


def said(judge, packets):
    """What C code, a program, says of each packet."""
    lines = "".join(f"{packet.hex()}\n" for packet in packets)
    return subprocess.run([judge, "--judge"], input=lines, capture_output=True, text=True,
                          check=True).stdout.split()


def verdict(decoder, packet):
    """What a decoder, a module, says of it."""
    try:
        decoder.decode(packet)
    except decoder.Wrong as wrong:
        return str(wrong)
    return "none"
