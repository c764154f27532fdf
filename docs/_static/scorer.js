// The order of search results: guides before the reference, and the reference before background.
const FOLDERS = { tutorials: 30, howto: 13, reference: 12, performance: 4, design: -12 };
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    if (docname === "index") return score + 30;
    if (docname === "changelog" || docname === "glossary") return score - 15;
    const isObject = /^reference\/(python|cpp)\//.test(docname);
    return score + (isObject ? 0 : (FOLDERS[docname.split("/")[0]] ?? 0));
  },
  objNameMatch: 14,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 45,
  partialTitle: 20,
  term: 5,
  partialTerm: 2,
};
