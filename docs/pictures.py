"""What does the dashboard look like? Makes docs/images/serve-*.png anew, and walks the 30 seconds of docs/serve.md.

    make demo && relab video experiments/demo/runs/shipped-s0 --checkpoint all --seed 0
    python docs/pictures.py experiments

Prints what each click of the walk showed and how long it took. Needs chromium and Pillow (which matplotlib brings).
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.serve import Server  # noqa: E402
from browser import Browser, Page  # noqa: E402

IMAGES = ROOT / "docs" / "images"
COLOURS = 256  # of a palette: a third of the bytes, and no eye sees it
SETTLED = """(!window.relab || !relab.charts || relab.charts.every(c => !c.visible || c.data)) &&
  !/comparing …|asking what comes next|examining …|reading …/.test(document.body.innerText)"""
CHART = "window.relab && relab.charts && relab.charts[0] && relab.charts[0].plot"


def main() -> None:
    browser = Browser()
    server = Server(Path(sys.argv[1]))
    try:
        walk(browser.page(1440, 900), server)
        while b"examining" in (text := server.get("/today")[2]) or b"reading the folder" in text:
            time.sleep(0.2)
        every(browser, server)
    finally:
        browser.close()
        server.close()


def walk(page: Page, server: Server) -> None:
    """Which config is better, since when did the other go wrong, and why: two clicks from a cold start; the seconds
    count from the start of the server."""

    def told(what: str, words: Any) -> None:
        print(f"{time.perf_counter() - server.began:5.1f} s  {what}: {words}")

    page.open(f"{server.address}/", "document.querySelector('#more a') && document.querySelector('#f0')")
    told("Today", page.run("document.querySelector('#more .finding p').innerText"))
    save(page, "serve-today")
    page.run("document.querySelector('#more a').click()")
    page.wait(f"location.pathname === '/compare' && document.querySelector('.answer-line') && {CHART}")
    told("which is better", page.run("document.querySelector('.answer-line').innerText"))
    save(page, "serve-compare")
    page.wait("relab.charts[0].data.findings.length")
    page.run("relab.finding(relab.charts[0].data.findings.find(f => f.slug === 'diverged'))")
    page.wait("document.querySelector('.finding.at')")
    told("since when", page.run("document.querySelector('.finding.at summary').innerText.replace(/\\s+/g, ' ')"))
    told("why", page.run("document.querySelector('#f0').innerText.replace(/\\s+/g, ' ')"))
    page.run("document.querySelector('#findings').scrollIntoView()")
    page.run("scrollBy(0, -300)")
    save(page, "serve-why")


def every(browser: Browser, server: Server) -> None:
    """The other pictures, each of the size that the docs show it in."""
    keys = {}
    page = browser.page(1440, 980)
    page.open(f"{server.address}/runs", "document.querySelector('tbody.group')")
    for label in ("larger-steps", "shipped"):
        script = "[...document.querySelectorAll('tbody.group')].find(b => b.innerText.includes(%r)).dataset.key"
        keys[label] = page.run(script % label)
    sick = f"/group/{keys['larger-steps']}"
    shot(browser, server, "/runs", "serve-runs", (1440, 420))
    shot(browser, server, sick, "serve-group", (1440, 980))
    shot(browser, server, sick, "serve-dark", (1024, 1100), dark=True)
    shot(browser, server, "/notebook", "serve-notebook", (1440, 820))
    shot(browser, server, f"/group/{keys['shipped']}", "serve-films", (1440, 980), at="#films")
    paths = ("/today", "/runs", sick, "/compare")
    tiles = [shot(browser, server, path, "", (390, 844), dark=i % 2 == 1) for i, path in enumerate(paths)]
    side_by_side(tiles)


def shot(
    browser: Browser, server: Server, path: str, name: str, size: tuple[int, int], dark: bool = False, at: str = ""
) -> bytes:
    page = browser.page(*size, dark)
    page.open(server.address + path)
    page.wait(SETTLED)
    if at:
        page.run(f"document.querySelector({at!r}).scrollIntoView(); scrollBy(0, -60)")
    page.run("new Promise(done => setTimeout(done, 1200))")  # lines are drawn, films have their first picture
    data = save(page, name)
    page.close()
    browser.pages.remove(page)
    return data


def save(page: Page, name: str) -> bytes:
    """The screen as it is, in few colours; with a name, into docs/images."""
    from PIL import Image

    page.wait(SETTLED)
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        page.picture(file.name)
        data = Path(file.name).read_bytes()
    if name:
        write(Image.open(io.BytesIO(data)), name)
    return data


def write(picture: Any, name: str) -> None:
    from PIL import Image

    whole = picture.convert("RGB")
    often = sorted(whole.getcolors(1 << 24), reverse=True)[:COLOURS]  # flat areas keep their very colour
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in often for part in colour])
    small = whole.quantize(palette=palette, dither=0)
    small.save(IMAGES / f"{name}.png", optimize=True)
    print(f"{name}.png  {picture.size[0]} x {picture.size[1]}  {(IMAGES / f'{name}.png').stat().st_size // 1024} kB")


def side_by_side(tiles: list[bytes], gap: int = 20) -> None:
    from PIL import Image

    pictures = [Image.open(io.BytesIO(data)) for data in tiles]
    width = sum(p.width for p in pictures) + gap * (len(pictures) - 1)
    sheet = Image.new("RGB", (width, pictures[0].height), (200, 204, 212))
    left = 0
    for picture in pictures:
        sheet.paste(picture, (left, 0))
        left += picture.width + gap
    write(sheet, "serve-phone")


if __name__ == "__main__":
    main()
