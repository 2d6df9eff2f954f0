"""DATABASES: the only room that opens them."""
