"""The console: pages for merchants' teams and for the staff, by session (docs/security.md)."""
