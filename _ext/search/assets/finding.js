"use strict";
/* What the search knows: the words of a text, the index, and what answers a question. It needs no page: the build makes
   the index with it, too. MiniSearch keeps and ranks the words; here is what it cannot know. */
const Finding = {
    // --- words -------------------------------------------------------------------------------------------------

    // Chinese; numbers of equations and sections; words of letters, with the parts of their names.
    piece: /\p{Script=Han}+|(?<![\w.])(?:[a-z]|\d)(?:\.\d+)+(?![\w])|[\p{Script=Latin}\p{Script=Greek}\d_]+/gu,
    han: /^\p{Script=Han}/u,
    number: /^(?:[a-z]|5)(?:\.\d+)+$/,

    // The simplified forms of traditional characters.
    simplified: new Map(),

    /* A text as it is compared: full-width signs are plain ones, also the stop between digits of a Chinese keyboard, and
       traditional characters are simplified. */
    plain(text) {
        return Array.from(text, (sign) => Finding.simplified.get(sign) ?? sign)
            .join("")
            .replace(/[²³]/g, (sign) => (sign === "²" ? "^2" : "^3"))
            .normalize("NFKC")
            .toLowerCase()
            .replace(/(?<=\d) *[。·] *(?=\d)/g, ".")
            .replace(/√/g, " root ")
            .replace(/[’']s\b/g, "")
            .trim()
            .replace(/\s+/g, " ");
    },

    /* A word without its ending, in one spelling: initialised and initialization are initializ, sparsity and sparse spars. */
    stem(word) {
        if (word.length < 4 || /\d/.test(word)) return word;
        const cut = (ending, least, by = "") => {
            const found = word.match(ending);
            if (!found || word.length - found[0].length < least) return false;
            word = word.slice(0, -found[0].length) + by;
            return true;
        };
        word = word.replace(/ours?$/, "or").replace(/^(matri|verti|indi)ces$/, (w, s) => ({ matri: "matrix", verti: "vertex", indi: "index" })[s]);
        cut(/ies$/, 3, "y") || cut(/(?<=[sxz]|ch|sh)es$/, 3) || cut(/(?<![su])s$/, 3);
        cut(/nce$/, 4, "nt") || cut(/i[sz]ation(?:al)?$/, 3, "iz") || cut(/(?:at)(?:ion(?:al)?|ive|or|ed|e|ing)$/, 3) || cut(/i[sz](?:e|ed|er|ing)$/, 4, "iz") ||
            cut(/ion(?:al)?$/, 4) || cut(/ity$/, 3) || cut(/ly$/, 4) || (cut(/(?:ing|ed)$/, 3) && cut(/([b-df-hj-np-rtv-y])\1$/, 2, word.at(-1)));
        cut(/e$/, 3);
        return word;
    },

    /* The words of a text under which the index has it: stems, numbers of equations, pairs of Chinese characters. */
    words(text, names = false) {
        const found = [];
        for (const [piece] of Finding.plain(text).matchAll(Finding.piece)) {
            if (Finding.han.test(piece)) found.push(...Finding.pairs(piece));
            else if (Finding.number.test(piece)) found.push(piece);
            else found.push(...Finding.parts(piece).map(Finding.stem));
        }
        return names ? found : found.filter((word) => Finding.han.test(word) || (word.length > 1 && !/^\d+$/.test(word)));
    },

    /* effective_rank is two words, d_k is one. */
    parts(name) {
        const parts = name.split("_").filter(Boolean);
        return parts.every((part) => part.length > 2) ? parts : [parts.join("")];
    },

    pairs(run) {
        const signs = [...run];
        return signs.length < 2 ? signs : signs.slice(1).map((sign, k) => signs[k] + sign);
    },

    // --- the index ---------------------------------------------------------------------------------------------

    options() {
        return {
            fields: ["title", "names", "above", "text"],
            tokenize: (text, field) => Finding.words(text, field === "names").filter((word) => !Finding.stop.has(word)),
            processTerm: (word) => word,
        };
    },

    /* Take over the words of questions: what Chinese words are called in the book, words alike, words to leave out. */
    learn({ chinese, alike, stop, traditional }) {
        const [signs, simplified] = traditional.map((line) => [...line]);
        Finding.simplified = new Map(signs.map((sign, k) => [sign, simplified[k]]));
        Finding.stop = new Set(stop.map((word) => (Finding.han.test(word) ? word : Finding.stem(word))));
        Finding.chinese = new Map(Object.entries(chinese));
        Finding.longest = Math.max(...[...Finding.chinese.keys(), ...Finding.stop].map((word) => word.length));
        Finding.alike = new Map();
        for (const line of alike) {
            const word = Finding.stem(line[0]), others = line.slice(1).map((other) => Finding.words(other));
            Finding.alike.set(word, [...(Finding.alike.get(word) ?? []), ...others]);
        }
    },

    /* Return the index of documents {title, names, above, text}, packed: of each word the documents of each field. */
    build(words, documents) {
        Finding.learn(words);
        const index = new MiniSearch(Finding.options());
        index.addAll(documents.map((document, id) => ({ id, ...document })));
        const made = JSON.parse(JSON.stringify(index));
        const postings = (places) => {
            let last = 0;
            return Object.entries(places).map(([id, count]) => {
                const step = (id - last).toString(36);
                last = Number(id);
                return count > 1 ? `${step}.${Math.min(count, 9)}` : step;
            });
        };
        const line = ([word, fields]) => [word, ...Object.entries(fields).map(([k, places]) => `${k}:${postings(places)}`)].join(" ");
        const lengths = Object.values(made.fieldLength).map((counts) => counts.map((count) => count.toString(36)).join(","));
        return { lines: made.index.map(line).join("\n"), lengths: lengths.join(" "), average: made.averageFieldLength };
    },

    /* Return a packed index as MiniSearch writes one. */
    unpacked({ lines, lengths, average }) {
        const places = (text) => {
            let id = 0;
            return Object.fromEntries(text.split(",").map((posting) => {
                const [step, count] = posting.split(".");
                return [(id += parseInt(step, 36)), Number(count ?? 1)];
            }));
        };
        const index = lines.split("\n").map((line) => {
            const [word, ...fields] = line.split(" ");
            return [word, Object.fromEntries(fields.map((field) => field.split(":")).map(([k, text]) => [k, places(text)]))];
        });
        const counts = lengths.split(" ").map((line) => line.split(",").map((count) => parseInt(count, 36)));
        return {
            documentCount: counts.length, nextId: counts.length, documentIds: { ...[...counts.keys()] },
            fieldIds: Object.fromEntries(Finding.options().fields.map((name, k) => [name, k])),
            fieldLength: { ...counts }, averageFieldLength: average, storedFields: {}, dirtCount: 0, index,
            serializationVersion: 2,
        };
    },

    /* Take over what the build wrote. Of a document: kind, title, what it says, number of its page, anchor, keys. */
    load({ index, words, documents, pages, ranking }) {
        Object.assign(Finding, ranking);
        Finding.learn(words);
        const unpacked = Finding.unpacked(index);
        Finding.index = MiniSearch.loadJS(unpacked, Finding.options());
        Finding.vocabulary = new Set(unpacked.index.map(([word]) => word));
        Finding.pages = pages;
        Finding.documents = documents.map(([kind, title, about, page, anchor, keys]) => ({
            kind, title, about, page, anchor, keys: keys.map(Finding.plain),
        }));
        // What a letter is called; of its symbols the first one on the page of symbols.
        const symbols = Finding.documents.filter(({ kind }) => kind === "Symbol");
        const letters = symbols.flatMap(({ keys }) => keys.filter((key) => key.length === 1).map((key) => [key, keys]));
        Finding.letters = new Map(letters.reverse().map(([key, keys]) => [key, keys.filter((name) => /^[a-z]{3,}$/.test(name))]));
    },

    // --- questions ---------------------------------------------------------------------------------------------

    order: ["Equation", "Term", "Function", "Claim", "Symbol", "Section"],
    // What one writes before and after the number of an equation or a section.
    numbered: /(?:公式|方程|等式|式|第|章|节|小节|sections?|sec\.?|chapter|equations?|eqs?\.?|eqn\.?|formula|[§#()[\]{}【】\s])+/gu,

    /* The documents that are meant by name: a key of theirs is the query, or begins with it. */
    direct(query) {
        const wanted = Finding.plain(query);
        const bare = wanted.replace(Finding.numbered, "");
        const said = Finding.content(wanted);
        const asked = new Set([wanted, ...(/^(?:[a-z]\.)?\d+(?:\.\d+)*$/.test(bare) ? [bare, `(${bare})`] : []), said]);
        asked.delete("");
        const rank = (key) => {
            if (asked.has(key)) return 2;
            return wanted.length > 1 && key.startsWith(wanted) ? 1 + wanted.length / key.length / 2 : 0;
        };
        const section = /[章节§]|sec/.test(wanted);
        const place = (kind) => (section && kind === "Section" ? -1 : Finding.order.indexOf(kind));
        const found = Finding.documents
            .filter((document) => document.keys.length)
            .map((document) => [Math.max(...document.keys.map(rank)), document])
            .filter(([score]) => score > 1)
            .sort(([a, x], [b, y]) => b - a || place(x.kind) - place(y.kind));
        return found.map(([, document]) => document);
    },

    /* A question without its words that say nothing: of "what is effective rank?" it is "effective rank". */
    content(text) {
        const words = text.replace(/[?？!！。.,，;；]+$/u, "").split(" ");
        return words.filter((word) => !Finding.stop.has(Finding.stem(word))).join(" ");
    },

    /* What a question asks for: for each of its words the ways to say it, each a list of words of the index. */
    asked(query) {
        const asked = [];
        const unit = (said, ways, written) => asked.push({ said, ways, written });
        for (const [piece] of Finding.plain(query).matchAll(Finding.piece)) {
            if (Finding.han.test(piece)) Finding.cut(piece).forEach((part) => unit(...part));
            else if (Finding.number.test(piece)) unit(piece, [[piece]]);
            else
                for (const part of Finding.parts(piece)) {
                    const stem = Finding.stem(part);
                    if (Finding.stop.has(stem)) continue;
                    const others = part.length > 1 ? Finding.alike.get(stem) : Finding.letters.get(part)?.map((name) => [Finding.stem(name)]);
                    unit(part, [[stem], ...(others ?? [])]);
                }
        }
        asked.slice(1).forEach((next, k) => Finding.join(asked[k], next));
        return asked;
    },

    /* Two words that the book writes as one may be said so, too: flash attention is FlashAttention. */
    join(...two) {
        const one = Finding.stem(two.map(({ said }) => said).join(""));
        const parts = two.every(({ said }) => said.length > 2 && !Finding.han.test(said));
        if (parts && Finding.vocabulary.has(one)) two.forEach(({ ways }) => ways.push([one]));
    },

    /* Cut Chinese text into the longest known words; what is left between them is looked for as it stands, and a single
       character with its neighbours. */
    cut(run) {
        const found = [];
        let rest = "";
        const close = (at) => {
            const ways = rest.length === 1 && run.length > 1 ? Finding.around(run, at - 1) : [Finding.pairs(rest)];
            if (rest && ways.length) found.push([rest, ways]);
            rest = "";
        };
        for (let at = 0; at < run.length; ) {
            let length = Math.min(Finding.longest, run.length - at);
            while (length && !Finding.chinese.has(run.slice(at, at + length)) && !Finding.stop.has(run.slice(at, at + length))) length--;
            const written = run.slice(at, at + length);
            const slip = length < 2 && Finding.slip(run.slice(at));
            const word = slip || written;
            if (!word) rest += run[at++];
            else {
                close(at);
                if (Finding.chinese.has(word)) {
                    const said = Finding.chinese.get(word).map((english) => Finding.words(english));
                    found.push([word, [Finding.pairs(word), ...said], slip && run.slice(at, at + slip.length)]);
                }
                at += word.length;
            }
        }
        close(run.length);
        return found;
    },

    /* The pairs of a character with the one before it and the one after it, as far as the book has them. */
    around(run, at) {
        const pairs = Finding.pairs(run.slice(Math.max(0, at - 1), at + 2));
        return pairs.filter((pair) => Finding.vocabulary.has(pair)).map((pair) => [pair]);
    },

    /* The name with which a text begins, but for one character with which the book writes nothing: 特证值 is 特征值. It
       stands inside the name, or the text ends with it: elsewhere it is too often part of another word. */
    slip(text) {
        for (const name of Finding.chinese.keys()) {
            const apart = [...name].flatMap((sign, k) => (sign === text[k] ? [] : [k]));
            if (name.length < 3 || name.length > text.length || apart.length !== 1) continue;
            const [at] = apart, last = at === name.length - 1;
            if (at === 0 || (last && text.length > name.length) || Finding.stop.has(text[at])) continue;
            if (!Finding.pairs(text.slice(at - 1, last ? at + 1 : at + 2)).some((pair) => Finding.vocabulary.has(pair))) return name;
        }
        return undefined;
    },

    /* The word of the book that is spelt most like a word: two neighbouring letters the other way round, or one letter
       apart, or two if it is so long that it is hardly another word. */
    near(word) {
        if (word.length < 4 || Finding.han.test(word)) return undefined;
        const turned = [...word].map((letter, k) => word.slice(0, k) + (word[k + 1] ?? "") + letter + word.slice(k + 2));
        const same = turned.find((other) => Finding.vocabulary.has(other));
        if (same) return same;
        for (let apart = 1; apart <= (word.length > 8 ? 2 : 1); apart++) {
            const count = new Map();
            for (const { terms } of Finding.index.search(word, { fuzzy: apart, prefix: false }))
                for (const term of terms) count.set(term, (count.get(term) ?? 0) + 1);
            if (count.size) return [...count].sort(([, a], [, b]) => b - a)[0][0];
        }
        return undefined;
    },

    // What the tuning half of tests/site/questions.yml chose: what a word weighs in a field and a document of a kind, how
    // much it counts that all words are there, at a place and in the places of a page together, and what the second place
    // of a page adds to the first, the third to it. 60 other questions in English chose `together`.
    weights: { title: 3, names: 3, above: 3, text: 1 },
    kinds: { Part: 1, Exercises: 0.3, Claim: 0.6, Equation: 0.6 },
    coverage: 0.6,
    together: 0.3,
    others: 0.5,
    // What the pages of a folder count beside the others; an index may bring numbers of its own.
    folders: {},

    /* How well each document says one word of a question, in the best of its ways. */
    scores(ways) {
        const best = new Map();
        ways.forEach((way, k) => {
            const sum = new Map();
            for (const word of way)
                for (const { id, score } of Finding.index.search(word, { boost: Finding.weights }))
                    sum.set(id, (sum.get(id) ?? 0) + score / way.length);
            for (const [id, score] of sum) best.set(id, Math.max(best.get(id) ?? 0, score * (k ? 0.8 : 1)));
        });
        return best;
    },

    /* Return what answers a query: entries that are meant by name, pages with their places, and what was not found. */
    look(query) {
        const dropped = [], read = [], known = [];
        for (const { said, ways, written } of Finding.asked(query)) {
            if (written) read.push([written, said]);
            const there = ways.map((way) => way.filter((word) => Finding.vocabulary.has(word))).filter((way) => way.length);
            if (there.length) known.push({ said, ways: there });
            else if (said.length > (Finding.han.test(said) ? 1 : 3)) {
                const near = Finding.near(Finding.stem(said));
                if (near) {
                    known.push({ said: near, ways: [[near]] });
                    read.push([said, near]);
                } else dropped.push(said);
            }
        }
        const meant = read.reduce((text, [word, near]) => text.replace(word, near), Finding.plain(query));
        const direct = Finding.direct(dropped.reduce((text, word) => text.replace(word, " "), meant));
        const total = new Map(), said = new Map();
        for (const unit of known)
            for (const [id, score] of Finding.scores(unit.ways)) {
                total.set(id, (total.get(id) ?? 0) + score);
                said.set(id, [...(said.get(id) ?? []), unit]);
            }
        // The share of the words of the question that places have together.
        const share = (places) => new Set(places.flatMap(({ id }) => said.get(id))).size / known.length;
        const pages = new Map();
        for (const [id, sum] of total) {
            const document = Finding.documents[id];
            const card = document.kind !== "Claim" || document.anchor; // what is not decided has no card to lead to
            const score = sum * share([{ id }]) ** Finding.coverage * (card ? Finding.kinds[document.kind] ?? 0 : 0);
            if (!score) continue;
            if (!pages.has(document.page)) pages.set(document.page, []);
            pages.get(document.page).push({ id, document, score });
        }
        const found = [...pages].map(([page, places]) => {
            places.sort((a, b) => b.score - a.score);
            const best = places.slice(0, 5);
            const sum = best.reduce((sum, place, k) => sum + place.score * Finding.others ** k, 0);
            const score = sum * share(best) ** Finding.together * (Finding.folders[Finding.pages[page][0].split("/")[0]] ?? 1);
            return { page, score, places: places.map((place) => place.document) };
        });
        found.sort((a, b) => b.score - a.score);
        return { direct, pages: found, words: known.flatMap(({ ways }) => ways.flat()), dropped, read };
    },

    /* Entries and pages in the order in which they are shown: entries first, but with many of them the best pages not last. */
    arranged(entries, pages) {
        return [...entries.slice(0, 2), ...pages.slice(0, 3), ...entries.slice(2), ...pages.slice(3)];
    },
};
