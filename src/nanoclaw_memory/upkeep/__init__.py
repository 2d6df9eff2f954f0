"""Jobs that turn logs into MEMORY.md, facts, lessons and SOUL.md; review, forget, doctor."""
