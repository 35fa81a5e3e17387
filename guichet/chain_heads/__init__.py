"""Heads of the two hash chains outside the database, so that who owns the database cannot rewrite the books unnoticed
(docs/decisions.md, "Heads leave the machine")."""
