// node search.js SITE QUERY...: prints the pages that the search of a built site finds for each query, best first, as JSON.
const fs = require("fs");
const vm = require("vm");
const [site, ...queries] = process.argv.slice(2);
const read = (name) => fs.readFileSync(`${site}/${name}`, "utf8");
const found = [];
globalThis.document = { getElementById: () => null, querySelectorAll: () => [] };
globalThis.window = globalThis;
globalThis.localStorage = { setItem() {} };
globalThis._ready = () => {};
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
globalThis.DOCUMENTATION_OPTIONS = {};
globalThis._ = (text) => text;
const parts = ["_static/language_data.js", "_static/searchtools.js"].map(read);
const run = `
  Search.setIndex = (index) => (Search._index = index);
  ${read("searchindex.js")}
  Search._removeChildren = () => {};
  globalThis._removeChildren = () => {};
  for (const query of queries) found.push(Search._performSearch(...Search._parseQuery(query)).map((one) => one[0]).reverse());
`;
vm.runInThisContext(`(queries, found) => { ${parts.join("\n")} ${run} }`)(queries, found);
console.log(JSON.stringify(found));
