"""REMEMBER -> BRIEF: typed entries, attributed, limited, and safe to read back."""
