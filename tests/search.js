// Searches a built site as its page does: node search.js SITE, queries as JSON on the standard input.
// Prints, as JSON, query -> the first results, each "PAGE#ANCHOR".
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
const queries = JSON.parse(fs.readFileSync(0, "utf8"));
const location = { search: "" };
const context = vm.createContext({
  URLSearchParams,
  location,
  console,
  SPHINX_HIGHLIGHT_ENABLED: false,
  document: { getElementById: () => null, addEventListener: () => {} },
  _: (text) => text,
});
context.window = context;
context._ready = () => {};
for (const name of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"]) {
  let text = fs.readFileSync(path.join(site, name), "utf8");
  if (name.endsWith("searchtools.js")) text += "\nthis.Search = Search;";
  vm.runInContext(text, context, { filename: name });
}
const found = {};
for (const query of queries) {
  location.search = "?q=" + encodeURIComponent(query);
  const results = context.Search._performSearch(...context.Search._parseQuery(query));
  found[query] = results.reverse().slice(0, 5).map(([page, , anchor]) => page + (anchor || ""));
}
console.log(JSON.stringify(found));
