// TeX to MathML Core, by MathJax's own parser. MathJax knows TeX's spacing, and MathML Core the usual spacing of each
// operator: what is written out is the difference of the two. Run in an embedded V8.

const { TeX } = MathJax._.input.tex_ts;
const { liteAdaptor } = MathJax._.adaptors.liteAdaptor;
const { mathjax } = MathJax._.mathjax;
const { HTMLHandler } = MathJax._.handlers.html.HTMLHandler;
mathjax.handlers.register(new HTMLHandler(liteAdaptor()));
const PACKAGES = ["base", "ams", "boldsymbol", "braket", "cancel", "cases", "mathtools", "newcommand", "textmacros"];
const reader = mathjax.document("", { InputJax: new TeX({ packages: PACKAGES, tags: "none" }) });

const THIN = 1 / 6, MEDIUM = 2 / 9, THICK = 5 / 18;
// The spacing that MathML Core gives operators in the middle of a row; all that are not listed get a thick space.
const BINARY = new Set("+-\u2212\u00b1\u2213/\u00f7\u222a\u2229\u2216\u2295\u2296\u2228\u2227\u2294\u2293");
const TIMES = new Set("\u00d7\u00b7\u22c5\u2217*\u2218\u2219\u2297\u2299\u22c6");
const FENCES = new Set("()[]{}\u27e8\u27e9\u2308\u2309\u230a\u230b");

// Letters of other alphabets: where each begins, and the letters that Unicode had before.
const ALPHABETS = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce, 0x1d6a8, 0x1d6c2],
  italic: [0x1d434, 0x1d44e, 0, 0x1d6e2, 0x1d6fc],
  "bold-italic": [0x1d468, 0x1d482, 0, 0x1d71c, 0x1d736],
  "double-struck": [0x1d538, 0x1d552, 0x1d7d8],
  script: [0x1d49c, 0x1d4b6], "-tex-calligraphic": [0x1d49c, 0x1d4b6],
  "bold-script": [0x1d4d0, 0x1d4ea], "-tex-bold-calligraphic": [0x1d4d0, 0x1d4ea],
  fraktur: [0x1d504, 0x1d51e], "sans-serif": [0x1d5a0, 0x1d5ba, 0x1d7e2], monospace: [0x1d670, 0x1d68a, 0x1d7f6],
};
const BEFORE = {
  "\u{1d455}": "\u210e", "\u{1d53a}": "\u2102", "\u{1d53f}": "\u210d", "\u{1d545}": "\u2115", "\u{1d547}": "\u2119",
  "\u{1d548}": "\u211a", "\u{1d549}": "\u211d", "\u{1d551}": "\u2124", "\u{1d49d}": "\u212c", "\u{1d4a0}": "\u2130",
  "\u{1d4a1}": "\u2131", "\u{1d4a3}": "\u210b", "\u{1d4a4}": "\u2110", "\u{1d4a7}": "\u2112", "\u{1d4a8}": "\u2133",
  "\u{1d4ad}": "\u211b", "\u{1d4ba}": "\u212f", "\u{1d4bc}": "\u210a", "\u{1d4c4}": "\u2134", "\u{1d506}": "\u212d",
  "\u{1d50b}": "\u210c", "\u{1d50c}": "\u2111", "\u{1d515}": "\u211c", "\u{1d51d}": "\u2128",
};
const RANGES = [[0x41, 0x5a], [0x61, 0x7a], [0x30, 0x39], [0x391, 0x3a9], [0x3b1, 0x3c9]];

function letters(text, variant) {
  const starts = ALPHABETS[variant];
  if (!starts) return text;
  return [...text].map((c) => {
    const code = c.codePointAt(0), k = RANGES.findIndex(([a, b]) => a <= code && code <= b);
    if (k < 0 || !starts[k]) return c;
    const mapped = String.fromCodePoint(starts[k] + code - RANGES[k][0]);
    return BEFORE[mapped] ?? mapped;
  }).join("");
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const em = (x) => (Math.abs(x) < 1e-4 ? "0" : `${+x.toFixed(4)}em`.replace(/^(-?)0\./, "$1."));

function length(value) {
  const named = { thinmathspace: THIN, mediummathspace: MEDIUM, thickmathspace: THICK };
  if (value in named) return named[value];
  const found = /^(-?[\d.]+)(em|ex|pt|px|mu|)$/.exec(String(value).trim());
  if (!found) throw Error(`length: expected em, ex, pt, px or mu, got ${value}`);
  return found[1] * { em: 1, "": 1, ex: 0.43, pt: 0.1, px: 0.0625, mu: 1 / 18 }[found[2]];
}

const explicit = (node, name) => node.attributes.isSet(name) ? node.attributes.getExplicit(name) : undefined;
// Fonts of mathematics have one white square; MathJax writes \square as another one.
const textOf = (node) =>
  node.childNodes.map((child) => child.getText?.().replace("\u25fb", "\u25a1") ?? textOf(child)).join("");
const attribute = (name, value) => (value === undefined ? "" : ` ${name}="${escaped(String(value))}"`);
const isRow = (node) => ["mrow", "TeXAtom", "inferredMrow", "math", "mtd", "msqrt", "mstyle", "mpadded", "mphantom", "menclose"]
  .some((kind) => node.isKind(kind));

function element(name, attributes, content) {
  return content === "" && name !== "mtd" && name !== "mi" && name !== "mrow" ? `<${name}${attributes}></${name}>` : `<${name}${attributes}>${content}</${name}>`;
}

// The children of a row, each as a row of its own is: inferred rows have no element.
function flat(node) {
  return node.childNodes.flatMap((child) => (child.isInferred ? flat(child) : [child]));
}

const isSpace = (node) => node.isKind("mspace");

// The core of an embellished operator, or nothing.
function operator(node) {
  if (!node.isEmbellished) return node.isKind("mo") ? node : undefined;
  return node.coreMO();
}

// A row: every child with the space before it, which operators carry, and others get as an element.
function row(children) {
  return parts(children).join("");
}

function parts(children) {
  const before = children.map((child) => {
    const core = operator(child);
    const set = core && explicit(core, "lspace");
    if (set !== undefined) return length(set);
    return child.texSpacing() ? length(child.texSpacing()) : 0;
  });
  const spacing = children.map((child, i) => {
    const core = operator(child);
    if (!core) return undefined;
    const set = explicit(core, "rspace");
    const next = i + 1 < children.length && !operator(children[i + 1]) ? before[i + 1] : 0;
    return [before[i], (set === undefined ? 0 : length(set)) + next];
  });
  return children.map((child, i) => {
    if (spacing[i]) {
      const middle = i > 0 && i + 1 < children.length;
      return write(child, { spacing: spacing[i], place: middle ? "middle" : i ? "end" : children.length > 1 ? "start" : "alone" });
    }
    const carried = i > 0 && spacing[i - 1];
    const space = before[i] && !carried ? `<mspace width="${em(before[i])}"></mspace>` : "";
    return space + write(child);
  });
}

// One element where one is needed: a script's base, a numerator.
function single(node, context) {
  if (!node) return "<mrow></mrow>";
  if (node.isInferred || node.isKind("TeXAtom")) {
    const children = flat(node);
    return children.length === 1 && !operator(children[0]) && !isSpace(children[0])
      ? single(children[0], context) : `<mrow>${row(children)}</mrow>`;
  }
  return write(node, context);
}

// Whether something is higher than a line. Browsers give a bracket that may stretch the width of its widest form, so
// that one around a line, which TeX leaves as it is, does not stretch.
function isTall(node) {
  if (node.isKind("mfrac") || node.isKind("mtable")) return true;
  if (node.isKind("munderover") || node.isKind("munder") || node.isKind("mover")) {
    if (!node.attributes.get("accent") && !node.attributes.get("accentunder")) return true;
  }
  if (node.isKind("mo") && /[\u2211\u220f\u222b]/.test(textOf(node))) return true;
  const sized = node.isKind("mo") && explicit(node, "minsize");
  return Boolean(sized) || (node.childNodes ?? []).some((child) => child.childNodes && isTall(child));
}

function isAroundALine(node) {
  const row = node.parent;
  if (!row || !row.isKind("mrow") || explicit(node, "minsize") !== undefined) return false;
  if (!(row.getProperty("open") || row.getProperty("close"))) return false;
  if (node !== row.childNodes[0] && node !== row.childNodes.at(-1)) return false;
  return !row.childNodes.some((child) => child !== node && child.childNodes && isTall(child));
}

const near = (a, b) => Math.abs(a - b) < 0.01;

function usual(text, place, node) {
  if (FENCES.has(text)) return [0, 0];
  if (place === "start" && (text === "+" || text === "\u2212" || text === "-")) return [0, 0];
  if (place !== "middle" || node.parent?.isEmbellished) return undefined;
  if (text === "," || text === ";") return [0, THIN];
  if (text === "!" || text === "|" || text === "\u2016" || text === "\u2225" || text === "\u2061" || text === ".") return undefined;
  if (/[\u2211\u220f\u222b\u2032\u2026\u22ef%:]/.test(text) || /^[a-z]/i.test(text)) return undefined;
  return BINARY.has(text) ? [MEDIUM, MEDIUM] : TIMES.has(text) ? [THIN, THIN] : [THICK, THICK];
}

// Accents as the font has them: marks with a width.
const ACCENTS = { "^": "\u02c6", "~": "\u02dc", "\u0302": "\u02c6", "\u0303": "\u02dc", "\u2015": "\u00af" };

function mo(node, context = {}) {
  const raw = textOf(node);
  const text = context.accent ? (ACCENTS[raw] ?? raw) : raw === "-" ? "\u2212" : raw;
  if (raw === "") return "";
  const [l, r] = context.spacing ?? [0, 0];
  const known = context.spacing && usual(text, context.place, node);
  let attributes = context.accent || (known && near(known[0], l) && near(known[1], r))
    ? "" : ` lspace="${em(l)}" rspace="${em(r)}"`;
  const sized = explicit(node, "minsize") ?? explicit(node, "maxsize");
  for (const name of ["stretchy", "symmetric", "largeop", "movablelimits", "minsize", "maxsize", "mathcolor"]) {
    let value = explicit(node, name);
    if (name === "stretchy" && sized !== undefined) value = true;
    if (name === "stretchy" && value === undefined && isAroundALine(node)) value = false;
    if (name.endsWith("size") && value !== undefined) value = em(length(value));
    attributes += attribute(name, value);
  }
  if (/^[a-z]{2,}/i.test(text) && !/largeop/.test(attributes)) attributes = attributes.replace(' stretchy="false"', "");
  return `<mo${attributes}>${escaped(letters(text, explicit(node, "mathvariant")))}</mo>`;
}

function mi(node) {
  const text = textOf(node), variant = node.attributes.get("mathvariant");
  const mapped = letters(text, [...text].length === 1 && variant === "italic" ? "" : variant);
  const upright = variant === "normal" && [...text].length === 1 && mapped === text && /\p{L}|[\u2202\u2207]/u.test(text);
  return `<mi${upright ? ' mathvariant="normal"' : ""}>${escaped(mapped)}</mi>`;
}

const SCRIPTS = { msub: [0, 1], msup: [0, 1], msubsup: [0, 1, 2], munder: [0, 1], mover: [0, 1], munderover: [0, 1, 2], mfrac: [0, 1], mroot: [0, 1] };

function scripted(node, context) {
  const kind = node.kind;
  const isAccent = (k) => (kind === "mover" && k === 1 && node.attributes.get("accent")) ||
    (kind === "munder" && k === 1 && node.attributes.get("accentunder")) ||
    (k === 2 && node.attributes.get("accent"));
  let attributes = "";
  // The font's primes are raised already.
  if (kind === "msup" && /^[\u2032-\u2034]+$/.test(textOf(node.childNodes[1]))) {
    return `<mrow>${single(node.childNodes[0], context)}<mo lspace="0" rspace="0">${textOf(node.childNodes[1])}</mo></mrow>`;
  }
  if (kind === "mover" && textOf(node.childNodes[1]) === "\u2015") {
    return `<mrow class="overline">${row(flat(node.childNodes[0]).length ? flat(node.childNodes[0]) : [node.childNodes[0]])}</mrow>`;
  }
  if (kind === "mfrac") {
    const thickness = explicit(node, "linethickness");
    if (thickness !== undefined && length(thickness) === 0) attributes += ' linethickness="0"';
  }
  if (explicit(node, "accent") || (kind === "mover" && node.attributes.get("accent"))) attributes += ' accent="true"';
  const parts = SCRIPTS[kind].map((k) => {
    const child = node.childNodes[k];
    if (k === 0 && kind !== "mfrac" && kind !== "mroot") {
      return single(child, operator(child) && node.isEmbellished ? context : { spacing: [0, 0], place: "alone" });
    }
    return single(child, { spacing: [0, 0], place: "alone", accent: isAccent(k) });
  });
  return `<${kind}${attributes}>${parts.join("")}</${kind}>`;
}

// A table: MathML Core leaves alignment and gaps to the style sheet, so that they are classes.
function mtable(node) {
  const columns = (explicit(node, "columnalign") ?? "center").split(" ");
  const gaps = explicit(node, "columnspacing");
  const kind = columns.slice(0, 2).join(" ") === "right left" ? "aligned"
    : columns.every((c) => c === "left") ? "left" : columns.every((c) => c === "right") ? "right" : "";
  const tight = explicit(node, "rowspacing")?.startsWith(".2em") || explicit(node, "rowspacing") === "0.1em";
  const classes = [kind, tight ? "tight" : ""].filter(Boolean).join(" ");
  const display = node.childNodes[0]?.childNodes.at(-1)?.childNodes[0]?.attributes.get("displaystyle");
  const cells = (r) => r.childNodes.slice(r.isKind("mlabeledtr") ? 1 : 0).map((cell) => `<mtd>${row(flat(cell))}</mtd>`);
  const rows = node.childNodes.map((r) => `<mtr>${cells(r).join("")}</mtr>`).join("");
  return `<mtable${classes ? ` class="${classes}"` : ""}${display ? ' displaystyle="true"' : ""}>${rows}</mtable>`;
}

function mspace(node) {
  const width = length(explicit(node, "width") ?? 0);
  if (node.attributes.get("linebreak") === "newline") return "";
  return width < 0 ? `<mspace style="margin-left:${em(width)}"></mspace>` : `<mspace width="${em(width)}"></mspace>`;
}

function styled(node) {
  const children = flat(node);
  let attributes = "";
  for (const name of ["displaystyle", "scriptlevel", "mathcolor", "mathbackground", "mathsize"]) attributes += attribute(name, explicit(node, name));
  if (children.every(isSpace)) return row(children);
  return attributes ? `<mstyle${attributes}>${row(children)}</mstyle>` : children.length === 1 ? write(children[0]) : `<mrow>${row(children)}</mrow>`;
}

function write(node, context) {
  switch (node.kind) {
    case "mo": return mo(node, context);
    case "mi": return mi(node);
    case "mn": return `<mn>${escaped(letters(textOf(node), explicit(node, "mathvariant")))}</mn>`;
    case "mtext": return `<mtext>${escaped(letters(textOf(node).replace(/ /g, "\u00a0"), explicit(node, "mathvariant")))}</mtext>`;
    case "mspace": return mspace(node);
    case "mtable": return mtable(node);
    case "mstyle": return styled(node);
    case "msqrt": return `<msqrt>${row(flat(node))}</msqrt>`;
    case "mpadded": case "mphantom": {
      let attributes = "";
      for (const name of ["width", "height", "depth", "lspace", "voffset"]) attributes += attribute(name, explicit(node, name));
      return `<${node.kind}${attributes}>${row(flat(node))}</${node.kind}>`;
    }
    case "TeXAtom": case "mrow": case "inferredMrow": {
      const children = flat(node);
      if (children.length === 1 && operator(node)) return write(children[0], context);
      if (children.length === 1 && !operator(children[0]) && !isSpace(children[0])) return write(children[0]);
      return `<mrow>${row(children)}</mrow>`;
    }
    default:
      if (node.kind in SCRIPTS) return scripted(node, context);
      throw Error(`MathML Core has no ${node.kind}`);
  }
}

// The numbers of a formula with \tag: they stand beside it, in HTML.
function tags(node, found = []) {
  if (node.isKind("mlabeledtr")) found.push(textOf(node.childNodes[0]).trim());
  else for (const child of node.childNodes ?? []) tags(child, found);
  return found;
}

// Where a tag made a table of one row and one cell, the formula is the cell.
function content(root) {
  const children = flat(root);
  if (children.length !== 1 || !children[0].isKind("mtable") || !tags(root).length) return children;
  const rows = children[0].childNodes;
  return rows.length === 1 && rows[0].childNodes.length === 2 ? flat(rows[0].childNodes[1]) : children;
}

function failure(node) {
  if (node.isKind("merror")) return textOf(node);
  for (const child of node.childNodes ?? []) {
    const found = child.childNodes && failure(child);
    if (found) return found;
  }
  return "";
}

// A long formula in a line of text is several, so that lines can break where TeX breaks them: after a relation or a
// comma, and after an operator where a piece would still be long.
const LONG = 16, REL = 3, BIN = 2, PUNCT = 6;

function inline(children) {
  const written = parts(children), pieces = [""];
  let size = 0;
  children.forEach((child, i) => {
    pieces[pieces.length - 1] += written[i];
    size += textOf(child).length;
    const core = operator(child), kind = core && !core.parent?.isKind("msub") && child.texClass;
    const sign = i > 0 && children[i - 1].isKind("mtext"); // a minus behind words belongs to what follows
    const ends = kind === REL || kind === PUNCT ? size > LONG / 3 : kind === BIN && size > LONG && !sign;
    if (ends && i + 1 < children.length && i > 0) {
      pieces.push("");
      size = 0;
    }
  });
  return pieces.map((piece) => `<math>${piece}</math>`).join("<wbr/>");
}

function convert(tex, display) {
  const root = reader.convert(tex, { display, end: MathJax._.core.MathItem.STATE.CONVERT });
  const wrong = failure(root);
  if (wrong) return { error: wrong };
  root.setTeXclass(null);
  try {
    const children = content(root);
    const mathml = display ? `<math display="block">${row(children)}</math>` : inline(children);
    return { mathml, tags: tags(root) };
  } catch (error) {
    return { error: error.message };
  }
}

globalThis.convertAll = (json) => JSON.stringify(JSON.parse(json).map(([tex, display]) => convert(tex, display)));
