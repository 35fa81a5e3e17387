"""The long trial "Hostile input" (`make fuzz`; docs/reliability.md, "Hostile input")."""
