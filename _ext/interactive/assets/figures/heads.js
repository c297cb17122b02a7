// Figures of the trained heads of three models: their ranks against temperature, what a mask does to them, their powers,
// and the size of their dot products.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const {
    say, fixed, brief, short, table, axis, line, marker, chart, heat, curve, set, numbers, slider, among, level, draggable,
  } = window.attentionFrame;
  const tables = window.attentionTables;
  const EPSILON = 0.1; // the share that the effective rank leaves out

  // --- the heads -----------------------------------------------------------------------------------

  const models = () => tables.models;
  const NAMES = { encoder: say("encoder"), small: say("small decoder"), pretrained: say("pretrained decoder") };
  const WITHOUT = 1;
  const choices = (first = 0) => {
    const [layer, head] = models()[0].start;
    return [
      { key: "model", label: say("model"), options: models().map(({ key }) => NAMES[key]), value: 0 },
      slider("layer", say("layer"), [1, models()[0].layers, 1], layer, { show: String }),
      slider("head", say("head"), [1, models()[0].heads, 1], head, { show: String }),
      { key: "first", label: "first token", options: [say("kept"), "left out"], value: first },
    ];
  };
  // Another model has other numbers of layers and heads, and a head of its own to begin with.
  function ofAnotherModel(key, { model }, put, limit) {
    if (key !== "model") return;
    const { layers, heads, start } = models()[model];
    limit("layer", 1, layers);
    limit("head", 1, heads);
    put("layer", start[0]);
    put("head", start[1]);
  }
  // The scaled scores of the chosen head, the pairs that it sees, and its tokens.
  async function chosen({ model, layer, head, first }) {
    const { key, tokens, causal } = models()[model];
    const found = (await table(`heads-${key}-${layer}`)).scores[head - 1];
    const from = first === WITHOUT ? 1 : 0;
    const n = tokens.length - from;
    const entry = (i, j) => found[i + from][j + from] ?? 0; // what a causal head hides is not in the table
    const scores = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => entry(i, j)));
    return { scores, seen: causal ? F.causal(n) : F.windowMask(n, n), tokens: tokens.slice(from) };
  }
  const named = ({ model, layer, head, first }) =>
    `Head ${head} of layer ${layer} of the ${NAMES[models()[model].key]}${first === WITHOUT ? ", first token left out" : ""}`;
  // A figure whose numbers come later shows those of the reader's last choice alone.
  function latest(work) {
    let count = 0;
    return async (state) => {
      const mine = (count += 1);
      const found = await chosen(state);
      return mine === count ? work(state, found) : "";
    };
  }

  // Singular values and ranks of a trained head against temperature.
  const TEMPERATURES = Array.from({ length: 41 }, (_, k) => 0.05 * 400 ** (k / 40));
  const ONE = 20; // the number of temperature 1
  const spectrum = {
    name: "Singular values of a trained head, to move",
    tables: ["models"],
    guess: {
      ask: "The temperature of this head rises from 1 to 5. What does its entropy rank do?",
      options: ["It falls all the way", "It rises, and then falls", "It rises all the way"],
      right: 1,
      because: "The rank has its largest value above temperature 1, and tends to 1 when all scores become equal.",
      state: { temperature: 31 },
    },
    controls: () => [
      ...choices(),
      slider("temperature", say("temperature T"), [0, TEMPERATURES.length - 1, 1], ONE, {
        show: (k) => short(TEMPERATURES[k]),
      }),
    ],
    changed: ofAnotherModel,
    build(panels, results, put) {
      const values = chart(panels, "Singular values of the weights, by falling size, on a logarithmic axis.", {
        x: axis("number of the singular value", { min: 0, max: 18, step: 3 }),
        y: axis("singular value", { min: 1e-4, max: 10, log: true }),
        datasets: [
          line("at temperature T", "blue", { pointRadius: 3 }),
          line("at temperature 1", "grey", { borderDash: [4, 3], borderWidth: 1.5 }),
        ],
      });
      const kinds = [
        ["entropy rank", F.entropyRank, "blue", []],
        ["effective rank", (sigma) => F.effectiveRank(sigma, EPSILON), "orange", [8, 3]],
        ["stable rank", F.stableRank, "green", [3, 3]],
      ];
      const ranks = chart(
        panels,
        "Three ranks over the temperature; the table has the numbers at the chosen one.",
        {
          x: axis(say("temperature T"), { min: 0.05, max: 20, log: true }),
          y: axis(say("rank"), { min: 0.9, max: 20, log: true, named: [1, 2, 5, 10, 20] }),
          datasets: [
            ...kinds.map(([label, , hue, borderDash]) => line(label, hue, { borderDash })),
            ...kinds.map(([label, , hue]) => marker(label, hue)),
          ],
        },
      );
      draggable(ranks, [3, 4, 5], (_, __, { x }) =>
        put("temperature", Math.round((40 * Math.log(x / 0.05)) / Math.log(400))),
      );
      const facts = numbers(
        results,
        "Ranks",
        ["", say("at T"), say("at 1")],
        ["entropy rank", `effective rank, ${EPSILON} left out`, "stable rank"],
      );
      return latest((state, { scores, seen }) => {
        const sigma = TEMPERATURES.map((T) => F.singularValues(F.attention(scores, seen, T)));
        const points = (t) => sigma[t].map((y, i) => ({ x: i + 1, y: y > 1e-5 ? y : NaN }));
        const at = (k, t) => kinds[k][1](sigma[t]);
        const t = state.temperature;
        set(values, points(t), points(ONE));
        set(
          ranks,
          ...kinds.map((_, k) => TEMPERATURES.map((x, of) => ({ x, y: at(k, of) }))),
          ...kinds.map((_, k) => [{ x: TEMPERATURES[t], y: at(k, t) }]),
        );
        const rounded = (k, of) => fixed(at(k, of), k === 1 ? 0 : 2);
        facts(kinds.map((_, k) => [t, ONE].map((of) => rounded(k, of))));
        const told = kinds.map(([label], k) => `${label} ${rounded(k, t)}`).join(", ");
        return `${named(state)} at temperature ${short(TEMPERATURES[t])}: ${told}.`;
      });
    },
  };

  // What a mask does to the weights and to the ranks of a trained head.
  const MASKS = [
    ["no other mask", (n) => F.windowMask(n, n)],
    [say("causal"), (n) => F.causal(n)],
    [say("window"), (n, size) => F.windowMask(n, size)],
    [say("strided"), (n, size) => F.stridedMask(n, size)],
    [say("blocks"), (n, size) => F.blockMask(n, size)],
    ["window and first token", (n, size) => F.either(F.windowMask(n, size), F.hubMask(n, 1))],
  ];
  const mask = {
    name: "A mask on a trained head, to move",
    tables: ["models"],
    guess: {
      ask: "A window hides every key that is more than one place away. What becomes of the entropy rank of this head?",
      options: ["It falls, because weights are lost", "It stays", "It rises"],
      right: 2,
      because: "Rows that see different keys differ more, so more singular values are large.",
      state: { mask: 2, size: 1 },
    },
    controls: () => [
      ...choices(),
      { key: "mask", label: say("mask"), options: MASKS.map(([name]) => name), value: 1 },
      slider("size", "width, stride or block", [1, 9, 1], 2, { show: String }),
    ],
    changed: ofAnotherModel,
    build(panels, results) {
      const picture = heat(panels, "The weights behind the mask: rows are queries, columns are keys.");
      const values = chart(panels, "Singular values with the mask and without, on a logarithmic axis.", {
        x: axis("number of the singular value", { min: 0, max: 18, step: 3 }),
        y: axis("singular value", { min: 1e-4, max: 10, log: true }),
        datasets: [
          line("with the mask", "blue", { pointRadius: 3 }),
          line("without it", "grey", { borderDash: [4, 3], borderWidth: 1.5 }),
        ],
      });
      const facts = numbers(
        results,
        "Behind the mask",
        ["", say("with"), say("without")],
        ["rank in double precision", `effective rank, ${EPSILON} left out`, "entropy rank", "share of the weight kept"],
      );
      return latest((state, { scores, seen }) => {
        const n = scores.length;
        const behind = F.both(seen, MASKS[state.mask][1](n, state.size));
        const weights = [F.attention(scores, behind), F.attention(scores, seen)];
        const sigma = weights.map(F.singularValues);
        picture(weights[0]);
        set(values, ...sigma.map((of_one) => of_one.map((y, i) => ({ x: i + 1, y: y > 1e-5 ? y : NaN }))));
        const kept = weights[1].flat().reduce((sum, w, k) => sum + (behind.flat()[k] ? w : 0), 0) / n;
        facts([
          sigma.map((one) => String(F.numericalRank(one))),
          sigma.map((one) => String(F.effectiveRank(one, EPSILON))),
          sigma.map((one) => fixed(F.entropyRank(one), 2)),
          [fixed(kept, 2), fixed(1, 2)],
        ]);
        return `${named(state)}, ${MASKS[state.mask][0]}: entropy rank ${fixed(F.entropyRank(sigma[0]), 2)}, weight kept ${fixed(kept, 2)}.`;
      });
    },
  };

  // Powers of the matrix of a trained head.
  const POWERS = Array.from({ length: 40 }, (_, k) => k + 1);
  const powers = {
    name: "Powers of a trained head, to move",
    tables: ["models"],
    guess: {
      ask: "The matrix of this head is applied ten times. What do its rows look like?",
      options: ["Each has one large entry", "They are nearly equal", "They are those of one pass"],
      right: 1,
      because: "Each pass shrinks the differences of rows, and all rows tend to one distribution.",
      state: { power: 9 },
    },
    controls: () => [...choices(), among(POWERS, "power", "passes k", 0, String)],
    changed: ofAnotherModel,
    build(panels, results, put) {
      const picture = heat(panels, "The k-th power of the weights: rows are queries, columns are keys.");
      const fall = chart(panels, "The largest distance of two rows of the k-th power, on a logarithmic axis.", {
        x: axis("passes k", { min: 0, max: 40, step: 10 }),
        y: axis("largest distance of two rows", { min: 1e-6, max: 1, log: true }),
        datasets: [
          line("of the k-th power", "blue"),
          line("bound from one pass", "grey", { borderDash: [4, 3], borderWidth: 1.5 }),
          marker("", "blue"),
        ],
      });
      draggable(fall, [2], (_, __, { x }) => put("power", Math.max(0, Math.round(x) - 1)));
      const facts = numbers(
        results,
        "Of the k-th power",
        ["", "after k passes", "after one"],
        [say("Dobrushin's coefficient"), "entropy rank", "largest entry"],
      );
      return latest((state, { scores, seen }) => {
        const one = F.attention(scores, seen);
        const all = POWERS.reduce((found, k) => [...found, k === 1 ? one : F.product(found.at(-1), one)], []);
        const tau = all.map(F.dobrushin);
        const shown = (value) => Math.max(value, 1e-7);
        picture(all[state.power - 1]);
        set(
          fall,
          POWERS.map((x, k) => ({ x, y: shown(tau[k]) })),
          POWERS.map((x) => ({ x, y: shown(tau[0] ** x) })),
          [{ x: state.power, y: shown(tau[state.power - 1]) }],
        );
        const both = [all[state.power - 1], one];
        facts([
          both.map((A) => brief(F.dobrushin(A))),
          both.map((A) => fixed(F.entropyRank(F.singularValues(A)), 2)),
          both.map((A) => fixed(Math.max(...A.flat()))),
        ]);
        return say(`${named(state)} after ${state.power} passes: Dobrushin's coefficient ${brief(tau[state.power - 1])}.`);
      });
    },
  };

  // The size of dot products against the width of a head, drawn and of trained heads.
  const widths = {
    name: "The size of a dot product, to move",
    tables: ["widths"],
    guess: {
      ask: "The components are drawn with variance 1. The width grows from 16 to 256. By what does the spread of q\u00b7k grow?",
      options: ["It stays", "By the factor 4", "By the factor 16"],
      right: 1,
      because: "The variance is the width, so the spread is its root. The division by the root takes this away.",
      state: { of: 0, width: 8 },
    },
    controls: () => [
      { key: "of", label: "queries and keys", options: ["drawn, variance 1", ...tables.widths.trained.map(({ model, width }) => `${NAMES[model]}, width ${width}`)],
        value: 0 },
      among(tables.widths.drawn.map(({ width }) => width), "width", "width d_k", 4, String),
    ],
    changed(key, { of }, put, limit) {
      if (key === "of") limit("width", 0, of ? 0 : tables.widths.drawn.length - 1);
      if (key === "of" && !of) put("width", 4);
    },
    build(panels, results) {
      const { ends, trained, drawn } = tables.widths;
      const middle = (k) => (ends[k] + ends[k + 1]) / 2;
      const made = chart(panels, "Two histograms of dot products: as they are, and divided by the root of the width.", {
        x: axis(say("value"), { min: ends[0], max: ends.at(-1), step: 20 }),
        y: axis("share for each unit", { min: 0 }),
        datasets: [line("q\u00b7k", "blue"), line("q\u00b7k / \u221ad_k", "orange", { borderDash: [8, 3] })],
      });
      const facts = numbers(
        results,
        "In numbers",
        ["", "q\u00b7k", say("divided")],
        ["standard deviation", "rows with a weight above 0.9"],
      );
      return ({ of, width }) => {
        const found = of ? trained[of - 1] : drawn.find((one) => one.width === width);
        const step = ends[1] - ends[0];
        const outline = (shares) => shares.map((share, k) => ({ x: middle(k), y: share / step }));
        set(made, outline(found.plain), outline(found.divided));
        facts([
          found.deviations.map((value) => fixed(value, 2)),
          found.saturated.map((value) => `${fixed(100 * value, 0)} %`),
        ]);
        return `Width ${found.width}: standard deviation ${fixed(found.deviations[0], 2)}, divided ${fixed(found.deviations[1], 2)}.`;
      };
    },
  };

  Object.assign((window.attentionFigures ??= {}), { spectrum, mask, powers, widths });
})();
