# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Which parts of the tests run, and how: what is behind ./run test."""
