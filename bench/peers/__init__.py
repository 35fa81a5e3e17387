"""Small honest programs to compare `POST /payments` with: same checks, same durability, same answer.

Each creates payments in Guichet's own `payments` table (its columns, constraints and indexes, without the triggers
that keep the counts of the lists, since these programs have no lists), knows its caller's key from memory, and quotes
the fee from the packaged catalogue. `usual.py` is written as a tutorial would, `bare.py` is what the same libraries can
do at best. `bare.py` also runs on a table of its own (`tables.py`): beside it, what our indexes and triggers cost shows
in the ratio.
"""
