// Figures of one row of attention: its softmax, squared ReLU beside it, and how sparse rows are.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const { say, fixed, interpolated, axis, line, marker, chart, curve, set, numbers, slider, hundredths, logarithmic, among, level, draggable } = window.attentionFrame;
  const tables = window.attentionTables;

  const QUERY = 3; // the query "it"
  const small = () => tables.head; // the head of four tokens
  const choice = () => ({ key: "query", label: say("query"), options: small().tokens, value: QUERY });

  // The row of a query of the small head, its entropy and its Jacobian.
  const row = {
    name: "A row of the small head, to move",
    tables: ["head"],
    guess: {
      ask: "Two scores are the largest and equal, and the temperature falls to 0.03. What does the norm of the Jacobian do?",
      options: ["It goes to 0", "It stays at a half"],
      right: 1,
      because: "Two keys that share everything make the norm as large as it can be, at every low temperature.",
      state: { query: 0, temperature: -1.5 },
    },
    controls: () => [
      choice(),
      ...small().tokens.map((token, j) =>
        slider(`score${j}`, `score of ${token}`, [-6, 6, 0.1], small().scores[QUERY][j]),
      ),
      { key: "scale", label: "q\u00b7k divided by", options: [say("\u221a2 (scaled)"), say("1 (unscaled)")], value: 0 },
      logarithmic(say("temperature T"), "temperature", -1.5, 1.5, 0),
    ],
    changed(key, state, put) {
      if (key === "query") small().scores[state.query].forEach((score, j) => put(`score${j}`, score));
    },
    build(panels, results, put) {
      const { tokens, width } = small();
      const n = tokens.length;
      let now;
      const bars = chart(panels, "Bars of the four weights; the table has the same numbers.", {
        type: "bar",
        labels: tokens,
        x: axis(say("key"), { words: true }),
        y: axis(say("weight"), { min: 0, max: 1, step: 0.2 }),
        datasets: [{ label: "", hue: "blue", data: [], quiet: true, maxBarThickness: 60 }],
      });
      // A bar that is pulled to the weight p has the score at which this key has it and the others keep their own.
      draggable(bars, [0], (_, j, { y }) => {
        const p = Math.max(1e-3, Math.min(0.999, y));
        const root = now.scale ? 1 : Math.sqrt(width);
        const others = tokens.map((__, k) => Math.exp(now[`score${k}`] / (root * now.temperature))).filter((__, k) => k !== j);
        const rest = Math.log(others.reduce((sum, value) => sum + value, 0));
        put(`score${j}`, root * now.temperature * (Math.log(p / (1 - p)) + rest));
      });
      const jacobian = numbers(
        panels,
        "Jacobian: how a weight (row) responds to a score after the division (column)",
        ["", ...tokens],
        tokens,
      );
      const cells = [...panels.lastChild.querySelectorAll("tbody td")];
      panels.lastChild.classList.add("interactive-heat");
      const weights = numbers(results, "Weights", [say("key"), say("weight")], tokens);
      const facts = numbers(
        results,
        "In numbers",
        ["", "this row", "all equal", say("one-hot")],
        ["entropy in nats", "norm of the Jacobian", "norm by the scores q\u00b7k"],
      );
      const equal = Array(n).fill(1 / n);
      const single = equal.map((_, j) => Number(j === 0));
      return (state) => {
        now = state;
        const root = state.scale ? 1 : Math.sqrt(width);
        const factor = 1 / (root * state.temperature);
        const scores = tokens.map((_, j) => state[`score${j}`] / root);
        const p = F.softmax(scores, state.temperature);
        const J = F.softmaxJacobian(p);
        set(bars, p);
        weights(p.map((weight) => [fixed(weight)]));
        jacobian(J.map((of_row) => of_row.map((entry) => fixed(entry, 2))));
        J.flat().forEach((entry, k) => {
          cells[k].style.setProperty("--share", `${Math.min(1, Math.abs(entry) / 0.25) * 55}%`);
          cells[k].classList.toggle("is-negative", entry < 0);
        });
        const of_rows = [p, equal, single].map((y) => [F.entropy(y), F.jacobianNorm(y), factor * F.jacobianNorm(y)]);
        facts([0, 1, 2].map((k) => of_rows.map((values) => fixed(values[k]))));
        const top = p.indexOf(Math.max(...p));
        const norm = `norm of the Jacobian ${fixed(F.jacobianNorm(p))}`;
        return `Largest weight ${fixed(p[top])}, on ${tokens[top]}. Entropy ${fixed(F.entropy(p))} nats, ${norm}.`;
      };
    },
  };

  // The same scores in softmax and in squared ReLU.
  const rows = {
    name: "Two rows of the small head, to move",
    tables: ["head"],
    guess: {
      ask: "A shift adds the same number to all scores. Which row changes?",
      options: ["Softmax", "Squared ReLU", "Both"],
      right: 1,
      because: "Softmax has the shift in every exponential, where it cancels.",
      state: { shift: 2 },
    },
    controls: () => [
      choice(),
      slider("shift", say("shift"), [-6, 6, 0.25], 0, hundredths),
      logarithmic(say("stretch"), "stretch", -1, 1, 0),
    ],
    build(panels, results) {
      const { tokens, width } = small();
      const bars = chart(panels, "Bars of both rows, side by side for each key; the table has the same numbers.", {
        type: "bar",
        labels: tokens,
        x: axis(say("key"), { words: true }),
        y: axis("share of the row", { min: 0, max: 1, step: 0.2 }),
        datasets: [
          { label: say("softmax"), hue: "blue", data: [], maxBarThickness: 44 },
          { label: say("squared ReLU"), hue: "orange", data: [], maxBarThickness: 44 },
        ],
      });
      bars.options.plugins.legend.labels.boxHeight = 10;
      const facts = numbers(
        results,
        "In numbers",
        ["", say("softmax"), say("squared ReLU")],
        [say("sparsity S"), "effective support nS\u00b2", ...tokens.map((token) => `share of ${token}`)],
      );
      return (state) => {
        const scores = small().scores[state.query].map((s) => (state.stretch * s) / Math.sqrt(width) + state.shift);
        const both = [F.softmax(scores), F.squaredRelu(scores)];
        const shares = both.map((a) => a.map((value) => value / a.reduce((total, v) => total + v, 0)));
        set(bars, ...shares);
        const measured = [F.sparsity, F.effectiveSupport].map((f) => both.map(f));
        const told = [...measured, ...tokens.map((_, j) => shares.map((of_row) => of_row[j]))];
        facts(told.map((pair) => pair.map((value) => fixed(value))));
        const [soft, squared] = both.map(F.sparsity);
        return (
          `S is ${fixed(soft)} for softmax. ` +
          (Number.isNaN(squared)
            ? "All weights of squared ReLU are 0, and such a row has no S."
            : `S is ${fixed(squared)} for squared ReLU.`)
        );
      };
    },
  };

  // S over the mean and the standard deviation of the scores, and the number of keys.
  const laws = {
    name: "Sparsity of four kinds of attention, to move",
    tables: ["rows"],
    guess: {
      ask: "The mean of the scores is 3 instead of \u22121. Which curve stays where it is?",
      options: ["That of softmax", "That of squared ReLU", "That of the scores themselves"],
      right: 0,
      because: "A number that is added to all scores cancels in softmax.",
      state: { beta: 3 },
    },
    controls: () => [
      slider("beta", say("mean \u03b2"), [-3, 3, 0.25], -1, hundredths),
      slider("gamma", say("deviation \u03b3"), [0.25, 6, 0.25], 1.5, hundredths),
      among(tables.rows.lengths, "length", "keys n", 2, String),
    ],
    build(panels, results) {
      const { lengths, gammas, ratios, S } = tables.rows;
      const by_ratio = (law) => (k, beta, gamma) => interpolated(ratios, S[law][k], beta / gamma);
      const by_gamma = (k, beta, gamma) => interpolated(gammas, S.exp[k], gamma);
      const kinds = [
        [say("softmax"), "blue", (beta, gamma) => F.exponentialSparsity(gamma), by_gamma],
        [say("squared ReLU"), "orange", F.reluSquaredSparsity, by_ratio("relu^2")],
        ["scores themselves", "green", F.identitySparsity, by_ratio("identity")],
        ["linear attention, \u03b2 > 0", "pink", F.linearSparsity, () => NaN],
      ];
      const DASHES = [[], [8, 3], [3, 3], [8, 3, 2, 3]];
      const made = chart(
        panels,
        "Curves of S over the standard deviation of the scores; the table has the numbers at the chosen one.",
        {
          x: axis("standard deviation of the scores \u03b3", { min: 0, max: 6 }),
          y: axis(say("sparsity S"), { min: 0, max: 1, step: 0.2 }),
          datasets: [
            ...kinds.map(([label, hue], k) => line(label, hue, { borderDash: DASHES[k] })),
            ...kinds.map(([label, hue]) => line(`${label}, n keys`, hue, { borderDash: [1, 3], quiet: true })),
            ...kinds.map(([label, hue]) => marker(label, hue)),
            line("least S of n keys", "grey", { borderWidth: 1, borderDash: [6, 4] }),
          ],
        },
      );
      const fine = Array.from({ length: 120 }, (_, k) => (k + 1) / 20);
      const facts = numbers(
        results,
        "S at the chosen \u03b2 and \u03b3",
        ["", "infinitely many keys", "n keys, drawn"],
        kinds.map(([label]) => label),
      );
      return ({ beta, gamma, length }) => {
        const k = lengths.indexOf(length);
        const least = 1 / Math.sqrt(length);
        const limits = kinds.map(([, , limit]) => limit(beta, gamma));
        const drawn = kinds.map(([, , , of_rows]) => of_rows(k, beta, gamma));
        set(
          made,
          ...kinds.map(([, , limit]) => curve(fine, (x) => limit(beta, x))),
          ...kinds.map(([, , , of_rows]) => curve(fine, (x) => of_rows(k, beta, x))),
          ...limits.map((y) => [{ x: gamma, y }]),
          level(0, 6, least),
        );
        facts(limits.map((value, j) => [fixed(value), j < 3 ? fixed(drawn[j]) : "not drawn"]));
        return (
          kinds.map(([label], j) => `${label} ${fixed(limits[j])}`).join(", ") +
          `; no row of ${length} keys is below ${fixed(least)}.`
        );
      };
    },
  };

  Object.assign((window.attentionFigures ??= {}), { row, rows, laws });
})();
