"""INDEX -> HITS -> RECALL."""
