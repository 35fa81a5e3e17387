"""People in the console while everything is killed: what they do by its forms, and what must have become of it."""
