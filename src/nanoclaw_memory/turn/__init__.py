"""From a message through plugins to blocks: what matters before a model call, what is learnt after it."""
