# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""/usr/bin/python3 -m cluster COMMAND, with tests/ in PYTHONPATH; ./run does that."""

import sys

from .cli import main

sys.exit(main())
