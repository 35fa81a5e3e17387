"""Payment links and the cash desk: what a merchant shows to customers, and what they paid."""
