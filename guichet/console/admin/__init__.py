"""The pages of the back office, by group."""
