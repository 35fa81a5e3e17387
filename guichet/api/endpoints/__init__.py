"""What the contract says of each endpoint, a file for each resource; `table.py` has them all."""
