"""The back office's first page and everything about merchants."""
