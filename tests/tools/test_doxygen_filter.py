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


def lines_before(text: str, declaration: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith(declaration))
    return lines[max(at - 2, 0) : at]


def test_comments_become_doxygen() -> None:
    text = convert(HEADER)
    assert text.startswith("/// \\file\n/// A header.\n")
    assert "/// A thing with <em>emphasis</em>, <tt>code</tt> and \\<brackets\\>." in text
    assert "int first = 0;  ///< the first" in text
    assert "///< namespace" not in text


def test_a_comment_speaks_of_all_functions_that_it_lists() -> None:
    text = convert(HEADER)
    assert lines_before(text, "[[nodiscard]] std::string height")[-1] == "/// ditto"
    assert lines_before(text, "int inverse") == ["/// ditto", "template <class Site>"]
    assert lines_before(text, "int z_mask")[-1] == "/// ditto"
    for other in ("Thing(Thing&&)", "bool has", "bool inside", "int x_mask", "int place"):
        assert "/// ditto" not in lines_before(text, other), other


def test_a_comment_by_itself_belongs_to_what_it_follows() -> None:
    assert "  ///< All of these throw." in convert(HEADER)
