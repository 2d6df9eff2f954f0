"""Agents' hooks."""
