"""The overview of a merchant: figures of 30 days, the balance, and what needs attention."""
