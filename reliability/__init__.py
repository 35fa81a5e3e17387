"""Long trials of the whole service: chaos over live money, hostile input, dead machines (docs/reliability.md)."""
