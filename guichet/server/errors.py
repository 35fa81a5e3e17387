"""Errors that keep a server from starting."""


class StartupError(Exception):
    """The server cannot start. The message is one sentence for the person who started it; the exit code is 1."""
