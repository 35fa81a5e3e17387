"""Guichet: a payment aggregation service for Mobile Money and cards."""

__version__ = "1.0.0"
