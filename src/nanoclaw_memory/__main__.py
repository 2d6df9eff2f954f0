"""`python -m nanoclaw_memory` is the command line."""

from nanoclaw_memory.faces.cli import main

main()
