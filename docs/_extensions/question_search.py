"""Let the search answer questions: "where is the heat bath" finds what "heat bath" finds.

The search requires every word but those that it ignores. Without this extension it requires "where" and "how", too.
"""

from typing import Any

from sphinx.search.en import SearchEnglish

QUESTION_WORDS = {
    "can",
    "do",
    "does",
    "how",
    "i",
    "me",
    "my",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
    "you",
}


class EnglishQuestions(SearchEnglish):
    """English, without the words that questions are made of."""

    stopwords = frozenset(SearchEnglish.stopwords | QUESTION_WORDS)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_search_language(EnglishQuestions)
    app.add_js_file("question_search.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
