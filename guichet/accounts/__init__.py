"""People who use the console: who they are, how they prove it, and what they may do (docs/security.md)."""
