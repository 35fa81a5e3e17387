"""axe-core in a page: every rule it has for WCAG 2.2 AA and best practice, or some of them."""

from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.async_api import Page

#: The rules of axe-core whose result depends on the colours, and those whose result depends on the width.
OF_COLOURS: Final = ("color-contrast", "link-in-text-block")
OF_LAYOUT: Final = ("target-size", "scrollable-region-focusable")

#: Contrast takes nine tenths of the time of axe-core, and most texts look as others do. So a look is judged once, on
#: whatever page and element it comes first: colour and size of the text, what is painted behind it, and boxes that may
#: lie over others. What axe-core leaves out (hidden, disabled, no text) or is not sure of is not taken as judged.
_RUN: Final = """async ([options, judgedBefore, askedBefore]) => {
  if (!window.axe) return null;
  const known = new Set(judgedBefore), fresh = new Set(), unknown = [];
  const stacks = new Map(), looks = new Map();
  const stack = element => {
    if (!element) return "";
    if (!stacks.has(element)) {
      const style = getComputedStyle(element);
      const painted = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.mixBlendMode];
      const placed = style.position === "static" ? "" : `${style.position} ${element.tagName}.${element.className}`;
      const own = (painted.join() === "rgba(0, 0, 0, 0),none,1,none,normal" ? "" : painted.join()) + placed;
      stacks.set(element, stack(element.parentElement) + (own && `/${own}`));
    }
    return stacks.get(element);
  };
  const disabled = "[disabled], [disabled] *, [aria-disabled], [aria-disabled] *, label:has([disabled])";
  for (const element of document.querySelectorAll("body, body *")) {
    const style = getComputedStyle(element);
    const text = [style.color, style.fontSize, style.fontWeight, style.textShadow, style.webkitTextStroke];
    const control = element.matches("input, textarea") ? element.type : "";
    const look = text.join() + control + stack(element);
    looks.set(element, look);
    if (known.has(look)) continue;
    unknown.push(element);
    const box = element.getBoundingClientRect();
    const said = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const judged = (control || said)
      && element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      && box.width > 1 && box.height > 1 && box.right > 0 && box.bottom + scrollY > 0
      && !element.matches(disabled) && !element.control?.disabled;
    if (judged) known.add(look) && fresh.add(look);
  }
  const asked = [...fresh];
  if (askedBefore && asked.every(look => askedBefore.includes(look))) return [[], [], []];
  for (const element of unknown) element.setAttribute("data-new-look", "");
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-new-look]" }] });
  const { violations, incomplete } = await axe.run(options);
  for (const { id, nodes } of incomplete) {
    if (id !== "color-contrast") continue;
    for (const { target } of nodes) fresh.delete(looks.get(document.querySelector(target[0])));
  }
  for (const element of unknown) element.removeAttribute("data-new-look");  // It is no markup of the page.
  return [violations, [...fresh], asked];
}"""
_judged: Final[set[str]] = set()
#: Those too of which axe-core was not sure.
_asked: Final[set[str]] = set()


async def check(page: Page, *rules: str, colours: bool = True, only_new: bool = False) -> None:
    """Raises AssertionError with axe-core's report. `only_new`: unless it was asked about every look before."""
    # None of these rules reads the style sheets, which axe-core would otherwise load again.
    options: dict[str, Any] = {"resultTypes": ["violations", "incomplete"], "elementRef": False, "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    if not colours:
        options["rules"] = {rule: {"enabled": False} for rule in OF_COLOURS}
    before = list(_asked) if only_new else None
    asking = [options, list(_judged), before]
    answer = await page.evaluate(_RUN, asking)
    if answer is None:
        await page.evaluate(AXE_SCRIPT)
        answer = await page.evaluate(_RUN, asking)
    violations, looks, asked = answer
    assert not violations, AxeResults({"violations": violations}).generate_report()
    if colours and (not rules or "color-contrast" in rules):
        _judged.update(looks)
        _asked.update(asked)
