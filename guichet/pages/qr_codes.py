"""QR codes, drawn as SVG inside a page."""

from markupsafe import Markup


def qr_code(address: str, title: str) -> Markup:
    """`address` as a picture with a quiet zone. `title` is what a screen reader says instead."""
    import segno  # noqa: PLC0415 - half a megabyte, and few pages have a picture

    code = segno.make(address, error="m", micro=False)
    svg = code.svg_inline(border=4, omitsize=True, svgclass=None, lineclass=None, title=title)
    return Markup(svg)  # noqa: S704 - segno draws the address and escapes the title
