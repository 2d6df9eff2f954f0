"""ENTITY -> FACTS: the knowledge graph."""
