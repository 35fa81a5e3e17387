"""The pictures that `make pictures` takes: small enough to be read on a slow line, and shown by a document."""

from pathlib import Path
from typing import Final

import pytest
from PIL import Image

from release.pictures import MOST, ROOT, TARGET

PICTURES: Final = sorted(TARGET.glob("*"))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_small(picture: Path) -> None:
    assert picture.stat().st_size <= MOST
    with Image.open(picture) as opened:
        assert opened.format == "PNG"
        assert opened.width == (360 if picture.stem.endswith("-phone") else 1280)


def test_readme_shows_two_of_them() -> None:
    text = (ROOT / "README.md").read_text()
    assert sum(f"]({picture.relative_to(ROOT)})" in text for picture in PICTURES) == 2
