"""Chaos over live money: everything is killed under live traffic, and then three books must agree."""
