"""Databases: the only package that opens them, one repository per noun."""
