"""Sources to passages, index, candidates, ranking."""
