"""The knowledge graph: entities, facts, relations, aliases."""
