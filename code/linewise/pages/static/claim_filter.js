// The form above a list of claims shows those that a reader asks for, in the order that the reader asks for.
// An entry is a box about one claim, or a row of the coverage table with links to the claims that treat its sentence.
"use strict";

(() => {
  const form = document.querySelector("form.claim-filter");
  if (!form) return;
  const menu = (name) => [...form.elements[name].options].map((option) => option.value || option.text);
  const rank = { verdict: menu("verdict"), grade: menu("grade") };
  // Formulas are compared without the signs that only TeX needs: d_k, dk; √d_k, \sqrt{d_k}.
  const plain = (text) => text.normalize("NFKC").toLowerCase().replace(/\\sqrt/g, "√").replace(/[_^{}\\$]/g, "");
  const texts = (name) => Object.fromEntries([...form.elements[name].options].map((o) => [o.value, o.text]));
  const label = { section: texts("section"), chapter: texts("chapter") };

  const words = form.dataset.words.split("|");

  // What is known of a claim: a link of the table has all of it as data, an entry says some of it in its first line.
  function known(element) {
    const data = { sections: "own", ...element.dataset, words: words[element.dataset.words] };
    if (element.matches("a")) return { ...data, title: element.title };
    const said = (kind) => element.querySelector(`.${kind}`)?.textContent;
    const chapter = element.querySelector(".claim-link").pathname.match(/([^/]*)\.html$/)[1];
    const [claim, first] = said("claim-id").match(/([^/]*).*/);
    if (!element.dataset.sections && label.section[first]) data.sections = first;
    return { ...data, verdict: said("verdict-badge"), grade: said("claim-grade"), chapter, claim };
  }

  // The text of an element, with its formulas as one would type them.
  function content(element) {
    const copy = element.cloneNode(true);
    for (const formula of copy.querySelectorAll("math")) formula.replaceWith(formulaText(formula));
    return copy.textContent;
  }

  function read(element, order) {
    const row = element.matches("tr");
    const claims = (row ? [...element.querySelectorAll("a[data-claim]")] : [element]).map(known);
    const of = (key) => claims.flatMap((claim) => claim[key] || []);
    const verdict = of("verdict");
    if (!claims.length) verdict.push(element.lastElementChild.textContent.trim().split(" ")[0]);
    const section = row ? [element.closest("details").dataset.section] : of("sections").flatMap((s) => s.split(" "));
    const chapter = of("chapter");
    const text = [content(element), ...["claim", "grade", "words", "title", "equations"].flatMap(of)];
    text.push(...section.map((s) => label.section[s]), ...chapter.map((c) => label.chapter[c]));
    const first = (key, values) => Math.min(...values.map((value) => rank[key].indexOf(value)).filter((k) => k >= 0));
    return {
      element, order, verdict, section, chapter, grade: of("grade"), text: plain(text.join(" ")),
      key: {
        "": order, source: Math.min(...of("source")), book: Math.min(...of("book")),
        verdict: first("verdict", verdict), grade: first("grade", of("grade")),
      },
    };
  }

  // Of a divided ledger the entries have their first line alone. The others are in a script, packed, and come when they
  // are asked for: with the first word that is typed, with the first line that is unfolded, with a list that is narrowed.
  const brief = Boolean(form.dataset.entries);
  let coming, failed;
  function fetchAll() {
    coming ??= new Promise((done, fail) => {
      window.ledgerEntries = done;
      const script = Object.assign(document.createElement("script"), { src: form.dataset.entries, onerror: fail });
      document.head.append(script);
      form.setAttribute("aria-busy", "true");
    }).then(async (packed) => {
      const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const all = Object.assign(document.createElement("template"), { innerHTML: await new Response(stream).text() });
      for (const entry of entries) {
        const whole = all.content.getElementById(entry.element.id);
        if (!whole) continue;
        entry.text += ` ${plain(content(whole))}`;
        entry.rest = [...whole.children].slice(1);
      }
    }).catch(() => { failed = true; }).finally(() => form.removeAttribute("aria-busy"));
    return coming;
  }

  // An entry shows all that it says, or its first line.
  function unfold(entry, open) {
    if (!brief || !entry.rest || entry.open === open) return;
    entry.open = open;
    entry.element.classList.toggle("brief", !open);
    entry.element.querySelector("a.claim-id")?.setAttribute("aria-expanded", open);
    if (open) entry.element.append(...entry.rest);
    else for (const part of entry.rest) part.remove();
  }

  function followLink() {
    const entry = entries.find(({ element }) => element.id && element.id === decodeURIComponent(location.hash.slice(1)));
    if (!brief || !entry) return;
    fetchAll().then(() => unfold(entry, true));
  }

  const boxes = document.querySelectorAll(".claim-entry, .coverage-table tbody tr");
  const entries = [...boxes].map(read);
  for (const entry of entries) entry.home = entry.element.parentElement;

  // What holds entries, a section of the page or a folded table, goes when it holds none that is shown.
  const groups = new Map();
  for (const entry of entries) {
    for (let e = entry.home; e && !e.contains(form); e = e.parentElement) {
      if (!e.matches("section, details")) continue;
      const link = e.id && document.querySelector(`.bd-toc-nav a[href="#${CSS.escape(e.id)}"]`);
      if (!groups.has(e)) groups.set(e, { contents: link?.closest("li"), entries: [] });
      groups.get(e).entries.push(entry);
    }
  }

  // The place of the entries when they are not in the order of the page.
  const table = entries[0]?.element.closest("table");
  const flat = table ? table.cloneNode(true) : document.createElement("div");
  flat.classList.add("claim-list");
  const list = table ? flat.tBodies[0] : flat;
  list.replaceChildren();
  const holder = table ? Object.assign(document.createElement("div"), { className: "coverage-table" }) : flat;
  if (table) {
    holder.append(flat);
    for (const { element, section } of entries) element.cells[0].querySelector("p").dataset.section = section[0];
  }
  form.after(holder);

  const SHORT = 100;
  let sorted = "", unfolded = false;
  function sort(by) {
    if (by === sorted) return;
    sorted = by;
    const ordered = [...entries].sort((a, b) => a.key[by] - b.key[by] || a.order - b.order || 0);
    if (by) list.append(...ordered.map((entry) => entry.element));
    else for (const entry of ordered) entry.home.append(entry.element);
  }

  // A section holds its subsections.
  const fits = (name, value, asked) => value === asked || (name === "section" && value.startsWith(`${asked}.`));

  function apply() {
    const wanted = Object.fromEntries([...new FormData(form)].filter(([, value]) => value.trim()));
    const words = plain(wanted.text ?? "").split(/\s+/).map((word) => word.replace(/^\((.*\..*)\)$/, "$1")); // (5.1.9)
    const menus = ["verdict", "grade", "section", "chapter"].filter((name) => wanted[name]);
    const narrowed = menus.length > 0 || words.some(Boolean);
    const missing = brief && narrowed && !failed && !entries.some((entry) => entry.rest);
    if (missing) fetchAll().then(apply);
    let count = 0;
    for (const entry of entries) {
      const shown = menus.every((name) => entry[name].some((value) => fits(name, value, wanted[name]))) &&
        words.every((word) => entry.text.includes(word));
      entry.element.hidden = !(entry.shown = shown);
      count += shown;
    }
    // What is left of a short list is read whole.
    const short = narrowed && count <= SHORT;
    for (const entry of short || unfolded ? entries : []) unfold(entry, short && entry.shown);
    unfolded = short;
    sort(wanted.sort ?? "");
    for (const [group, { contents, entries: held }] of groups) {
      group.hidden = Boolean(sorted) || !held.some((entry) => entry.shown);
      if (contents) contents.hidden = group.hidden;
      if (group.matches("details")) group.open = narrowed;
    }
    holder.hidden = !sorted || !count;
    form.querySelector("output").value = narrowed
      ? `${count} of ${entries.length} ${form.dataset.unit} shown${failed ? ", by their titles alone" : ""}`
      : `${entries.length} ${form.dataset.unit}`;
    const query = new URLSearchParams(wanted).toString();
    try {
      history.replaceState(null, "", `${location.pathname}${query && "?" + query}${location.hash}`);
    } catch {
      // A page that was opened as a file may not change its address: the filter works, and cannot be linked to.
    }
  }

  // The entry at the top of the window, and how far its top is from it.
  const topOf = ({ element }) => element.getBoundingClientRect().top;
  const place = () => `entry ${location.pathname}${location.search}`;
  function noteEntry() {
    const below = entries.filter(({ element }) => !element.hidden && element.getBoundingClientRect().bottom > 0);
    const first = below.reduce((one, other) => (one && topOf(one) <= topOf(other) ? one : other), undefined);
    if (first) sessionStorage.setItem(place(), JSON.stringify({ entry: first.element.id, top: topOf(first) }));
  }
  async function stayAt({ entry, top }) {
    await coming;
    const element = document.getElementById(entry);
    element?.scrollIntoView({ behavior: "instant" });
    if (element) scrollBy({ top: topOf({ element }) - top, behavior: "instant" });
  }

  // What an address asks for, as far as the form has it.
  const offered = (field, value) => field && (!field.options || [...field.options].some((o) => o.value === value));
  const asked = [...new URLSearchParams(location.search)].filter(([name, value]) => offered(form.elements[name], value));
  for (const [name, value] of asked) form.elements[name].value = value;
  form.addEventListener("input", apply);
  addEventListener("pagehide", noteEntry);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  form.hidden = false;
  if (brief) {
    document.querySelector("main").addEventListener("click", (event) => {
      const box = event.target.closest("a.claim-id")?.closest(".claim-entry");
      const entry = box && !event.ctrlKey && !event.metaKey && !event.shiftKey && entries.find(({ element }) => element === box);
      if (!entry || failed) return;
      event.preventDefault();
      fetchAll().then(() => (failed ? location.assign(event.target.closest("a").href) : unfold(entry, !entry.open)));
    });
    addEventListener("hashchange", followLink);
    followLink();
  }
  if (asked.length) {
    apply();
    // Who comes back, reloads or follows a link to an entry is to stay there. The page has another height until its
    // entries are unfolded, so that the browser does not find the place.
    const [arrival] = performance.getEntriesByType("navigation");
    if (arrival?.type === "navigate" && !location.hash) addEventListener("load", () => form.scrollIntoView());
    else if (sessionStorage.getItem(place())) addEventListener("load", () => stayAt(JSON.parse(sessionStorage.getItem(place()))));
  } else {
    form.reset();
  }
})();
