"use strict";
/* Consult the table of equations, sections, claims, terms and symbols before Sphinx's index; load both with a query. */
const Finding = {
    table: null,
    most: 12, // so many entries of the table are shown, and
    mostPages: 30, // so many pages

    setTable(table) {
        Finding.table = table;
    },

    /* How well an entry answers: its key itself, its beginning, a part of it, or all words of the query. */
    score(entry, query, words) {
        let best = 0;
        for (const key of entry.keys) {
            if (key === query) return 100;
            if (key.startsWith(query)) best = Math.max(best, 60 + (20 * query.length) / key.length);
            else if (query.length > 1 && key.includes(query)) best = Math.max(best, 40 + (20 * query.length) / key.length);
            else if (words.length > 1 && words.every((word) => key.includes(word))) best = Math.max(best, 30);
        }
        return best;
    },

    look(query) {
        const wanted = query.normalize("NFKC").toLowerCase().trim().replace(/\s+/g, " ");
        if (!wanted || !Finding.table) return [];
        const words = wanted.split(" ");
        const order = ["Equation", "Term", "Function", "Claim", "Symbol", "Section"];
        const short = /^[a-z]$/.test(wanted); // one letter means a symbol
        return Finding.table.entries
            .map((entry) => [Finding.score(entry, wanted, words), entry])
            .filter(([score]) => score >= (short ? 100 : 30))
            .sort(([a, x], [b, y]) => b - a || order.indexOf(x.kind) - order.indexOf(y.kind))
            .slice(0, Finding.most)
            .map(([, entry]) => entry);
    },

    /* Text as HTML, in which Chinese is said to be Chinese: a voice and a font depend on it. */
    escape(text) {
        const element = document.createElement("span");
        element.textContent = text;
        return element.innerHTML.replace(/\p{Script=Han}+/gu, '<span lang="zh">$&</span>');
    },

    /* An entry as a result of Sphinx: [page, title, anchor, description, score, file]. */
    result(entry) {
        const about = entry.about.length > 200 ? `${entry.about.slice(0, 200)}…` : entry.about;
        const where = Finding.table.titles[entry.page];
        const words = `${entry.kind}, in ${where}: ${about}`;
        const anchor = entry.anchor && `#${encodeURIComponent(entry.anchor)}`;
        return [entry.page, Finding.escape(entry.title), anchor, Finding.escape(words), 1000, ""];
    },
};

/* Sphinx shows its list from the end. */
Search._performSearchInIndex = Search._performSearch;
Search._performSearch = (query, ...rest) => {
    const entries = Finding.look(query).map(Finding.result);
    // An entry stands for its page, where the page is a list of such entries.
    const list = (page) => ["reference/notation", "reference/glossary", "coverage"].includes(page);
    const there = new Set(entries.map(([page, , anchor]) => (list(page) ? page : page + decodeURIComponent(anchor))));
    const pages = Search._performSearchInIndex(query, ...rest)
        .filter((result) => !there.has(result[0]) && !there.has(result[0] + result[2]))
        .slice(-Finding.mostPages);
    return [...pages, ...entries.reverse()];
};

/* The excerpt is prose: no headings' links, contents, code or TeX. */
Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const content = (anchor && page.getElementById(decodeURIComponent(anchor.slice(1)))) || page.querySelector("article");
    if (!content) return "";
    content.querySelectorAll("script, style, annotation, pre, .headerlink, .toctree-wrapper").forEach((e) => e.remove());
    content.querySelectorAll("math").forEach((formula) => formula.replaceWith(formulaText(formula)));
    return content.textContent.replace(/\\[()[\]]|\\tag\{[^}]*\}|\\[A-Za-z]+|[{}]/g, " ").replace(/\s+/g, " ").trim();
};

Search.makePlainSummary = Search.makeSearchSummary;
Search.makeSearchSummary = (...given) => {
    const summary = Search.makePlainSummary(...given);
    if (summary) summary.innerHTML = Finding.escape(summary.textContent);
    return summary;
};

/* Chinese words are marked whole before their pairs of characters, of which none can reach into a mark. */
Search.parseWords = Search._parseQuery;
Search._parseQuery = (query) => {
    const parsed = Search.parseWords(query);
    const runs = query.match(/\p{Script=Han}+/gu) ?? [];
    parsed[3] = new Set([...runs, ...parsed[3]]);
    localStorage.setItem("sphinx_highlight_terms", [...parsed[3]].join(" "));
    return parsed;
};

/* The table and the index come with a query; with the index, Sphinx begins. */
if (new URLSearchParams(location.search).get("q")) {
    const table = document.createElement("script");
    table.src = "_static/finding-table.js";
    table.onload = table.onerror = () => Search.loadIndex("searchindex.js");
    document.head.append(table);
}
