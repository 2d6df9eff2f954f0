"""Typed entries and the brief: attributed, limited, and safe to read back."""
