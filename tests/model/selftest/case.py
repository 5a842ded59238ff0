# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What the tests of the self-check share.

Owns: the options of the run and the class of every test, which starts and ends
devices.
"""
import unittest

from cxdrv import Driver, Refused

OPT = {"sanitize": False}


class ModelTest(unittest.TestCase):
    """Starts devices and ends them; a sanitizer report or a bad end of QEMU fails the test."""

    def driver(self, **kw):
        drv = Driver(OPT["model"], OPT["ifc"], sanitize=OPT["sanitize"], **kw)
        self.addCleanup(self.end, drv)
        return drv

    def end(self, drv):
        self.assertEqual(drv.close(), "", "what came of ending it")

    def refused(self, status, func, *args, **kw):
        with self.assertRaises(Refused) as caught:
            func(*args, **kw)
        self.assertEqual(caught.exception.status, status)
