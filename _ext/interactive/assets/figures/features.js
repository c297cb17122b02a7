// Figures of random features: their error against their number, and against two vectors.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const { say, fixed, brief, axis, line, marker, chart, curve, set, numbers, slider, hundredths, among, level, draggable } = window.attentionFrame;
  const tables = window.attentionTables;

  // The error of random features against their number and two norms.
  const features = {
    name: "Errors of random features, to move",
    tables: ["draws"],
    guess: {
      ask: "The sum x + y grows from length 2 to 4. How many times as many positive features does an error of a tenth need?",
      options: ["Four times", "About a hundred times", "More than a hundred thousand times"],
      right: 2,
      because: "The relative variance grows like the exponential of the squared length.",
      state: { sum: 16 },
    },
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
        [say("positive"), "blue", [], (sum) => F.positiveVariance(sum), 1],
        [say("hyperbolic"), "orange", [8, 3], (sum) => 2 * F.pairVariance(sum), 2],
        [say("trigonometric"), "green", [3, 3], (sum, difference) => 2 * F.pairVariance(difference), 2],
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
            line(say("median"), "blue", { pointRadius: 3 }),
            line(say("kernel"), "grey", { borderWidth: 1 }),
            marker("", "blue"),
          ],
        },
      );
      const facts = numbers(
        results,
        "One entry of the kernel",
        [say("features"), "error with m", "m for an error of 10 %"],
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

  // The variance of one feature against two vectors of the plane.
  const COMPONENTS = [["x1", "first of x", 1.2], ["x2", "second of x", 0.6], ["y1", "first of y", 0.8], ["y2", "second of y", -0.7]];
  const END = 2.5;
  const kernel = {
    name: "The variance of random features of two vectors, to move",
    tables: [],
    guess: {
      ask: "The vector y is turned until it points away from x. Which features have the smallest error then?",
      options: ["Cosines (trigonometric)", "Exponentials (positive, hyperbolic)", "All have the same"],
      right: 1,
      because: "Exponentials depend on x + y, which is short now, and cosines on x \u2212 y, which is long.",
      state: { x1: 1.2, x2: 0.6, y1: -1.2, y2: -0.5 },
    },
    controls: () => COMPONENTS.map(([key, label, value]) => slider(key, label, [-END, END, 0.1], value)),
    build(panels, results, put) {
      const plane = chart(panels, "The vectors x, y and their sum in the plane. Drag the ends of x and y.", {
        x: axis("first component", { min: -5, max: 5, step: 5 }),
        y: axis("second component", { min: -5, max: 5, step: 5 }),
        datasets: [
          line("x", "blue", { pointRadius: [0, 7] }),
          line("y", "orange", { pointRadius: [0, 7], pointStyle: "rect" }),
          line("x + y", "grey", { borderDash: [4, 3], pointRadius: [0, 3] }),
        ],
      });
      const component = (value) => Math.max(-END, Math.min(END, Math.round(10 * value) / 10));
      draggable(plane, [0, 1], (dataset, _, { x, y }) => {
        put("xy"[dataset] + 1, component(x));
        put("xy"[dataset] + 2, component(y));
      });
      const kinds = [
        [say("positive"), "blue", [], (sum) => F.positiveVariance(sum)],
        [say("hyperbolic"), "orange", [8, 3], (sum) => F.pairVariance(sum)],
        [say("trigonometric"), "green", [3, 3], (_, difference) => F.pairVariance(difference)],
        ["positive, best A (FAVOR++)", "pink", [8, 3, 2, 3], (sum) => F.bestVariance(sum, 2)],
      ];
      const fine = Array.from({ length: 101 }, (_, k) => k / 20);
      const variances = chart(panels, "Relative variances of one projection against the length of x + y.", {
        x: axis("length of x + y", { min: 0, max: 5, step: 1 }),
        y: axis("relative variance", { min: 1e-3, max: 1e6, log: true }),
        datasets: [
          ...kinds.map(([label, hue, borderDash]) => line(label, hue, { borderDash })),
          ...kinds.map(([label, hue]) => marker(label, hue)),
        ],
      });
      const facts = numbers(
        results,
        "Of this pair",
        ["", "relative variance", "m for an error of 10 %"],
        kinds.map(([label]) => label),
      );
      return ({ x1, x2, y1, y2 }) => {
        const [sum, difference] = [Math.hypot(x1 + y1, x2 + y2), Math.hypot(x1 - y1, x2 - y2)];
        set(plane, ...[[x1, x2], [y1, y2], [x1 + y1, x2 + y2]].map(([x, y]) => [{ x: 0, y: 0 }, { x, y }]));
        const shown = (value) => (value > 0 ? value : NaN);
        const found = kinds.map(([, , , f]) => f(sum, difference));
        set(
          variances,
          ...kinds.map(([, , , f]) => curve(fine, (length) => shown(f(length, difference)))),
          ...found.map((y) => [{ x: sum, y: shown(y) }]),
        );
        facts(found.map((value) => [brief(value), brief(Math.max(1, Math.ceil(100 * value)))]));
        return `x + y has length ${fixed(sum, 2)}, x \u2212 y ${fixed(difference, 2)}. Relative variance: ${kinds.map(([label], k) => `${label} ${brief(found[k])}`).join(", ")}.`;
      };
    },
  };
  Object.assign((window.attentionFigures ??= {}), { features, kernel });
})();
