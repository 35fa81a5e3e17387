"""Our own money at providers and banks: movements that people record, balances, what differs (docs/admin-guide.md,
"Our own money")."""
