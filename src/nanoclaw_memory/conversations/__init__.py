"""Exchanges, sessions, topics, anchors, transcripts."""
