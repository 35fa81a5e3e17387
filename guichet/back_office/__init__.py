"""What the staff do about merchants, from the command line and from the back office alike: each act is written to the
audit log in the transaction that performs it."""
