"""`python -m hlo_tools` is `hlo-lint`."""

import sys

from hlo_tools.cli import main

sys.exit(main())
