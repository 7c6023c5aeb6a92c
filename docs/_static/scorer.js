// Puts a page or name that is what was asked for in front of those that only mention its words.
"use strict";

var Scorer = {
  score: ([page, title, anchor, descr, score, file, kind]) => {
    const plain = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
    const asked = new URLSearchParams(window.location.search).get("q") || "";
    const words = asked.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);
    const parts = kind === "object" ? title.split(".") : title.split(" > ");
    const own = plain(parts[parts.length - 1]);
    if (page.startsWith("_modules")) return score;
    let bonus = 0;
    if (own === plain(asked)) bonus = 100;
    else if (own === plain(asked) + "s" || own + "s" === plain(asked)) bonus = 90;
    else if (page === "project/changelog") return score / 100;
    else if (own.startsWith(plain(asked))) bonus = 40;
    else if (words.every((word) => own.includes(word.replace(/s$/, "")))) bonus = 30;
    // Words of docs/_extension/words.py, also if more was asked; then words of headings.
    if (kind === "index" && score >= 100) bonus = Math.max(bonus, 60);
    if (kind === "text") {
      const { docnames, indexentries, titleterms } = Search._index;
      const id = docnames.indexOf(page);
      const stem = (word) => new Stemmer().stemWord(word);
      const stems = words.map(stem);
      for (const [entry, found] of Object.entries(indexentries)) {
        const own = entry.split(/[^a-z0-9]+/).filter(Boolean);
        if (found.some(([file]) => file === id) && own.every((word) => stems.includes(stem(word))))
          bonus = Math.max(bonus, 20 * own.length);
      }
      bonus += 4 * stems.filter((word) => [titleterms[word]].flat().includes(id)).length;
      if (/^(comparison|design|project|guides|index|howto.index|examples.scripts)/.test(page)) bonus -= 4;
    }
    // Pages, classes and functions before their parts.
    const isMethod = kind === "object" && /^[A-Z]/.test(parts[parts.length - 2] || "");
    const isModule = kind === "object" && descr.includes("module");
    const isSection = kind !== "object" && parts.length > 1;
    return score + bonus * (isMethod || isModule ? 0.3 : isSection ? 0.7 : 1);
  },

  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
