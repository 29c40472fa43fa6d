"""Take screenshots of every page of the built site and list faults: python docs/look.py [WORD …]

Screenshots are 1280 and 390 wide, light and dark, in docs/_build/pictures, by the system's
Chromium. Faults that are listed: content wider than the page, pictures that do not load, letters of
charts that are cut off or smaller than 10 pixels, and what axe reports, contrast included (on a few
pages of each kind).
"""

from __future__ import annotations

import shutil
import sys
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
PICTURES = SITE.parent / "pictures"
TALLEST = 16_000  # pixels; longer screenshots are cut
WITH_AXE = ("index", "gallery", "install", "holdout", "errors", "a-year", "threat-model", "curator")
RULES = ["color-contrast", "image-alt", "svg-img-alt", "link-name", "duplicate-id", "heading-order"]
OFF = """() => {
  const width = document.documentElement.clientWidth, found = [];
  const scrolls = e => e && (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)
    || getComputedStyle(e).position === 'fixed' || scrolls(e.parentElement));
  for (const e of document.querySelectorAll('article *'))
    if (e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
      found.push('sticks out: ' + e.tagName + ' ' + e.textContent.trim().slice(0, 50));
  for (const i of document.images)
    if (i.complete && !i.naturalWidth) found.push('does not load: ' + i.src);
  for (const t of document.querySelectorAll('svg text')) {
    const frame = t.ownerSVGElement.getBoundingClientRect(), box = t.getBoundingClientRect();
    if (!frame.width || !t.textContent.trim()) continue;
    const turn = t.getScreenCTM();
    const size = parseFloat(getComputedStyle(t).fontSize) * Math.hypot(turn.a, turn.b);
    if (size < 10) found.push('small: ' + t.textContent);
    if (box.right > frame.right + 1 || box.left < frame.left - 1)
      found.push('cut: ' + t.textContent);
  }
  return found;
}"""


def off(page: Page, axe: bool) -> list[str]:
    """Return the faults of the open page."""
    faults: list[str] = page.evaluate(OFF)
    if axe:
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        report = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
        faults += [
            f"axe: {violation['id']}: {violation['nodes'][0]['html'][:90]}"
            for violation in report["violations"]
        ]
    return faults


def main(words: list[str]) -> None:
    pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    pages = [page for page in pages if not words or any(word in page for word in words)]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width, theme in ((1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")):
            folder = PICTURES / f"{width}-{theme}"
            folder.mkdir(parents=True, exist_ok=True)
            size = {"width": width, "height": 900}
            page = chromium.new_page(viewport=size, color_scheme=theme)
            for name in pages:
                page.goto(f"file://{SITE / name}")
                axe = width == 1280 and any(word in name for word in WITH_AXE)
                for fault in off(page, axe):
                    print(f"{width} {theme} {name}: {fault}")
                height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
                page.screenshot(
                    path=folder / f"{name.replace('/', '__')}.jpg",
                    clip={"x": 0, "y": 0, "width": width, "height": height},
                    full_page=True,
                    quality=60,
                    type="jpeg",
                )
            page.close()
        chromium.close()
    print(f"{4 * len(pages)} pictures in {PICTURES}")


if __name__ == "__main__":
    main(sys.argv[1:])
