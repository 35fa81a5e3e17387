"""The payments of a merchant: the list with filters and search, one payment with its story, its refund and receipt."""
