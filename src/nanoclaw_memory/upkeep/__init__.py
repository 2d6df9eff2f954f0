"""LOG -> MEMORY.md -> FACTS -> LESSONS -> SOUL.md, and the check-up of the whole group."""
