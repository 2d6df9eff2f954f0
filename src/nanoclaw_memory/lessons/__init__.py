"""Corrections by the user become lessons, which are injected when they apply."""
