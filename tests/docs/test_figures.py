"""The figures in the repository are small, and a page shows each of them."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURES = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.svg"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    if not name.startswith("docs/_static/")
]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
MOST_BYTES = 60_000
LONGEST_PATH = 5_000  # characters


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figures_are_small(figure: Path) -> None:
    text = figure.read_text()
    assert len(text.encode()) < MOST_BYTES
    assert max(map(len, re.findall(r' d="([^"]*)"', text)), default=0) < LONGEST_PATH


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_page_shows_every_figure(figure: Path) -> None:
    assert any(
        figure == (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"(?:!\[[^]]*\]\(|\{figure\} )([\w/.]+\.svg)", page.read_text())
    )


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figures_follow_the_theme_of_the_page(figure: Path) -> None:
    """No ground, no black ink; text is text."""
    text = figure.read_text()
    assert "@media(prefers-color-scheme:dark)" in text
    assert "currentColor" in text
    assert not re.findall(r"#000\b|#000000|<rect width[^>]*#fff|style=\"fill: #ffffff\"", text)
    assert "<text" in text
