"""Ways in for people and programs: parse, call Memory, print."""
