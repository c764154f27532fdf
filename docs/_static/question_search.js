// Sphinx's search compares titles with the whole query as typed, so a question finds no title. Here the words that make
// a question are left out (docs/_extensions/question_search.py), and the pages and sections whose titles have all other
// words come first, those with the fewest further words before the rest.
"use strict";

if (typeof Search !== "undefined" && typeof stopwords !== "undefined") {
  const wordsThatCount = (text) => splitQuery(text).filter((word) => !stopwords.has(word.toLowerCase()));

  const parse = Search._parseQuery;
  Search._parseQuery = (query) => parse(wordsThatCount(query).join(" ") || query);

  const titlesWith = (terms) => {
    const { alltitles, docnames, filenames, titles } = Search._index;
    const stemmer = new Stemmer();
    const found = [];
    for (const [title, places] of Object.entries(alltitles)) {
      const words = new Set(wordsThatCount(title).map((word) => stemmer.stemWord(word.toLowerCase())));
      if (terms.size === 0 || ![...terms].every((term) => words.has(term))) continue;
      for (const [file, id] of places) {
        const isPage = titles[file] === title;
        found.push([
          docnames[file],
          isPage ? title : `${titles[file]} > ${title}`,
          id === null ? "" : `#${id}`,
          null,
          terms.size / words.size + (isPage ? 0.01 : 0),
          filenames[file],
          SearchResultKind.title,
        ]);
      }
    }
    return found.sort((a, b) => a[4] - b[4]); // the last result is shown first
  };

  const perform = Search._performSearch;
  Search._performSearch = (query, terms, ...rest) => {
    const first = titlesWith(terms);
    const shown = new Set(first.map((result) => result[0] + result[2]));
    const others = perform(query, terms, ...rest).filter((result) => !shown.has(result[0] + result[2]));
    return [...others, ...first];
  };
}
