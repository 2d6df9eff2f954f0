"""Retrieval: sources are cut into passages, indexed, found and ranked."""
