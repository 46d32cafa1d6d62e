"""A real browser, and what it finds in a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "SBERT_TRAIN_BROWSER"

# [element, text, contrast] of every text that is seen, WCAG 2.2's contrast (1.4.3) against the nearest background.
CONTRASTS = """() => {
  const parse = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return {channels: [r, g, b], a};
  };
  const luminance = color => {
    const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = color.channels.map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor);
      if (color.a === 1) return color;
      if (color.a > 0) throw new Error('a background that is half seen through');
    }
    throw new Error('nothing is behind');
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || ['title', 'desc'].includes(element.localName)) continue;
    const style = getComputedStyle(element);
    const color = parse(element instanceof SVGElement ? style.fill : style.color);
    const [light, dark] = [luminance(color), luminance(behind(element))].sort((a, b) => b - a);
    found.push([element.localName, text.slice(0, 40), (light + 0.05) / (dark + 0.05), color.a]);
  }
  return found;
}"""
# Texts that reach out of the window, or of a box that cuts them off.
CUT = """() => [...document.querySelectorAll('body *')]
  .filter(one => !one.closest('.unseen, svg, thead') && one.checkVisibility())
  .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5 || one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).display !== 'inline')
  .map(one => `${one.localName}.${one.className}: ${one.textContent.slice(0, 60)}`)"""
# Texts of a chart that reach out of it, or that lie on one another.
CHART_TEXTS = """() => [...document.querySelectorAll('svg.chart')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  const boxes = [...chart.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
  const out = boxes.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 ||
    b.bottom > frame.bottom + 1).map(([text]) => `${text} is cut off`);
  const on = boxes.flatMap(([text, a], i) => boxes.slice(i + 1).filter(([, b]) =>
    a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
    .map(([other]) => `${text} and ${other} lie on one another`));
  return [...out, ...on];
})"""


@dataclass
class Seen:
    """What a browser did and said while it showed a page."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Messages of the console from warnings on, and errors of scripts."""


@contextmanager
def browser() -> Iterator[Browser]:
    """An installed browser. Where there is none the test is skipped, or fails if SBERT_TRAIN_BROWSER says required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing = f"no browser: install one of {', '.join(NAMES)} (on Debian: apt-get install chromium)"
        pytest.fail(missing) if os.environ.get(REQUIRED) == "required" else pytest.skip(missing)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found)
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def shown(chromium: Browser, file: Path, **settings: Any) -> Iterator[tuple[Page, Seen]]:
    """A file in a fresh window that may load nothing but this file."""
    seen = Seen()

    def only_the_file(route: Route) -> None:
        seen.requests.append(route.request.url)
        route.continue_() if route.request.url == file.as_uri() else route.abort()

    context = chromium.new_context(**settings)
    context.route("**/*", only_the_file)
    page = context.new_page()
    page.on(
        "console",
        lambda told: seen.complaints.append(told.text) if told.type in ("warning", "error") else None,
    )
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    try:
        page.goto(file.as_uri(), wait_until="networkidle")
        yield page, seen
    finally:
        context.close()
