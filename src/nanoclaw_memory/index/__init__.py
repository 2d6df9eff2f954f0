"""FILE -> CHUNK -> INDEX."""
