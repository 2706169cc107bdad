"""Debian's chromium, and pages of it."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Browser, Page, Playwright

CHROMIUM: Final = "/usr/bin/chromium"


def launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
    )


def opened(browser: Browser, width: int = 1280, scheme: str = "light", *, scripts: bool = True) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
    )
    return context.new_page()
