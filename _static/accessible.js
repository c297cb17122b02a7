// What the keyboard and screen readers need, and HTML does not give: names of buttons that are made in the browser,
// and a tab stop, a role and a name for each box that scrolls.
"use strict";

const BOXES = [
  ["pre", "Code"],
  [".cell_output > .output, .cell_output pre, .cell_output .mathjax_process", "Output"],
  [".math, .math > .formula, mjx-container", "Formula"],
  [".derivation > table, .derivation td, .derivation-assumed, .derivation-also, .derivation > details li", "Derivation"],
  [".claim-card p, .claim-evidence > li", "Evidence"],
  [".wrong-line .formula, .wrong-line-assumed, .wrong-line-solution > p", "Line"],
  [".pst-scrollable-table-container, .table-wrapper, table:not(.derivation > table)", "Table"],
];

// All are measured before any is changed: a browser lays out a long page anew after each change. What is not laid out,
// since it is folded or far from the window, is marked when it comes.
const isLaidOut = (e) => !e.closest(".bd-article > section > section:not(.near), details:not([open])");
function markScrolling(...roots) {
  const can = (overflow) => /auto|scroll/.test(overflow);
  const sideways = (e) => e.scrollWidth > e.clientWidth && can(getComputedStyle(e).overflowX);
  const down = (e) => e.matches("pre") && e.scrollHeight > e.clientHeight && can(getComputedStyle(e).overflowY);
  const scrolls = (e) => isLaidOut(e) && ((sideways(e) && "scrolls sideways") || (down(e) && "scrolls"));
  const found = new Map();
  for (const [selector, name] of BOXES) {
    for (const e of roots.flatMap((root) => [...root.querySelectorAll(selector)])) {
      const how = scrolls(e);
      found.set(e, how && `${name}, ${how}`);
    }
  }
  for (const [e, name] of found) {
    if (name) {
      e.tabIndex = 0;
      if (!e.matches("li, td, table")) e.setAttribute("role", "group");
      e.setAttribute("aria-label", name);
      e.dataset.scrolls = "";
    } else if ("scrolls" in e.dataset) {
      for (const attribute of ["tabindex", "role", "aria-label", "data-scrolls"]) e.removeAttribute(attribute);
    }
  }
}

// A display formula, or a line of a derivation above its reason, that is a little too wide for its box is set smaller, so
// that all of it is in view. Beyond a fifth it scrolls.
const SMALLEST = 0.8;
const fitted = new WeakMap(); // the width of the page for which a box has been looked at
function fit(root) {
  const width = root.clientWidth;
  const boxes = [...root.querySelectorAll(".math, .math > .formula, .derivation.stacked .right")]
    .filter((e) => fitted.get(e) !== width && isLaidOut(e));
  for (const e of boxes) fitted.set(e, width);
  for (const e of boxes) e.style.fontSize = "";
  const share = ({ clientWidth, scrollWidth }) => scrollWidth > clientWidth + 1 ? (clientWidth - 1) / scrollWidth : 1;
  const shares = boxes.map(share);
  boxes.forEach((e, k) => {
    if (shares[k] < 1 && shares[k] >= SMALLEST) e.style.fontSize = `${0.98 * shares[k]}em`;
  });
}

// A button that unfolds a solution is called after the solution.
function nameToggles() {
  for (const button of document.querySelectorAll("button.toggle-button")) {
    const title = button.closest(".admonition-title")?.textContent.replace(/\s+/g, " ").trim();
    if (title) button.setAttribute("aria-label", title);
  }
}

// Escape closes a sidebar that covers a small screen, and the keyboard is back at the button that opened it.
function closeSidebars(event) {
  if (event.key !== "Escape") return;
  for (const [name, button] of [["primary", ".primary-toggle"], ["secondary", ".secondary-toggle"]]) {
    const box = document.getElementById(`pst-${name}-sidebar-checkbox`);
    if (!box?.checked || !matchMedia("(max-width: 992px)").matches) continue;
    box.checked = false;
    document.querySelector(button)?.focus();
  }
}

// When the field that lies over a page is closed, the keyboard is back where it was, or at the button that opens it.
function leaveSearch(overlay) {
  let opener;
  overlay.addEventListener("focusin", (event) => {
    if (!overlay.contains(event.relatedTarget)) opener = event.relatedTarget;
  });
  new MutationObserver(() => {
    if (overlay.classList.contains("show")) return;
    const buttons = [...document.querySelectorAll(".search-button__button")];
    (opener?.isConnected ? opener : buttons.find((button) => button.checkVisibility()))?.focus();
  }).observe(overlay, { attributeFilter: ["class"] });
}

// On paper everything is unfolded, in the light theme; afterwards the page is as it was.
let before;
function unfoldAll() {
  const closed = [...document.querySelectorAll("details:not([open])")].filter((e) => !e.matches(".hide"));
  before = { theme: document.documentElement.dataset.theme, closed };
  document.documentElement.dataset.theme = "light";
  for (const details of closed) details.open = true;
}
function foldAgain() {
  if (!before) return;
  document.documentElement.dataset.theme = before.theme;
  for (const details of before.closed) details.open = false;
  before = undefined;
}

addEventListener("keydown", closeSidebars);
addEventListener("beforeprint", unfoldAll);
addEventListener("afterprint", foldAgain);
// What is unfolded at once is looked at at once.
const toggled = new Set();
document.addEventListener("toggle", ({ target }) => {
  if (!toggled.size) requestAnimationFrame(() => {
    markScrolling(...toggled);
    toggled.clear();
  });
  toggled.add(target);
}, true);
addEventListener("load", async () => {
  nameToggles();
  const overlay = document.querySelector(".search-button__wrapper");
  if (overlay) leaveSearch(overlay);
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;
  const article = document.querySelector(".bd-article") ?? document.body;
  const look = () => {
    fit(article);
    markScrolling(article);
  };
  new ResizeObserver(() => requestAnimationFrame(look)).observe(article);
  document.addEventListener("click", (event) => {
    if (event.target.closest(".admonition-title")) requestAnimationFrame(() => markScrolling(article));
  });
});
