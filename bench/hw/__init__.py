# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""./run hw-report: the figures of two hosts with real cards, as one JSON.

hosts.py reaches a host, facts.py says what it is, measure.py runs the benchmarks' programs on
two of them, schema.py judges a report. Nothing here needs the virtual cluster: its test
brings a host of its own.
"""
