"""What a page shows, as one object with a type: a template reads the fields of its view."""

from msgspec import Struct


class View(Struct, frozen=True, gc=False):
    """Made and read within one request."""
