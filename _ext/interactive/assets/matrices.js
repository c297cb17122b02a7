// The formulas of attention matrices: masks, spectra, ranks, powers, reach. A matrix is an array of its rows. The tests
// compare each with the package.
(() => {
  "use strict";
  const F = window.attentionFormulas;
  const square = (n, entry) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => entry(i, j)));
  const product = (A, B) => A.map((row) => B[0].map((_, j) => row.reduce((sum, a, k) => sum + a * B[k][j], 0)));

  // Softmax of each row over the keys that the mask lets it see; others have weight 0.
  function attention(scores, mask, temperature = 1) {
    return scores.map((row, i) => {
      const seen = row.map((_, j) => j).filter((j) => mask[i][j]);
      const weights = F.softmax(seen.map((j) => row[j]), temperature);
      const found = row.map(() => 0);
      seen.forEach((j, k) => (found[j] = weights[k]));
      return found;
    });
  }

  // Singular values by falling size: columns are turned in pairs until all are at right angles (Hestenes). Each pair is
  // turned by the smaller angle, and what is left of a product is below rounding.
  function singularValues(A) {
    const columns = A[0].map((_, j) => A.map((row) => row[j]));
    const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
    for (let sweep = 0, turned = true; turned && sweep < 60; sweep++) {
      turned = false;
      for (let p = 0; p < columns.length; p++)
        for (let q = p + 1; q < columns.length; q++) {
          const [u, v] = [columns[p], columns[q]];
          const [uu, vv, uv] = [dot(u, u), dot(v, v), dot(u, v)];
          if (Math.abs(uv) <= 1e-15 * Math.sqrt(uu * vv) || uv === 0) continue;
          turned = true;
          const zeta = (vv - uu) / (2 * uv);
          const tangent = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
          const cosine = 1 / Math.hypot(1, tangent);
          for (let k = 0; k < u.length; k++)
            [u[k], v[k]] = [cosine * (u[k] - tangent * v[k]), cosine * (v[k] + tangent * u[k])];
        }
    }
    return columns.map((column) => Math.hypot(...column)).sort((a, b) => b - a);
  }

  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const entropyRank = (sigma) => Math.exp(F.entropy(sigma.map((value) => value / total(sigma))));
  const stableRank = (sigma) => sigma.reduce((sum, value) => sum + (value / sigma[0]) ** 2, 0);
  // The least number of values whose sum is at least the share 1 - epsilon of all, equation (5.5.3).
  function effectiveRank(sigma, epsilon) {
    let sum = 0;
    return 1 + sigma.findIndex((value) => (sum += value) >= (1 - epsilon) * total(sigma));
  }
  const numericalRank = (sigma) => sigma.filter((value) => value > sigma.length * 2 ** -52 * sigma[0]).length;

  // Half of the largest distance of two rows.
  const dobrushin = (A) =>
    Math.max(...A.map((u) => Math.max(...A.map((v) => total(u.map((value, k) => Math.abs(value - v[k]))) / 2))));

  const causal = (n) => square(n, (i, j) => j <= i);
  const both = (A, B) => A.map((row, i) => row.map((value, j) => value && B[i][j]));
  const either = (A, B) => A.map((row, i) => row.map((value, j) => value || B[i][j]));
  const windowMask = (n, width) => square(n, (i, j) => Math.abs(i - j) <= width);
  const stridedMask = (n, stride) =>
    square(n, (i, j) => Math.abs(i - j) < stride || Math.abs(i - j) % stride === 0);
  const blockMask = (n, block) => square(n, (i, j) => Math.floor(i / block) === Math.floor(j / block));
  const hubMask = (n, hubs) => square(n, (i, j) => i < hubs || j < hubs);
  const factorisedStrided = (n, stride) => [
    square(n, (i, j) => i >= j && i - j <= stride),
    square(n, (i, j) => i >= j && (i - j) % stride === 0),
  ];
  const factorisedFixed = (n, stride, summary) => [
    both(causal(n), blockMask(n, stride)),
    square(n, (i, j) => i >= j && j % stride >= stride - summary),
  ];
  function halvingMask(n) {
    const mask = square(n, (i, j) => i === j);
    const stretches = [[0, n]];
    for (let stretch; (stretch = stretches.pop()); ) {
      const [first, end] = stretch;
      if (end - first <= 1) continue;
      const middle = Math.floor((first + end) / 2);
      for (let j = first; j < middle; j++) mask[middle][j] = true;
      for (let i = middle; i < end; i++) mask[i][middle] = true;
      stretches.push([first, middle], [middle + 1, end]);
    }
    return mask;
  }

  // For each pair the number of layers through which the second position reaches the first, at most `most`; 0 for the
  // position itself, infinity where more layers are needed. The masks take turns, and positions keep what they know.
  function layersNeeded(masks, most) {
    const n = masks[0].length;
    const needed = square(n, (i, j) => (i === j ? 0 : Infinity));
    for (let layer = 1; layer <= most; layer++) {
      const mask = masks[(layer - 1) % masks.length];
      const before = needed.map((row) => [...row]);
      for (let i = 0; i < n; i++)
        for (let a = 0; a < n; a++)
          if (mask[i][a])
            for (let j = 0; j < n; j++)
              if (before[a][j] < Infinity && needed[i][j] === Infinity) needed[i][j] = layer;
    }
    return needed;
  }

  Object.assign(F, {
    product, attention, singularValues, entropyRank, stableRank, effectiveRank, numericalRank, dobrushin, causal, both,
    either, windowMask, stridedMask, blockMask, hubMask, factorisedStrided, factorisedFixed, halvingMask, layersNeeded,
  });
})();
