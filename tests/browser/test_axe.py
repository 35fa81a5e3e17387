"""What axe-core is asked finds faults, also on a page whose other texts were judged on an earlier one."""

import pytest
from playwright.async_api import Browser

from tests.browser import axe
from tests.browser.driver import customer

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PAGE = (
    '<!doctype html><html lang="en"><title>Page</title><style>body {{ background: white; color: black }} {}</style>'
    "<main><h1>Heading</h1><p>First</p><p class=second>Second</p><div class=around><p>Third</p></div></main>"
)


@pytest.mark.parametrize(
    "style",
    [
        ".second { color: #bbb }",
        ".around { background: #333 }",
        ".second { opacity: 0.3 }",
        ".second { color: #808080; font-size: 14px }",
    ],
)
async def test_a_text_that_cannot_be_read_is_found_again_and_again(browser: Browser, style: str) -> None:
    async with customer(browser, "", "axe") as someone:
        page = someone.page
        for hidden in (".second, .around { display: none }", ""):
            await page.set_content(PAGE.format(hidden))
            await axe.check(page)
        await page.set_content(PAGE.format(style + " .second, .around { display: none }"))
        await axe.check(page)  # What nobody sees is not judged, and not remembered as judged.
        for rules in ((), axe.OF_COLOURS, ()):
            await page.set_content(PAGE.format(style))
            with pytest.raises(AssertionError, match="color-contrast"):
                await axe.check(page, *rules)
        await axe.check(page, colours=False)


async def test_only_a_page_built_as_one_before_is_not_judged_again(browser: Browser) -> None:
    built = PAGE.format("").replace("<p>First", "<label for=name1>Name</label><input id=name1 value=Awa><p>")
    async with customer(browser, "", "axe-structure") as someone:
        for text in ("First", "Another"):
            await someone.page.set_content(built.replace("</p><p class", f" {text}</p><p class"))
            await someone.seen("")
        for fault in ("for=other", ""):
            await someone.page.set_content(built.replace("for=name1", fault))
            with pytest.raises(AssertionError, match="label"):
                await someone.seen("")
