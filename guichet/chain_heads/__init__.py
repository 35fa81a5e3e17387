"""Heads of the two hash chains outside the database, so that who owns the database cannot rewrite the books unnoticed
(D103)."""
