"""Exchanges, sessions, topics, anchors and transcripts."""
