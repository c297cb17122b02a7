// Find the wrong line: the lines of an exercise become buttons, and what a reader has found stays in this browser.
// A page is complete without this script: the solution is folded below each exercise.
"use strict";

(() => {
  const KEY = "wrong-lines";
  const short = (id) => id.slice(id.lastIndexOf("-") + 1);
  const make = (tag, attributes, ...content) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...content);
    return element;
  };

  // --- what has been found: the number of tries of each exercise -----------------------------------

  let found = {}; // a browser that stores nothing remembers until the page is left
  function recall() {
    try {
      found = JSON.parse(localStorage.getItem(KEY)) ?? {};
    } catch {
      found = {};
    }
  }
  function store() {
    try {
      if (Object.keys(found).length) localStorage.setItem(KEY, JSON.stringify(found));
      else localStorage.removeItem(KEY);
    } catch { /* nothing is stored */ }
  }

  const said = (ids) => `${ids.filter((id) => found[id]).length} of ${ids.length} found`;
  const scores = [];
  const show = () => scores.forEach(([element, ids]) => { element.textContent = said(ids); });

  // --- an exercise ---------------------------------------------------------------------------------

  function begin(article) {
    if (article.classList.contains("live")) return;
    article.classList.add("live");
    const id = short(article.id), wrong = Number(article.dataset.wrong);
    const solution = article.querySelector("details"), status = article.querySelector("[role=status]");
    const buttons = new Map();
    let tries = 0;

    function answer(number) {
      const item = buttons.get(number).parentElement;
      if (article.classList.contains("solved")) return;
      tries += !item.classList.contains("right");
      if (number === wrong) {
        found[id] ??= tries;
        store();
        solve();
        const mistake = article.querySelector(".wrong-line-mistake").cloneNode(true);
        const first = tries === 1 ? "at the first try" : `at try ${tries}`;
        status.replaceChildren(`Found ${first}: line ${number} does not follow. The mistake: `, mistake, ".");
        solution.open = true;
        show();
      } else {
        item.classList.add("right");
        buttons.get(number).setAttribute("aria-label", `Line ${number} follows`);
        status.textContent = `Line ${number} follows from the right line before it. Look again.`;
      }
    }

    function solve() {
      article.classList.add("solved");
      for (const [number, button] of buttons) {
        const right = number !== wrong;
        button.parentElement.classList.add(right ? "right" : "wrong");
        button.setAttribute("aria-label", right ? `Line ${number} follows` : `Line ${number} is the wrong one`);
      }
    }

    function forget() {
      article.classList.remove("solved");
      for (const [number, button] of buttons) {
        button.parentElement.classList.remove("right", "wrong");
        button.setAttribute("aria-label", `Line ${number} does not follow`);
      }
      status.replaceChildren();
      solution.open = false;
      tries = 0;
    }

    article.querySelectorAll("ol > li").forEach((item, k) => {
      if (!k) return; // the first line is given
      const button = make("button", { type: "button", className: "wrong-line-pick" }, String(k + 1));
      buttons.set(k + 1, button);
      item.prepend(button);
      item.addEventListener("click", () => { // the whole line, unless a reader marks some of it
        if (!getSelection().toString()) answer(k + 1);
      });
    });
    forget();
    article.addEventListener("forget", forget);
    if (found[id]) {
      solve();
      status.textContent = "You have found this one.";
    }
  }

  // --- sets ----------------------------------------------------------------------------------------

  // How many of a section's exercises are found, above the first of them.
  function count() {
    for (const score of document.querySelectorAll(".wrong-line-score")) {
      const inside = [...score.parentElement.querySelectorAll(":scope > .wrong-line")];
      scores.push([score, inside.map((article) => short(article.id))]);
    }
  }

  // FNV-1a with a last stir: numbers that differ for each date and each exercise, and are the same for everybody.
  function hash(text) {
    let h = 2166136261;
    for (const letter of text) h = Math.imul(h ^ letter.codePointAt(0), 16777619);
    h = Math.imul(h ^ (h >>> 16), 2246822507);
    return (h ^ (h >>> 13)) >>> 0;
  }

  // Exercises of one day, each of another set: three with at least four lines, then any; the short ones stand first.
  function chosen(sets, date, most) {
    const all = sets.flatMap(([name, page, title, ids]) => ids.map(([id, lines]) => ({ name, page, title, id, lines })));
    all.sort((a, b) => hash(date + a.id) - hash(date + b.id));
    const picked = [];
    const pick = (from, upTo) => {
      for (const one of from) {
        if (picked.length < upTo && picked.every(({ name }) => name !== one.name)) picked.push(one);
      }
    };
    pick(all.filter(({ lines }) => lines > 3), Math.min(3, most));
    pick(all, most);
    return picked.sort((a, b) => a.lines - b.lines);
  }

  async function today(box, sets, root) {
    const now = new Date();
    const date = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
    const picked = chosen(sets, date, Number(box.dataset.most));
    const shown = await Promise.all(picked.map(async ({ id, page, title }) => {
      const link = make("a", { href: `${page}#wrong-line-${id}` }, title);
      const holder = make("div", {}, make("p", { className: "wrong-line-from" }, "From ", link));
      try {
        const answer = await fetch(new URL(`wrong-lines/${id}.json`, root));
        if (answer.ok) holder.insertAdjacentHTML("beforeend", await answer.json());
      } catch { /* a page that is read from a disk may fetch nothing: the link remains */ }
      return holder;
    }));
    const score = make("p", { className: "wrong-line-score" });
    box.replaceChildren(make("p", { className: "wrong-line-date" }, date), score, ...shown);
    scores.push([score, picked.map(({ id }) => id)]);
    await window.MathJax?.typesetPromise?.([box]);
    box.querySelectorAll(".wrong-line").forEach(begin);
    show();
  }

  // The sets that a page lists: how many of each are found.
  function listed() {
    const known = [...document.querySelectorAll(".wrong-line-sets")].flatMap((list) => JSON.parse(list.dataset.sets));
    const of = new Map(known.map(([name, , , ids]) => [name, ids.map(([id]) => id)]));
    for (const item of document.querySelectorAll("[data-set]")) {
      scores.push([item.querySelector(".score"), of.get(item.dataset.set)]);
    }
    return known;
  }

  // The button that forgets stands where there is something to forget.
  function forgetting() {
    const done = make("span", {});
    done.setAttribute("role", "status");
    const button = make("button", { type: "button" }, "Forget what I have found");
    button.addEventListener("click", () => {
      found = {};
      store();
      for (const article of document.querySelectorAll(".wrong-line.live")) article.dispatchEvent(new Event("forget"));
      show();
      done.textContent = "Forgotten: this browser remembers nothing of it.";
    });
    return make("p", { className: "wrong-line-forget" }, button, " ", done);
  }

  const script = document.currentScript.src; // the copies lie beside it
  function run() {
    recall();
    document.querySelectorAll(".wrong-line").forEach(begin);
    count();
    (document.querySelector(".bd-article section") ?? document.body).append(forgetting());
    const known = listed();
    const box = document.querySelector(".wrong-line-today");
    if (box) today(box, known, script);
    show();
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run);
  else run();

  // Another tab may have found some.
  addEventListener("storage", ({ key }) => {
    if (key !== KEY) return;
    recall();
    show();
  });
})();
