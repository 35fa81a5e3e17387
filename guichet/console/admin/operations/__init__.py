"""What the people who watch the service look at and decide: incidents, approvals, payments, wallets, checks."""
