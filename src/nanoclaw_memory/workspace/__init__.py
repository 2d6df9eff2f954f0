"""Markdown, the source of truth: files that a person reads and edits."""
