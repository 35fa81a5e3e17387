"""The payments of a merchant: the list with filters and search, one payment with its timeline, refund and receipt."""
