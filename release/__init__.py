"""What `make dist` does."""
