"""CORRECTION -> LESSON: what a person had to say twice should not need saying again."""
