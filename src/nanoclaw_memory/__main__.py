"""`python -m nanoclaw_memory` is the command line; a plain hook skips its parser."""

import sys

from nanoclaw_memory.interfaces import shim

request = shim.parse(sys.argv[1:])
if request is not None and request.kind == "hook":
    from nanoclaw_memory.interfaces.hooks import run_and_exit

    run_and_exit(request)
else:
    from nanoclaw_memory.interfaces.cli import main

    main()
