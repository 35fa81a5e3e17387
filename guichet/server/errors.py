"""Errors that keep a server from starting."""


class StartupError(Exception):
    """The server cannot start; the message is one sentence for the person who started it. Exit code 1."""
