"""The turn: plugins that make blocks before a model call, and learn from the exchange after it."""
