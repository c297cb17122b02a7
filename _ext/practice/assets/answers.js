// Fields for answers: what a reader types is rounded, hashed and compared; the page does not hold the answer in clear.
"use strict";

(() => {
  const FUNCTIONS = { sqrt: Math.sqrt, exp: Math.exp, log: Math.log, ln: Math.log, abs: Math.abs };
  const CONSTANTS = { e: Math.E, pi: Math.PI, "π": Math.PI };

  // A formula of numbers, names, functions and + - * / ^: returns its value, or throws.
  function valueOf(formula, names) {
    const known = { ...CONSTANTS, ...names };
    const halfWidth = (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0); // from a Chinese keyboard
    const text = formula.replace(/[\uff01-\uff5e]/g, halfWidth).replace(/(\d)。(\d)/g, "$1.$2").trim()
      .replace(/^(-?\d+),(\d+)$/, "$1.$2").replaceAll("**", "^").replace(/[−–]/g, "-")
      .replace(/[·×]/g, "*").replaceAll("√", "sqrt ").replace(/\\/g, "").replace(/[{[]/g, "(").replace(/[}\]]/g, ")")
      .replaceAll("²", "^2").replaceAll("³", "^3");
    const tokens = text.match(/\d+\.?\d*(?:e[+-]?\d+(?![\w.]))?|\.\d+|[A-Za-zπ]\w*|\S/g) ?? [];
    let at = 0;
    const fail = () => { throw new Error("unreadable"); };
    function sum() {
      let total = product();
      while (tokens[at] === "+" || tokens[at] === "-") total = tokens[at++] === "+" ? total + product() : total - product();
      return total;
    }
    const begins = (token) => /^[\w.π(]/.test(token ?? "");
    function product() {
      let total = signed();
      for (;;) {
        if (tokens[at] === "*") at++, (total *= signed());
        else if (tokens[at] === "/") at++, (total /= signed());
        else if (begins(tokens[at])) total *= power(); // 2 pi, 3(x + 1)
        else return total;
      }
    }
    function signed() {
      if (tokens[at] === "-" || tokens[at] === "+") return tokens[at++] === "-" ? -signed() : signed();
      return power();
    }
    function power() {
      const base = atom();
      return tokens[at] === "^" ? (at++, base ** signed()) : base;
    }
    function atom() {
      const token = tokens[at++];
      if (token === "(") {
        const inside = sum();
        if (tokens[at++] !== ")") fail();
        return inside;
      }
      if (/^[\d.]/.test(token ?? "")) return Number(token);
      if (Object.hasOwn(FUNCTIONS, token)) return FUNCTIONS[token](atom());
      return Object.hasOwn(known, token) ? known[token] : fail();
    }
    const total = sum();
    if (at < tokens.length || !Number.isFinite(total)) fail();
    return total + 0;
  }

  // cyrb53, as `digest` in answers.py.
  function digest(salt, text) {
    let one = 0xdeadbeef, two = 0x41c6ce57;
    for (const letter of `${salt}|${text}`) {
      one = Math.imul(one ^ letter.codePointAt(0), 2654435761);
      two = Math.imul(two ^ letter.codePointAt(0), 1597334677);
    }
    const stir = (a, b) => (Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)) >>> 0;
    const [first, second] = [stir(one, two), stir(two, one)];
    return ((second & 0x1fffff) * 2 ** 32 + first).toString(16);
  }

  // The hint of the exercise: inside of it, or the next box.
  function hintOf(form) {
    const exercise = form.closest(".exercise");
    const next = exercise?.nextElementSibling;
    const called = (box) => box?.querySelector(".admonition-title")?.textContent.trim().startsWith("Hint");
    return exercise?.querySelector(".admonition.hint") ?? (called(next) ? next : null);
  }

  function say(form, kind, ...words) {
    const output = form.querySelector("output");
    form.dataset.said = kind;
    output.replaceChildren(...words);
  }

  function check(form) {
    const known = JSON.parse(form.dataset.answer), put = form.querySelector("input, select");
    const given = put.value.trim();
    if (!given) return say(form, "none", "Nothing is given yet.");
    let normal = () => given;
    if (known.at) {
      try {
        const values = known.at.map((names) => valueOf(given, names));
        normal = (more) => values.map((number) => number.toExponential(known.digits - 1 + more)).join(" ");
      } catch {
        return say(form, "none", "This is no formula that can be read: write 3/2, sqrt(2), e^2 or 2*pi.");
      }
    }
    // The right answer is known with more and more digits: a reader may give so many.
    if (known.right.some((right, more) => digest(known.salt, normal(more)) === right)) return say(form, "right", "Right.");
    const found = digest(known.salt, normal(0));
    if (Object.hasOwn(known.wrong, found)) return say(form, "wrong", `Not right: ${known.wrong[found]}.`);
    const hint = hintOf(form), folded = hint?.querySelector("button.toggle-button-hidden");
    folded?.click();
    return say(form, "wrong", hint ? "Not right. The hint below is open." : "Not right.");
  }

  for (const form of document.querySelectorAll("form.answer")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      check(form);
    });
    form.addEventListener("input", () => say(form, "none"));
  }
})();
