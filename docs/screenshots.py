"""Take the screenshots of the curator that the docs show: python docs/screenshots.py

Starts `quiltwork serve --demo` on a free port and drives the system's Chromium. The people are
simulated; the noise differs from run to run.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parent / "_generated"
WIDTH = 1160
SHOTS = {
    "curator-overview": ("/", 920),
    "curator-ask": ("/datasets/activity/ask", 690),
    "curator-dataset": ("/datasets/activity", 1340),
    "curator-table": ("/tables/admissions", 900),
}


def main() -> None:
    command = [sys.executable, "-m", "quiltwork", "serve", "--demo", "--json", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            started = json.loads(server.stdout.readline())
            owner = next(secret for who, secret in started["tokens"].items() if "owner" in who)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                take(browser, started["address"], owner)
                browser.close()
        finally:
            server.terminate()


def take(browser: Browser, address: str, secret: str) -> None:
    page = browser.new_page(base_url=address, viewport={"width": WIDTH, "height": 700})
    page.goto("/")
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    for name, (path, height) in SHOTS.items():
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.goto(path)
        if path.endswith("/ask"):
            page.get_by_label("Privacy level").fill("0.4")
            page.wait_for_timeout(3000)
        screenshot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        reduced = screenshot.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        reduced.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
