"""What the staff ask for in the back office and the worker does, by the functions of the commands
(docs/decisions.md, "Staff jobs")."""
