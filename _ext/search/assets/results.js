"use strict";
/* The page of the search: asks Finding, and shows what answers. The index comes with the first question. */
{
    const most = { direct: 6, pages: 20, places: 3 };
    const list = document.getElementById("search-results");
    const field = document.querySelector(".bd-search-container form.bd-search input");

    /* Marks what an edition in another language has to say its own way. */
    const say = (text) => text;

    /* An element with its text, in which Chinese is said to be Chinese: a voice and a font depend on it. */
    const element = (name, text = "", attributes = {}) => {
        const made = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        for (const piece of text.split(/(\p{Script=Han}+)/u)) {
            if (!/\p{Script=Han}/u.test(piece)) made.append(piece);
            else made.append(Object.assign(document.createElement("span"), { lang: "zh", textContent: piece }));
        }
        return made;
    };

    /* What a result says, with the words that were looked for marked. */
    const excerpt = (text, words) => {
        const made = element("p", "", { class: "context" });
        const wanted = new Set(words);
        for (const piece of text.split(/([\p{Script=Latin}\p{Script=Greek}\d_]+|\p{Script=Han}+)/u)) {
            const found = Finding.words(piece, true).some((word) => wanted.has(word));
            made.append(found ? element("span", piece, { class: "highlighted" }) : element("span", piece));
        }
        return made;
    };

    const address = ({ page, anchor }) => `${Finding.pages[page][0]}.html${anchor && `#${encodeURIComponent(anchor)}`}`;
    const title = ({ page }) => Finding.pages[page][1];

    /* What a kind of result is called. */
    const called = {
        Equation: "an equation", Term: "a term", Function: "a function", Claim: "a claim", Symbol: "a symbol", Section: "a section",
    };

    const entry = (found, words) => {
        const item = element("li");
        item.append(element("a", found.title, { href: address(found) }));
        item.append(element("span", ` ${called[found.kind]}, in ${title(found)}`, { class: "search-kind" }), excerpt(found.about, words));
        return item;
    };

    const page = ({ places }, words) => {
        const [first, ...others] = places;
        const item = element("li");
        const whole = title(first);
        item.append(element("a", whole === first.title ? whole : `${whole} › ${first.title}`, { href: address(first) }));
        if (first.kind === "Claim") item.append(element("span", " a claim", { class: "search-kind" }));
        item.append(excerpt(first.about, words));
        const more = others.filter(({ title }) => title !== first.title).slice(0, most.places);
        if (more.length) {
            const also = element("p", "Also there: ", { class: "search-also" });
            more.forEach((place, k) => also.append(k ? say("; ") : "", element("a", place.title || whole, { href: address(place) })));
            item.append(also);
        }
        return item;
    };

    /* The whole word, in what is shown, of the stem under which it was found. */
    const whole = (stem) => {
        for (const { title, about } of Finding.documents)
            for (const [word] of `${title} ${about}`.toLowerCase().matchAll(/\p{Script=Latin}+/gu))
                if (Finding.stem(word) === stem) return word;
        return stem;
    };

    const show = (query) => {
        const { direct, pages, words, dropped, read } = Finding.look(query);
        const entries = direct.slice(0, most.direct);
        const there = new Set(entries.map(address));
        const others = pages.filter(({ places }) => !there.has(address(places[0]))).slice(0, most.pages);
        const count = entries.length + others.length;
        const status = element("p", count ? `${count} results, the best first.` : "Nothing was found.", { class: "search-summary", role: "status" });
        for (const [said, stem] of read) status.append(" ", element("span", `“${said}” is not in the book; “${whole(stem)}” is.`));
        if (dropped.length) status.append(" ", element("span", `Not in the book, and left out: ${dropped.join(", ")}.`));
        if (!count) status.append(" ", element("span", "Try a term, in English or Chinese, or the number of an equation."));
        const found = element("ul", "", { class: "search" });
        found.append(...Finding.arranged(entries, others).map((one) => (one.places ? page : entry)(one, words)));
        list.replaceChildren(status, found);
    };

    let loading;
    /* What the build wrote: JSON, packed by gzip and base64, since a page from a file can load nothing but a script. */
    Finding.arrive = async (packed) => {
        const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
        const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
        Finding.load(JSON.parse(text));
    };
    const load = () => {
        loading ??= new Promise((done, failed) => {
            const script = element("script", "", { src: "_static/finding-data.js" });
            script.onload = () => Finding.arriving.then(done, failed);
            script.onerror = failed;
            document.head.append(script);
        });
        return loading;
    };

    const ask = async () => {
        const query = new URLSearchParams(location.search).get("q")?.trim();
        if (field) field.value = query ?? "";
        if (!query) return list.replaceChildren();
        if (!Finding.index) list.replaceChildren(element("p", "Searching …", { class: "search-summary", role: "status" }));
        try {
            await load();
            show(query);
        } catch {
            list.replaceChildren(element("p", "The index of the search could not be loaded.", { class: "search-summary", role: "status" }));
        }
    };

    field?.form.addEventListener("submit", (event) => {
        event.preventDefault();
        history.pushState(null, "", `?q=${encodeURIComponent(field.value)}`);
        ask();
    });
    addEventListener("popstate", ask);
    ask();
}
