// The formulas of the interactive figures. The package attnmath computes the same ones, and a test compares the two on
// a grid (tests/site/test_interactive.py). Rows are arrays of numbers; scores and temperatures have the same unit.
(() => {
  "use strict";

  const sum = (a) => a.reduce((total, value) => total + value, 0);
  const length = (a) => Math.sqrt(sum(a.map((value) => value * value)));

  // exp(x_i / T) / sum_j exp(x_j / T), equation (5.1.6), with the largest score taken out.
  function softmax(x, temperature = 1) {
    const top = Math.max(...x);
    const powers = x.map((value) => Math.exp((value - top) / temperature));
    const total = sum(powers);
    return powers.map((power) => power / total);
  }

  // Entropy in nats; a weight 0 adds nothing.
  const entropy = (p) => sum(p.map((weight) => (weight > 0 ? -weight * Math.log(weight) : 0)));

  // The Jacobian of softmax at its output y, equation (5.1.8). The diagonal y_i (1 - y_i) takes 1 - y_i from the other
  // weights, so that nothing cancels where a row is almost one-hot.
  function softmaxJacobian(y) {
    const others = y.map((_, i) => sum(y.filter((_, j) => j !== i)));
    return y.map((yi, i) => y.map((yj, j) => (i === j ? yi * others[i] : -yi * yj)));
  }

  // Frobenius norm of the Jacobian of softmax at its output y.
  const jacobianNorm = (y) => length(softmaxJacobian(y).flat());

  // S of a row, article equation (1): mean modulus over root mean square. A row of zeros has none.
  function sparsity(a) {
    const top = Math.max(...a.map(Math.abs));
    if (!(top > 0)) return NaN;
    const shares = a.map((value) => Math.abs(value) / top);
    return sum(shares) / (Math.sqrt(a.length) * length(shares));
  }

  // n S^2, the number of equal entries that would be as concentrated.
  const effectiveSupport = (a) => a.length * sparsity(a) ** 2;

  const squaredRelu = (a) => a.map((value) => Math.max(value, 0) ** 2);

  const density = (t) => Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI);

  // The ratios r_k = I_k / I_(k-1), k = 1 to 4, of the integrals I_k of u^k exp(-u^2/2 - x u) over u > 0, for x >= 1:
  // r_k = k / (x + r_(k+1)) adds and divides positive numbers only, and forgets where it began.
  function ratios(x) {
    const r = [0, 0, 0, 0, 0];
    let next = Math.sqrt(500);
    for (let k = 500; k >= 1; k--) {
      next = k / (x + next);
      if (k <= 4) r[k] = next;
    }
    return r;
  }

  // The normal distribution function: a series of positive terms near 0, the ratios far out.
  function normalCdf(t) {
    if (t < -2) return density(t) / (-t + ratios(-t)[1]);
    if (t > 2) return 1 - normalCdf(-t);
    let term = t,
      series = t;
    for (let k = 1; k < 60; k++) series += term *= (t * t) / (2 * k + 1);
    return 0.5 + density(t) * series;
  }

  // S of squared ReLU for scores of mean beta and standard deviation gamma, article equation (6).
  function reluSquaredSparsity(beta, gamma) {
    const t = beta / gamma,
      square = t * t;
    if (t < -1) {
      const [, r1, r2, r3, r4] = ratios(-t);
      const quotient = (r1 * r2) / ((-t + r1) * r3 * r4); // I_2^2 / I_4, with I_0 = 1 / (x + r_1)
      return Math.exp(-square / 4) * Math.sqrt(quotient / Math.sqrt(2 * Math.PI));
    }
    const below = normalCdf(t),
      at = density(t);
    const m2 = (square + 1) * below + t * at;
    const m4 = (square * (square + 6) + 3) * below + t * (square + 5) * at;
    return m2 / Math.sqrt(m4);
  }

  // S of the scores themselves, article equation (7).
  function identitySparsity(beta, gamma) {
    const t = Math.abs(beta / gamma);
    return (t * (2 * normalCdf(t) - 1) + 2 * density(t)) / Math.hypot(1, t);
  }

  // S of softmax, article equation (5).
  const exponentialSparsity = (gamma) => Math.exp((-gamma * gamma) / 2);

  // S of weights that are never negative, of mean beta > 0 and standard deviation gamma, article equation (8).
  const linearSparsity = (beta, gamma) => (beta > 0 ? 1 / Math.hypot(1, gamma / beta) : NaN);

  // Relative variance of one projection of random features, by the norm of x + y or of x - y.
  const positiveVariance = (norm) => Math.expm1(norm * norm);
  const pairVariance = (norm) => 2 * Math.sinh((norm * norm) / 2) ** 2; // cosh(norm^2) - 1

  // The same with the coefficient A that has the least variance for a pair of d components, FAVOR++.
  function bestVariance(norm, d) {
    const s = (norm * norm) / d;
    const root = Math.sqrt((2 * s + 1) ** 2 + 8 * s);
    const A = s < 0.5 ? -s / (1 - 2 * s + root) : (1 - 2 * s - root) / 16;
    return Math.expm1((d / 2) * Math.log1p((16 * A * A) / (1 - 8 * A)) + (norm * norm) / (1 - 8 * A));
  }

  window.attentionFormulas = {
    softmax, entropy, softmaxJacobian, jacobianNorm, sparsity, effectiveSupport, squaredRelu, normalCdf,
    reluSquaredSparsity, identitySparsity, exponentialSparsity, linearSparsity, positiveVariance, pairVariance, bestVariance,
  };
})();
