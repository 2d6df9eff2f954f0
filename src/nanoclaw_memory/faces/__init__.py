"""THIN faces: parse, call Memory, print."""
