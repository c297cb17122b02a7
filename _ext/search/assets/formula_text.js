"use strict";
/* A formula of MathML as a line of text, as one would type it: d_k, √d_k, n^2, (a+b)/c. Both the excerpts of the search
   and the words by which a claim can be found are made of such lines. */
function formulaText(node) {
    if (node.nodeType === Node.TEXT_NODE) return node.data.trim();
    const parts = [...node.childNodes].filter((e) => e.nodeType !== Node.COMMENT_NODE).map(formulaText);
    const own = [...node.children].map(formulaText); // an element with fixed places holds nothing else
    const one = (text) => (/^.[\s\S]*[+−·⋅/=<>≤≥ ]/.test(text) ? `(${text})` : text);
    switch (node.localName) {
        case "annotation": return "";
        case "mspace": return " ";
        case "msub": case "munder": return `${own[0]}_${one(own[1])}`;
        case "mover": return `${own[0]}${own[1]}`; // an accent
        case "msup": return `${own[0]}^${one(own[1])}`;
        case "msubsup": case "munderover": return `${own[0]}_${one(own[1])}^${one(own[2])}`;
        case "msqrt": return `√${one(parts.join(""))}`;
        case "mfrac": return `${one(own[0])}/${one(own[1])}`;
        case "mtd": case "mtr": return `${parts.join("")} `;
        default: return parts.join("");
    }
}
