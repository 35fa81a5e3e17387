"""The part of the trial "Hostile input" that is about the console and the back office."""
