// The five interactive figures: their sliders, their charts, and how the numbers come out of formulas.js and tables.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const { fixed, brief, interpolated, table, axis, line, marker, chart, curve, set, numbers, begin } =
    window.attentionFrame;
  const tables = window.attentionTables;

  const slider = (key, label, [min, max, step], value, more) => ({ key, label, min, max, step, value, ...more });
  const hundredths = { show: (v) => fixed(v, 2) };
  const short = (v) => String(Number(v.toPrecision(2)));
  const logarithmic = (label, key, min, max, value) =>
    slider(key, label, [min, max, 0.05], value, { of: (v) => 10 ** v, show: short });
  // A slider over the values of a table, which begins at the one with this number.
  const among = (values, key, label, value, show) =>
    slider(key, label, [0, values.length - 1, 1], value, { of: (k) => values[k], show });
  const level = (from, to, y) => curve([from, to], () => y);
  const QUERY = 3; // the query "it"
  const small = () => tables.head; // the head of four tokens
  const choice = () => ({ key: "query", label: "query", options: small().tokens, value: QUERY });

  // The row of a query of the small head, its entropy and its Jacobian.
  const row = {
    name: "A row of the small head, to move",
    tables: ["head"],
    controls: () => [
      choice(),
      ...small().tokens.map((token, j) =>
        slider(`score${j}`, `score of ${token}`, [-6, 6, 0.5], small().scores[QUERY][j]),
      ),
      { key: "scale", label: "q\u00b7k divided by", options: ["\u221a2 (scaled)", "1 (unscaled)"], value: 0 },
      logarithmic("temperature T", "temperature", -1.5, 1.5, 0),
    ],
    changed(key, state, put) {
      if (key === "query") small().scores[state.query].forEach((score, j) => put(`score${j}`, score));
    },
    build(panels, results) {
      const { tokens, width } = small();
      const n = tokens.length;
      const bars = chart(panels, "Bars of the four weights; the table has the same numbers.", {
        type: "bar",
        labels: tokens,
        x: axis("key", { words: true }),
        y: axis("weight", { min: 0, max: 1, step: 0.2 }),
        datasets: [{ label: "", hue: "blue", data: [], quiet: true, maxBarThickness: 60 }],
      });
      const jacobian = numbers(
        panels,
        "Jacobian: how a weight (row) responds to a score after the division (column)",
        ["", ...tokens],
        tokens,
      );
      const cells = [...panels.lastChild.querySelectorAll("tbody td")];
      panels.lastChild.classList.add("interactive-heat");
      const weights = numbers(results, "Weights", ["key", "weight"], tokens);
      const facts = numbers(
        results,
        "In numbers",
        ["", "this row", "all equal", "one-hot"],
        ["entropy in nats", "norm of the Jacobian", "norm by the scores q\u00b7k"],
      );
      const equal = Array(n).fill(1 / n);
      const single = equal.map((_, j) => Number(j === 0));
      return (state) => {
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
    controls: () => [
      choice(),
      slider("shift", "shift", [-6, 6, 0.25], 0, hundredths),
      logarithmic("stretch", "stretch", -1, 1, 0),
    ],
    build(panels, results) {
      const { tokens, width } = small();
      const bars = chart(panels, "Bars of both rows, side by side for each key; the table has the same numbers.", {
        type: "bar",
        labels: tokens,
        x: axis("key", { words: true }),
        y: axis("share of the row", { min: 0, max: 1, step: 0.2 }),
        datasets: [
          { label: "softmax", hue: "blue", data: [], maxBarThickness: 44 },
          { label: "squared ReLU", hue: "orange", data: [], maxBarThickness: 44 },
        ],
      });
      bars.options.plugins.legend.labels.boxHeight = 10;
      const facts = numbers(
        results,
        "In numbers",
        ["", "softmax", "squared ReLU"],
        ["sparsity S", "effective support nS\u00b2", ...tokens.map((token) => `share of ${token}`)],
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
    controls: () => [
      slider("beta", "mean \u03b2", [-3, 3, 0.25], -1, hundredths),
      slider("gamma", "deviation \u03b3", [0.25, 6, 0.25], 1.5, hundredths),
      among(tables.rows.lengths, "length", "keys n", 2, String),
    ],
    build(panels, results) {
      const { lengths, gammas, ratios, S } = tables.rows;
      const by_ratio = (law) => (k, beta, gamma) => interpolated(ratios, S[law][k], beta / gamma);
      const by_gamma = (k, beta, gamma) => interpolated(gammas, S.exp[k], gamma);
      const kinds = [
        ["softmax", "blue", (beta, gamma) => F.exponentialSparsity(gamma), by_gamma],
        ["squared ReLU", "orange", F.reluSquaredSparsity, by_ratio("relu^2")],
        ["scores themselves", "green", F.identitySparsity, by_ratio("identity")],
        ["linear attention, \u03b2 > 0", "pink", F.linearSparsity, () => NaN],
      ];
      const DASHES = [[], [8, 3], [3, 3], [8, 3, 2, 3]];
      const made = chart(
        panels,
        "Curves of S over the standard deviation of the scores; the table has the numbers at the chosen one.",
        {
          x: axis("standard deviation of the scores \u03b3", { min: 0, max: 6 }),
          y: axis("sparsity S", { min: 0, max: 1, step: 0.2 }),
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

  // Singular values and ranks of a trained head against temperature.
  const warmth = () => tables["spectra-6"].temperatures; // the same for every layer
  const spectrum = {
    name: "Singular values of a trained head, to move",
    tables: ["head", "spectra-6"],
    controls: () => [
      slider("layer", "layer", [1, 6, 1], small().trained[0], { show: String }),
      slider("head", "head", [1, 12, 1], small().trained[1], { show: String }),
      slider("temperature", "temperature T", [0, warmth().length - 1, 1], (warmth().length - 1) / 2, {
        show: (k) => short(warmth()[k]),
      }),
    ],
    build(panels, results) {
      const { temperatures, epsilon } = tables["spectra-6"];
      const one = (temperatures.length - 1) / 2;
      const values = chart(panels, "Singular values of the weights, by falling size, on a logarithmic axis.", {
        x: axis("number of the singular value", { min: 0, max: 18, step: 3 }),
        y: axis("singular value", { min: 1e-4, max: 10, log: true }),
        datasets: [
          line("at temperature T", "blue", { pointRadius: 3 }),
          line("at temperature 1", "grey", { borderDash: [4, 3], borderWidth: 1.5 }),
        ],
      });
      const kinds = [
        ["entropy rank", "entropy", "blue", []],
        ["effective rank", "share", "orange", [8, 3]],
        ["stable rank", "stable", "green", [3, 3]],
      ];
      const ranks = chart(
        panels,
        "Three ranks over the temperature; the table has the numbers at the chosen one.",
        {
          x: axis("temperature T", { min: 0.05, max: 20, log: true }),
          y: axis("rank", { min: 0.9, max: 20, log: true, named: [1, 2, 5, 10, 20] }),
          datasets: [
            ...kinds.map(([label, , hue, borderDash]) => line(label, hue, { borderDash })),
            ...kinds.map(([label, , hue]) => marker(label, hue)),
          ],
        },
      );
      const facts = numbers(
        results,
        "Ranks",
        ["", "at T", "at 1"],
        ["entropy rank", `effective rank, ${epsilon} left out`, "stable rank"],
      );
      let latest;
      return async (state) => {
        latest = state;
        const found = await table(`spectra-${state.layer}`);
        const { layer, head, temperature } = latest; // the reader may have moved on while the table was loading
        if (layer !== state.layer) return "";
        const sigma = (t) =>
          found.sigma[head - 1][t].map((power, i) => ({ x: i + 1, y: power > -5000 ? 10 ** (power / 1000) : NaN }));
        const at = (key, t) => found[key][head - 1][t];
        set(values, sigma(temperature), sigma(one));
        set(
          ranks,
          ...kinds.map(([, key]) => temperatures.map((x, t) => ({ x, y: at(key, t) }))),
          ...kinds.map(([, key]) => [{ x: temperatures[temperature], y: at(key, temperature) }]),
        );
        const rounded = (key, t) => fixed(at(key, t), key === "share" ? 0 : 2);
        facts(kinds.map(([, key]) => [temperature, one].map((t) => rounded(key, t))));
        return (
          `Head ${head} of layer ${layer} at temperature ${short(temperatures[temperature])}: ` +
          `${kinds.map(([label, key]) => `${label} ${rounded(key, temperature)}`).join(", ")}.`
        );
      };
    },
  };

  // The error of random features against their number and two norms.
  const features = {
    name: "Errors of random features, to move",
    tables: ["draws"],
    controls: () => [
      among(tables.draws.norms, "sum", "norm of x + y", 8, hundredths.show),
      among(tables.draws.norms, "difference", "norm of x \u2212 y", 4, hundredths.show),
      among(tables.draws.sizes, "size", "features m", 5, brief),
    ],
    build(panels, results) {
      const { norms, sizes, estimates } = tables.draws;
      const last = sizes.at(-1);
      // Name, hue, dashes, the relative variance of one feature, and how many features one projection gives.
      const kinds = [
        ["positive", "blue", [], (sum) => F.positiveVariance(sum), 1],
        ["hyperbolic", "orange", [8, 3], (sum) => 2 * F.pairVariance(sum), 2],
        ["trigonometric", "green", [3, 3], (sum, difference) => 2 * F.pairVariance(difference), 2],
      ];
      const errors = chart(panels, "Relative standard errors over the number of features, on logarithmic axes.", {
        x: axis("features m", { min: 1, max: 10000, log: true }),
        y: axis("relative standard error", { min: 1e-3, max: 1e4, log: true }),
        datasets: [
          ...kinds.map(([label, hue, borderDash]) => line(label, hue, { borderDash })),
          ...kinds.map(([label, hue]) => marker(label, hue)),
          line("10 %", "grey", { borderWidth: 1 }),
        ],
      });
      const spread = chart(
        panels,
        "Quantiles of the estimate by positive features over the kernel, against their number.",
        {
          x: axis("positive features m", { min: 1, max: 10000, log: true }),
          y: axis("estimate over kernel", { min: 1e-3, max: 10, log: true }),
          datasets: [
            line("nine estimates of ten", "blue", { fill: "+1", borderWidth: 1 }),
            line("", "blue", { borderWidth: 1, quiet: true }),
            line("median", "blue", { pointRadius: 3 }),
            line("kernel", "grey", { borderWidth: 1 }),
            marker("", "blue"),
          ],
        },
      );
      const facts = numbers(
        results,
        "One entry of the kernel",
        ["features", "error with m", "m for an error of 10 %"],
        kinds.map(([label]) => label),
      );
      return ({ sum, difference, size }) => {
        const variances = kinds.map(([, , , f]) => f(sum, difference));
        const error = (variance, m) => Math.sqrt(variance / m);
        set(
          errors,
          ...variances.map((variance) => (variance > 0 ? curve([1, last], (m) => error(variance, m)) : [])),
          ...variances.map((variance) => (variance > 0 ? [{ x: size, y: error(variance, size) }] : [])),
          level(1, 10000, 0.1),
        );
        const of_norm = estimates[norms.indexOf(sum)];
        const at = (q) => sizes.map((x, k) => ({ x, y: of_norm[k][q] }));
        const median = of_norm[sizes.indexOf(size)][1];
        set(spread, at(2), at(0), at(1), level(1, 10000, 1), [{ x: size, y: median }]);
        const needed = (variance, together) => together * Math.max(1, Math.ceil((100 * variance) / together));
        facts(variances.map((variance, k) => [brief(error(variance, size)), brief(needed(variance, kinds[k][4]))]));
        return (
          `Relative standard error with ${size} features: ` +
          kinds.map(([label], k) => `${label} ${brief(error(variances[k], size))}`).join(", ") +
          (variances[0] > 0
            ? `. Half of the estimates by positive features are below ${brief(median)} of the kernel.`
            : ". Every estimate by positive features is the kernel itself.")
        );
      };
    },
  };

  begin({ row, rows, laws, spectrum, features });
})();
