"""MESSAGE -> PLUGINS -> BLOCKS: what matters before every model call, and what is learnt after it."""
