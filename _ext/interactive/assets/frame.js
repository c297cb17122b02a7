// The frame of the interactive figures: sliders, charts by Chart.js, and tables of numbers, and how a live figure takes
// over its picture. Plain scripts and no modules, so that a book that is opened from a folder works too.
(() => {
  "use strict";
  const here = new URL(".", document.currentScript.src).href;
  const tables = (window.attentionTables ??= {});

  // --- elements, numbers ------------------------------------------------------------------------

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Marks a word for the reader that looks like a key: an edition in another language translates it.
  const say = (text) => text;
  const signed = (text) => text.replace("-", "\u2212");
  function fixed(value, digits = 3) {
    if (!Number.isFinite(value)) return say("none");
    const text = value.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : signed(text); // no minus before a number that shows as 0
  }
  // A few digits, whatever the size of the number.
  function brief(value) {
    if (!Number.isFinite(value)) return say("none");
    const size = Math.abs(value);
    if (value !== 0 && (size >= 1e5 || size < 1e-4)) {
      const [digits, power] = value.toExponential(1).split("e");
      const raised = [...String(Number(power))].map(
        (c) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c] ?? "\u207b",
      );
      return signed(`${digits.replace(/^1\.0$/, "")}\u00d710${raised.join("")}`.replace(/^\u00d7/, ""));
    }
    const text =
      size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
    return signed(text.replaceAll(",", "\u202f"));
  }

  // The value at x of a line through the points of a grid; nothing outside of it, or beside a point without a value.
  function interpolated(grid, values, x) {
    const at = (x - grid[0]) / (grid[1] - grid[0]),
      k = Math.min(Math.floor(at), grid.length - 2);
    if (!(at >= 0 && at <= grid.length - 1) || values[k] === null || values[k + 1] === null) return NaN;
    return values[k] + (at - k) * (values[k + 1] - values[k]);
  }

  const loading = {};
  function load(name) {
    loading[name] ??= new Promise((resolve, reject) => {
      const script = element("script", { src: here + name });
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${name}: expected beside interactive.js, got nothing`));
      document.head.append(script);
    });
    return loading[name];
  }

  async function table(name) {
    if (!tables[name]) await load(`${name}.js`);
    return tables[name];
  }

  // --- charts -----------------------------------------------------------------------------------

  // The colours of the book's figures; in the dark the same hues, lighter.
  const HUES = {
    light: { blue: "#0072b2", orange: "#d55e00", green: "#009e73", pink: "#b4568f", grey: "#6b6b6b" },
    dark: { blue: "#56b4e9", orange: "#f28a3c", green: "#2fc598", pink: "#e0a0c4", grey: "#a5a5a5" },
  };
  const charts = new Set();

  function paint({ data, options }) {
    const style = getComputedStyle(document.documentElement);
    const dark = document.documentElement.dataset.theme === "dark";
    const text = style.getPropertyValue("--pst-color-text-base").trim();
    for (const one of data.datasets) {
      const hue = HUES[dark ? "dark" : "light"][one.hue];
      one.borderColor = one.pointBackgroundColor = one.pointBorderColor = hue;
      one.backgroundColor = one.fill ? `${hue}40` : hue;
    }
    for (const scale of Object.values(options.scales)) {
      scale.title.color = scale.ticks.color = text;
      scale.grid.color = dark ? "#3a3f45" : "#e3e3e3";
      scale.border = { color: text };
    }
    options.plugins.legend.labels.color = text;
  }

  const heats = new Set(); // functions that draw a matrix again
  const repaint = new MutationObserver(() => {
    charts.forEach((chart) => {
      paint(chart.config);
      chart.update("none");
    });
    heats.forEach((draw) => draw());
  });
  repaint.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

  // An axis with a title. Of a logarithmic one only the powers of ten are labelled, or the values that are named.
  function axis(text, { min, max, step, log = false, words = false, named } = {}) {
    const ticks = { font: { size: 12 }, maxRotation: 0, autoSkip: !words && !log, stepSize: step };
    const labelled = (value) =>
      named ? named.includes(value) : Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
    if (log) ticks.callback = (value) => (labelled(value) ? brief(value).replace(/(\.\d*?)0+$/, "$1") : null);
    const type = words ? "category" : log ? "logarithmic" : "linear";
    return { type, min, max, ticks, grid: { display: !words }, title: { display: true, text, font: { size: 13 } } };
  }

  const DRAWN = { type: "line", pointRadius: 0, pointHitRadius: 6, borderWidth: 2, showLine: true };
  const line = (label, hue, more = {}) => ({ ...DRAWN, label, hue, data: [], ...more });
  const marker = (label, hue) => line(label, hue, { pointRadius: 5, showLine: false, quiet: true });

  function chart(place, description, { type = "scatter", x, y, datasets, labels }) {
    const canvas = element("canvas", { role: "img", "aria-label": description });
    place.append(element("div", { class: "interactive-chart" }, canvas));
    const family = getComputedStyle(document.body).fontFamily;
    if (type === "scatter") datasets.forEach((data, k) => (data.order = -k)); // what comes later lies on top
    const config = {
      type,
      data: { labels, datasets },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        font: { family },
        interaction: { mode: "nearest", intersect: false },
        scales: { x, y },
        plugins: {
          colors: { enabled: false },
          legend: {
            position: "top",
            align: "start",
            onClick: () => {},
            labels: {
              boxWidth: 22, boxHeight: 1, font: { size: 12 },
              filter: (item, data) => !data.datasets[item.datasetIndex].quiet,
              sort: (a, b) => a.datasetIndex - b.datasetIndex,
            },
          },
          tooltip: {
            animation: false,
            displayColors: false,
            callbacks: {
              title: () => "",
              label: (item) => {
                const name = item.dataset.label ? `${item.dataset.label}: ` : "";
                return type === "bar"
                  ? `${item.label}, ${name}${fixed(item.parsed.y)}`
                  : say(`${name}${brief(item.parsed.y)} at ${brief(item.parsed.x)}`);
              },
            },
          },
        },
      },
    };
    paint(config);
    const made = new window.Chart(canvas, config);
    charts.add(made);
    return made;
  }

  const curve = (grid, f) => grid.map((x) => ({ x, y: f(x) }));
  function set(chart, ...data) {
    data.forEach((points, k) => (chart.data.datasets[k].data = points));
    chart.update("none");
  }

  // A picture of a matrix: the larger an entry is, from 0 to 1, the stronger its colour. It is as sharp as the screen.
  function heat(place, description) {
    const canvas = element("canvas", { role: "img", "aria-label": description });
    place.append(element("div", { class: "interactive-chart interactive-matrix" }, canvas));
    let shares = [];
    function draw() {
      const dark = document.documentElement.dataset.theme === "dark";
      const side = (canvas.width = canvas.height = Math.round(canvas.clientWidth * window.devicePixelRatio) || 300);
      const ink = canvas.getContext("2d");
      ink.fillStyle = HUES[dark ? "dark" : "light"].blue;
      const cell = side / shares.length;
      shares.forEach((row, i) =>
        row.forEach((share, j) => {
          ink.globalAlpha = Math.max(0, Math.min(1, share));
          const [left, top, right, bottom] = [j, i, j + 1, i + 1].map((edge) => Math.round(edge * cell));
          ink.fillRect(left, top, right - left, bottom - top);
        }),
      );
    }
    heats.add(draw);
    new ResizeObserver(draw).observe(canvas);
    return (matrix) => {
      shares = matrix;
      draw();
    };
  }

  // Let points of a chart be dragged, by mouse or finger. `handles` gives the datasets whose points are handles, `moved`
  // takes the number of the dataset, that of the point, and where it is in the units of the axes. A finger that begins
  // beside the handles scrolls the page as ever.
  function draggable(chart, handles, moved) {
    const { canvas } = chart;
    let held = null;
    const nearest = (event) => {
      const touch = event.touches?.[0] ?? event;
      const { left, top } = canvas.getBoundingClientRect();
      const [x, y] = [touch.clientX - left, touch.clientY - top];
      const points = handles.flatMap((dataset) =>
        chart.getDatasetMeta(dataset).data.map((point, index) => {
          // A bar is held anywhere above its foot, a point near its middle.
          const bar = point.width !== undefined;
          const far = bar ? Math.abs(x - point.x) - point.width / 2 : Math.hypot(x - point.x, y - point.y);
          return { dataset, index, radius: point.options.radius, far: bar && y > point.base ? Infinity : far };
        }),
      );
      return points.filter(({ far, radius }) => far < 18 && radius !== 0).sort((a, b) => a.far - b.far)[0] ?? null;
    };
    const follow = (event) => {
      const { left, top } = canvas.getBoundingClientRect();
      const { x, y } = chart.scales;
      const at = { x: x.getValueForPixel(event.clientX - left), y: y.getValueForPixel(event.clientY - top) };
      moved(held.dataset, held.index, at);
    };
    canvas.addEventListener("touchstart", (event) => nearest(event) && event.preventDefault(), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      held = nearest(event);
      if (!held) return;
      canvas.setPointerCapture(event.pointerId);
      follow(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (held) follow(event);
      else canvas.style.cursor = nearest(event) ? "grab" : "";
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (held = null));
  }

  // --- the frame of a figure: controls, charts, numbers --------------------------------------------

  let count = 0;
  // A slider, or a list to choose from. `of` turns the slider's position into the value, `show` the value into words.
  function control({ key, label, options, min, max, step, value, of = (v) => v, show = (v) => fixed(v, 1) }, changed) {
    const id = `interactive-${(count += 1)}`;
    const shown = element("output", { for: id, "aria-live": "off" });
    const input = options ? element("select", { id }) : element("input", { id, type: "range", min, max, step });
    if (options) input.append(...options.map((text, k) => element("option", { value: k }, text)));
    const made = {
      key,
      start: value,
      position: () => Number(input.value),
      // Other ends of a slider, whose position stays between them. One that has nothing to choose is out of use.
      limit(low, high) {
        [input.min, input.max] = [low, high];
        input.disabled = low === high;
        made.put(input.value);
      },
      box: element("div", { class: "interactive-control" }, element("label", { for: id }, label), input),
      get: () => of(Number(input.value)),
      put(position) {
        input.value = position;
        if (options) return;
        shown.textContent = show(made.get());
        input.setAttribute("aria-valuetext", shown.textContent);
      },
      reset: () => made.put(value),
    };
    if (!options) made.box.append(shown);
    input.addEventListener("input", () => {
      made.put(input.value);
      changed(key);
    });
    made.reset();
    return made;
  }

  // A table of numbers; the first column names the rows.
  function numbers(place, caption, headings, rows) {
    const cells = rows.map(() => headings.slice(1).map(() => element("td")));
    const column = (text) => (text ? element("th", { scope: "col" }, text) : element("td"));
    const row = (name, k) => element("tr", {}, element("th", { scope: "row" }, name), ...cells[k]);
    const head = element("thead", {}, element("tr", {}, ...headings.map(column)));
    const body = element("tbody", {}, ...rows.map(row));
    const made = element("table", { class: "interactive-numbers" }, element("caption", {}, caption), head, body);
    place.append(element("div", { class: "interactive-scroll" }, made));
    return (values) => values.forEach((of_row, i) => of_row.forEach((text, j) => (cells[i][j].textContent = text)));
  }

  // Where the reader has moved the figures to, in the address of the page: KIND.CONTROL=POSITION for each control that
  // is not where it began.
  const address = () => new URLSearchParams(window.location.search);
  function remember(kind, controls) {
    const known = address();
    for (const { key, position, start } of controls) {
      if (Math.abs(position() - start) < 1e-9) known.delete(`${kind}.${key}`);
      else known.set(`${kind}.${key}`, Number(position().toPrecision(6)));
    }
    const query = known.size ? `?${known}` : "";
    window.history.replaceState(window.history.state, "", `${window.location.pathname}${query}${window.location.hash}`);
  }
  function recall(kind, controls, put) {
    const known = address();
    for (const { key } of controls) {
      const position = parseFloat(known.get(`${kind}.${key}`));
      if (Number.isFinite(position)) put(key, position);
    }
  }

  // A question that the reader answers before the figure moves to where it can be seen.
  function question({ ask, options, right, because }, reveal) {
    const said = element("p", { "aria-live": "polite" });
    const buttons = options.map((text, k) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        const verdict = k === right ? "Yes." : `No: ${options[right]}.`;
        said.textContent = `${verdict} ${because}`;
        buttons.forEach((other, j) => other.classList.toggle("is-right", j === right));
        reveal();
      });
      return button;
    });
    const choice = element("div", { role: "group", "aria-label": "Your guess" }, ...buttons);
    return element("div", { class: "interactive-question" }, element("p", {}, `Guess first. ${ask}`), choice, said);
  }

  async function takeOver(figure, kind, make) {
    await Promise.all([load("chart.umd.js"), ...make.tables.map(table)]);
    const [controls, panels, results] = ["controls", "charts", "results"].map((name) =>
      element("div", { class: `interactive-${name}` }),
    );
    const status = element("p", { class: "visually-hidden", "aria-live": "polite" });
    const reset = element("button", { type: "button", class: "interactive-reset" }, "Reset");
    const link = element("button", { type: "button", class: "interactive-reset" }, "Copy link");
    const frame = { class: "interactive-live", role: "group", "aria-label": make.name };
    const put = (key, position) => {
      all[key].put(position);
      changed(key);
    };
    const reveal = () => Object.entries(make.guess.state).forEach(([key, position]) => put(key, position));
    const guess = make.guess ? [question(make.guess, reveal)] : [];
    const live = element("div", frame, ...guess, controls, panels, results, status);
    let timer;
    const all = {};
    const state = () => Object.fromEntries(Object.values(all).map((c) => [c.key, c.get()]));
    async function changed(key) {
      make.changed?.(key, state(), (other, value) => all[other].put(value), (other, ...ends) => all[other].limit(...ends));
      const summary = await update(state());
      clearTimeout(timer); // said once the reader has come to rest
      if (!key) return;
      timer = setTimeout(() => {
        status.textContent = summary;
        remember(kind, Object.values(all));
      }, 700);
    }
    for (const described of make.controls()) all[described.key] = control(described, changed);
    controls.append(...Object.values(all).map((c) => c.box), element("div", { class: "interactive-ends" }, reset, link));
    reset.addEventListener("click", () => {
      // What decides the ends of others comes first.
      Object.values(all).forEach((c) => {
        c.reset();
        make.changed?.(c.key, state(), () => {}, (other, ...ends) => all[other].limit(...ends));
      });
      changed("reset");
    });
    link.addEventListener("click", async () => {
      remember(kind, Object.values(all));
      const here = `${window.location.href.split("#")[0]}#${figure.id}`;
      window.history.replaceState(window.history.state, "", here);
      await window.navigator.clipboard?.writeText(here).catch(() => {});
      link.textContent = "Link is in the address bar";
      setTimeout(() => (link.textContent = "Copy link"), 2000);
    });
    figure.insertBefore(live, figure.querySelector("figcaption"));
    figure.classList.add("is-live");
    const update = make.build(panels, results, put);
    recall(kind, Object.values(all), (key, position) => {
      all[key].put(position);
      make.changed?.(key, state(), () => {}, (other, ...ends) => all[other].limit(...ends));
    });
    await changed();
  }

  // A figure takes over its picture when a third of it is in view: the class of the element names the figure. It waits
  // until the reader does something, so that who only opens a page does not load what moves; an address that leads to a
  // place or brings a state back is something. (The theme scrolls its own list of pages, which is nothing.)
  const ACTS = ["pointermove", "pointerdown", "wheel", "scroll", "keydown"];
  function begin(figures) {
    const nearby = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          nearby.unobserve(target);
          const kind = Object.keys(figures).find((name) => target.classList.contains(`interactive-${name}`));
          if (kind) takeOver(target, kind, figures[kind]);
        }
      },
      { threshold: 0.3 },
    );
    function observe(event) {
      if (event?.type === "scroll" && event.target !== document) return;
      for (const act of ACTS) removeEventListener(act, observe, true);
      document.querySelectorAll("figure.interactive").forEach((figure) => nearby.observe(figure));
    }
    if (location.search || location.hash) observe();
    else for (const act of ACTS) addEventListener(act, observe, { capture: true, passive: true });
  }

  // --- what describes a control -----------------------------------------------------------------

  const slider = (key, label, [min, max, step], value, more) => ({ key, label, min, max, step, value, ...more });
  const hundredths = { show: (v) => fixed(v, 2) };
  const short = (v) => String(Number(v.toPrecision(2)));
  const logarithmic = (label, key, min, max, value) =>
    slider(key, label, [min, max, 0.05], value, { of: (v) => 10 ** v, show: short });
  // A slider over the values of a table, which begins at the one with this number.
  const among = (values, key, label, value, show) =>
    slider(key, label, [0, values.length - 1, 1], value, { of: (k) => values[k], show });
  const level = (from, to, y) => curve([from, to], () => y);

  window.attentionFrame = {
    say, fixed, brief, short, interpolated, table, axis, line, marker, chart, heat, draggable, curve, set, numbers, begin,
    slider, hundredths, logarithmic, among, level,
  };
})();
