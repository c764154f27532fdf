"""The filter that turns the comments of headers into those of Doxygen."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from doxygen_filter import convert  # noqa: E402

HEADER = """\
// A header.

namespace onehop {

// A thing with *emphasis*, `code` and <brackets>.
class Thing {
 public:
  // Makes one.
  Thing(int size);
  Thing(Thing&&) noexcept;

  // The width; the height.
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] std::string height() const {
    // in words
    return text_;
  }

  // The place of a site.
  template <class Site>
  int place(const Site& site);
  template <class Site>
  int inverse(int place);
  bool has(int site);

  // All of these throw.

  int first = 0;  // the first
  // Masks of the bits.
  int x_mask = 0;
  int z_mask = 0;
  bool inside = true;
};

}  // namespace onehop
"""


def comment_before(text: str, declaration: str) -> str:
    """The line before a declaration, or before its template parameters."""
    lines = [line.strip() for line in text.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith(declaration))
    return lines[at - 2] if lines[at - 1].startswith("template") else lines[at - 1]


def test_comments_become_doxygen() -> None:
    text = convert(HEADER)
    assert text.startswith("/// \\file\n/// A header.\n")
    assert "/// A thing with <em>emphasis</em>, <tt>code</tt> and \\<brackets\\>." in text
    assert "int first = 0;  ///< the first" in text
    assert "///< namespace" not in text


def test_a_comment_speaks_of_all_functions_that_it_lists() -> None:
    text = convert(HEADER)
    for same in ("[[nodiscard]] std::string height", "int inverse", "int z_mask"):
        assert comment_before(text, same) == "/// ditto", same
    for other in ("Thing(Thing&&)", "bool has", "bool inside", "int x_mask", "int place"):
        assert comment_before(text, other) != "/// ditto", other


def test_a_comment_by_itself_belongs_to_what_it_follows() -> None:
    assert "  ///< All of these throw." in convert(HEADER)
