"""What Guichet weighs, counted, so that a noisy machine says the same; `bench/budget.md` has a line for each number.

python -m bench.budget                    every measure beside its line; exit code 1 when one is over it
python -m bench.budget --requests 2000    with more requests (lines are for one request)
python -m bench.budget --write            writes what was measured into the table: lower lines, and lines that are new
"""
