// How far a sparse pattern reaches through layers.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const { say, fixed, heat, numbers, slider, chart, axis, line, marker, set, draggable } = window.attentionFrame;
  const N = 48;
  const MOST = 8; // layers
  // Name, masks of the layers in turn, and whether a position sees later ones.
  const PATTERNS = [
    ["window before the query", (size) => [F.both(F.causal(N), F.windowMask(N, size))], false],
    ["strided: near, then far", (size) => F.factorisedStrided(N, size), false],
    ["fixed: own block, then cells", (size) => F.factorisedFixed(N, size, 1), false],
    ["fixed: cells, then own block", (size) => F.factorisedFixed(N, size, 1).reverse(), false],
    [say("halving"), () => [F.halvingMask(N)], false],
    ["window on both sides and a hub", (size) => [F.either(F.windowMask(N, size), F.hubMask(N, 1))], true],
  ];
  const reach = {
    name: "The reach of a sparse pattern, to move",
    tables: [],
    guess: {
      ask: "A query sees itself and the 7 keys before it. How many of the 48 positions does the last one hear of in two layers?",
      options: ["15", "22", say("all")],
      right: 0,
      because: "Each layer adds the width once more. The strided pattern of the same size reaches all in two.",
      state: { pattern: 0, size: 7, layers: 2 },
    },
    controls: () => [
      { key: "pattern", label: say("pattern"), options: PATTERNS.map(([name]) => name), value: 1 },
      slider("size", "width, stride or block", [1, 12, 1], 7, { show: String }),
      slider("layers", say("layers"), [1, MOST, 1], 2, { show: String }),
    ],
    build(panels, results, put) {
      const picture = heat(panels, "Which position reaches which: the darker, the fewer layers are needed.");
      const shares = chart(panels, "The share of the pairs that is reached, against the number of layers.", {
        x: axis(say("layers"), { min: 0, max: MOST, step: 1 }),
        y: axis("share of the pairs", { min: 0, max: 1, step: 0.2 }),
        datasets: [line(say("reached"), "blue", { pointRadius: 3 }), marker("", "blue")],
      });
      draggable(shares, [1], (_, __, { x }) => put("layers", Math.max(1, Math.round(x))));
      const facts = numbers(
        results,
        "Of 48 positions",
        ["", say("number")],
        ["entries of a row in a layer, mean", "share of the pairs reached", "positions that the last one hears of", "layers for all pairs"],
      );
      return ({ pattern, size, layers }) => {
        const [name, masks, later] = PATTERNS[pattern];
        const turns = masks(size);
        const wanted = later ? F.windowMask(N, N) : F.causal(N);
        const needed = F.layersNeeded(turns, 60);
        const pairs = needed.flat().filter((_, k) => wanted.flat()[k]);
        const share = (most) => pairs.filter((count) => count <= most).length / pairs.length;
        picture(needed.map((row) => row.map((count) => (count <= layers ? 1 / (1 + count) ** 0.7 : 0))));
        set(
          shares,
          Array.from({ length: MOST + 1 }, (_, x) => ({ x, y: share(x) })),
          [{ x: layers, y: share(layers) }],
        );
        const entries = turns.map((mask) => mask.flat().filter(Boolean).length / N);
        const all = Math.max(...pairs);
        const heard = needed.at(-1).filter((count) => count <= layers).length;
        facts([
          [fixed(entries.reduce((sum, value) => sum + value, 0) / entries.length, 1)],
          [fixed(share(layers), 2)],
          [String(heard)],
          [all < Infinity ? String(all) : "no number"],
        ]);
        return `${name}, ${layers} layers: ${fixed(share(layers), 2)} of the pairs are reached.`;
      };
    },
  };

  Object.assign((window.attentionFigures ??= {}), { reach });
})();
