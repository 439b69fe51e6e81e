"use strict";
/* Plots, drawn by Chart.js once the words stand.  Series differ by colour and by the form of their points. */
const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7B61C4", "#6B8E23", "#B03A5B"];
const FORMS = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "cross", "rectRounded", "dash", "line"];
const SERIES_MAX = 10;
const PROGRAM_NAMES = { fused: "fused", unfused: "unfused", streams: "streams", nccl: "NCCL + cuBLAS" };
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const charts = [];
let printing = false;

function theme() {
  const style = getComputedStyle(document.documentElement);
  return printing ? { text: "#000", line: "#ccc" }
    : { text: style.getPropertyValue("--text").trim(), line: style.getPropertyValue("--line").trim() };
}
function paint(chart) {
  const t = theme();
  for (const scale of Object.values(chart.options.scales || {})) {
    scale.ticks.color = t.text;
    scale.grid.color = t.line;
    scale.title.color = t.text;
  }
  chart.options.plugins.legend.labels.color = t.text;
}
function repaint() {
  for (const c of charts) { paint(c); c.update("none"); }
}
dark.addEventListener("change", repaint);
window.addEventListener("beforeprint", () => { printing = true; repaint(); for (const c of charts) c.resize(); });
window.addEventListener("afterprint", () => { printing = false; repaint(); for (const c of charts) c.resize(); });

/* ---- one plot ---- */

function axis(title, more) {
  return Object.assign({ title: { display: true, text: title }, ticks: { maxRotation: 40 }, grid: {} }, more);
}
/* `text` is what a reader who does not see the plot is told. */
function addPlot(parent, title, note, text, config, tall) {
  const box = element("figure", undefined, "plot"), holder = element("div", undefined, "canvas" + (tall ? " tall" : ""));
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title + ". " + text);
  holder.append(canvas);
  box.append(element("h3", title), holder);
  if (note) box.append(element("p", note));
  parent.append(box);
  config.options = Object.assign({ animation: false, responsive: true, maintainAspectRatio: false,
    interaction: { mode: "nearest", intersect: false } }, config.options);
  config.options.plugins = Object.assign({ legend: { labels: { usePointStyle: true, boxHeight: 7 } } }, config.options.plugins);
  config.options.plugins.legend = Object.assign({ labels: {} }, config.options.plugins.legend);
  paintConfig(config);
  charts.push(new Chart(canvas, config));
}
function paintConfig(config) {
  const t = theme();
  config.options.plugins.legend.labels.color = t.text;
  for (const s of Object.values(config.options.scales || {})) {
    s.ticks = Object.assign({ color: t.text }, s.ticks);
    s.grid = Object.assign({ color: t.line }, s.grid);
    s.title = Object.assign({ color: t.text }, s.title);
  }
}
function clearPlots(parent) {
  for (let i = charts.length - 1; i >= 0; i--)
    if (parent.contains(charts[i].canvas)) charts.splice(i, 1)[0].destroy();
  parent.replaceChildren();
}
function line(label, points, i, more) {
  return Object.assign({ label, data: points, borderColor: PALETTE[i % PALETTE.length], backgroundColor: PALETTE[i % PALETTE.length],
    pointStyle: FORMS[i % FORMS.length], pointRadius: 4, borderWidth: 1.8, tension: 0 }, more);
}

/* ---- against size ---- */

/* The first problem key that varies is the axis; keys that do not follow from it tell series apart. */
function sizeKey(list) {
  const keys = problemKeys(list[0].first).map(([k]) => k);
  const values = (g, k) => Object.fromEntries(problemKeys(g.first))[k];
  const numeric = keys.filter(k => list.every(g => Number.isFinite(keyNumber(values(g, k)))));
  const x = numeric.find(k => new Set(list.map(g => values(g, k))).size > 1) || numeric[0];
  const follows = k => {
    const at = new Map();
    return list.every(g => {
      const v = values(g, x), other = values(g, k);
      if (!at.has(v)) at.set(v, other);
      return at.get(v) === other;
    });
  };
  const apart = keys.filter(k => k !== x && !follows(k));
  return { x, value: g => keyNumber(values(g, x)), more: g => {
    const words = apart.map(k => k + " " + values(g, k));
    if (new Set(list.map(h => worldText(h.first))).size > 1) words.push(worldText(g.first));
    if (new Set(list.map(h => h.first.mode)).size > 1) words.push(g.first.mode);
    if (new Set(list.map(h => h.first.backend)).size > 1) words.push(g.first.backend);
    if (new Set(list.map(h => h.first.keys.machine)).size > 1) words.push(g.first.keys.machine || "");
    return words.join(", ");
  } };
}
function seriesOf(list, key, value) {
  const all = new Map();
  for (const g of list)
    for (const [name, y] of value(g)) {
      const label = [name, key.more(g)].filter(Boolean).join(", ");
      if (!(y > 0)) continue;
      if (!all.has(label)) all.set(label, []);
      all.get(label).push({ x: key.value(g), y });
    }
  for (const points of all.values()) points.sort((a, b) => a.x - b.x);
  return [...all];
}
const programs = g => Object.keys(PROGRAM_NAMES).concat(Object.keys(g.best).filter(p => !PROGRAM_NAMES[p])).filter(p => g.best[p]);
function sizePlot(parent, list, key, title, unit, value, log, note) {
  const all = seriesOf(list, key, value), shown = all.slice(0, SERIES_MAX);
  if (shown.length === 0) return;
  const cut = all.length > shown.length ? " The first " + shown.length + " of " + all.length + " series." : "";
  const xs = [...new Set(shown.flatMap(([, pts]) => pts.map(p => p.x)))].sort((a, b) => a - b);
  addPlot(parent, title, (note || "") + cut, shown.map(([n, pts]) => n + ": " + pts.slice(0, 8).map(p => p.x + " " + p.y.toPrecision(4)).join(", ")).join("; "), {
    type: "line",
    data: { datasets: shown.map(([n, pts], i) => line(n, pts, i)) },
    options: { scales: {
      x: axis(key.x, { type: xs.length > 1 && xs[xs.length - 1] / xs[0] > 3 ? "logarithmic" : "linear",
        ticks: { callback: v => Number(v).toLocaleString("en"), autoSkip: true, maxTicksLimit: 8 },
        afterBuildTicks: a => { if (xs.length <= 10) a.ticks = xs.map(value => ({ value })); } }),
      y: axis(unit, { type: log ? "logarithmic" : "linear", beginAtZero: !log, ticks: { autoSkip: true, maxTicksLimit: 7 } }),
    } },
  });
}

/* ---- the plots of a kernel ---- */

function landscape(parent, list, kernel) {
  const params = [...varying].filter(k => k.startsWith(kernel + "params.")).map(k => k.slice(kernel.length));
  for (const k of params) {
    const all = [];
    for (const g of list) {
      const at = new Map();
      for (const p of g.points)
        if (p.program === "fused" && hasTime(p) && p.keys[k] !== undefined && !(at.get(p.keys[k]) < p.median_us))
          at.set(p.keys[k], p.median_us);
      if (at.size > 1) all.push([problemText(g.first) + (list.length > 1 ? ", " + worldText(g.first) : ""), at]);
    }
    if (all.length === 0) continue;
    const labels = [...new Set(all.flatMap(([, at]) => [...at.keys()]))];
    if (labels.every(v => Number.isFinite(keyNumber(v)))) labels.sort((a, b) => keyNumber(a) - keyNumber(b));
    const best = at => Math.min(...at.values());
    addPlot(parent, "Split landscape: " + k.slice(7), "Time over the best of the same problem; the other parameters at their best." +
      (all.length > SERIES_MAX ? " The first " + SERIES_MAX + " of " + all.length + " problems." : ""),
      all.slice(0, SERIES_MAX).map(([n, at]) => n + ": best at " + [...at].sort((a, b) => a[1] - b[1])[0][0]).join("; "), {
        type: "line",
        data: { labels, datasets: all.slice(0, SERIES_MAX).map(([n, at], i) =>
          line(n, labels.map(v => at.has(v) ? at.get(v) / best(at) : null), i, { spanGaps: true })) },
        options: { scales: { x: axis(k.slice(7)), y: axis("time / best") } },
      });
  }
}
function validation(parent, list, key) {
  const own = errors.filter(e => list.includes(e.point.problem));
  if (own.length === 0) return;
  const all = new Map();
  for (const e of own) {
    const label = PROGRAM_NAMES[e.point.program] + ", " + e.source;
    if (!all.has(label)) all.set(label, []);
    all.get(label).push({ x: key.value(e.point.problem), y: 100 * e.error });
  }
  addPlot(parent, "Validation: simulated against measured or published", "Error of the simulated time; 0 is exact.",
    own.map(e => problemText(e.point) + " " + percent(e.error)).slice(0, 12).join("; "), {
      type: "line",
      data: { datasets: [...all].map(([n, pts], i) => line(n, pts.sort((a, b) => a.x - b.x), i)) },
      options: { scales: { x: axis(key.x, { type: "logarithmic" }), y: axis("error %") } },
    });
}
function drawKernel(kernel) {
  const parent = byId("plots"), list = problems.filter(g => g.kernel === kernel), key = sizeKey(list);
  const each = f => g => programs(g).map(p => [PROGRAM_NAMES[p] || p, f(g.best[p])]);
  clearPlots(parent);
  sizePlot(parent, list, key, "Time", "us", each(p => p.median_us), true, "Median of the fastest point of each kind.");
  sizePlot(parent, list, key, "Speed", "TFLOP/s per GPU", each(p => p.tflops_per_gpu), false, "");
  sizePlot(parent, list, key, "Bus bandwidth", "GB/s", each(p => p.tflops_per_gpu ? undefined : p.busbw_gb_per_s), false, "As nccl-tests defines it.");
  sizePlot(parent, list, key, "Speed-up over NCCL + cuBLAS", "times", g => g.best.nccl ? programs(g).filter(p => p !== "nccl")
    .map(p => [PROGRAM_NAMES[p] || p, g.best.nccl.median_us / g.best[p].median_us]) : [], false, "Above 1 is faster than NCCL + cuBLAS.");
  landscape(parent, list, kernel);
  validation(parent, list, key);
}

/* ---- one problem ---- */

const shortName = p => p.variant + (paramText(p) === "-" ? "" : " " + paramText(p));
/* The fastest and the slowest fused point and the unfused one say enough. */
function telling(g, what) {
  const list = g.points.filter(p => hasTime(p) && p[what] && p[what].length), fused = list.filter(p => p.program === "fused");
  fused.sort((a, b) => a.median_us - b.median_us);
  const some = [fused[0], fused[fused.length - 1], ...list.filter(p => p.program !== "fused").slice(0, 2)];
  return [...new Set(some.filter(Boolean))];
}
function crewPlot(parent, g) {
  const bars = [];
  for (const p of telling(g, "crews"))
    for (const c of p.crews) {
      const waits = Object.values(c.waiting_us || {}).reduce((a, b) => a + b, 0), sum = c.busy_us + waits + c.idle_us;
      if (sum > 0) bars.push({ name: shortName(p) + ": " + c.name, lines: [shortName(p), c.workers + " x " + c.name], c, sum });
    }
  if (bars.length === 0) return;
  const causes = [...new Set(bars.flatMap(b => Object.keys(b.c.waiting_us || {})))];
  const share = f => bars.map(b => 100 * (f(b.c) || 0) / b.sum);
  const set = (label, values, color) => ({ label, data: values, backgroundColor: color, barPercentage: 0.8 });
  addPlot(parent, "Where the time went, by crew", "Share of the workers' time, all ranks; of the fastest and the slowest fused point and the unfused one. Waits by the flag or resource waited for.",
    bars.map(b => b.name + ": busy " + (100 * b.c.busy_us / b.sum).toFixed(0) + " %").join("; "), {
      type: "bar",
      data: { labels: bars.map(b => b.lines), datasets: [set("busy", share(c => c.busy_us), PALETTE[2]),
        ...causes.map((k, i) => set("wait " + k, share(c => (c.waiting_us || {})[k]), [PALETTE[1], PALETTE[4], PALETTE[3], PALETTE[7], PALETTE[6], PALETTE[9]][i % 6])),
        set("nothing left", share(c => c.idle_us), "#9a9a9a")] },
      options: { indexAxis: "y", plugins: { legend: { labels: { usePointStyle: true, boxHeight: 7, pointStyle: "rect" } } },
        scales: { x: axis("% of worker time", { stacked: true, max: 100 }), y: axis("", { stacked: true }) } },
    }, bars.length > 5);
}
function linkPlot(parent, g) {
  const list = telling(g, "links");
  if (list.length === 0) return;
  const names = [...new Set(list.flatMap(p => p.links.map(l => l.name)))];
  const of = (p, n) => (p.links.find(l => l.name === n) || { mean_busy: 0 }).mean_busy * 100;
  addPlot(parent, "Use of links", "Share of capacity over the whole run, mean over all ports of a kind.",
    list.map(p => shortName(p) + ": " + p.links.map(l => l.name + " " + (100 * l.mean_busy).toFixed(0) + " %").join(", ")).join("; "), {
      type: "bar",
      data: { labels: names, datasets: list.map((p, i) => ({ label: shortName(p), data: names.map(n => of(p, n)), backgroundColor: PALETTE[i % PALETTE.length] })) },
      options: { scales: { x: axis(""), y: axis("% busy", { beginAtZero: true, suggestedMax: 100 }) } },
    });
}
function contestants(parent, g) {
  const list = g.points.filter(hasTime).slice(0, 16);
  if (list.length === 0) return;
  addPlot(parent, "Contestants", list.some(p => p.samples > 1) ? "Median; the table below has the spread." : "One simulated time each.",
    list.map(p => shortName(p) + ": " + us(p.median_us) + " us").join("; "), {
      type: "bar",
      data: { labels: list.map(shortName), datasets: [{ label: "us", data: list.map(p => p.median_us),
        backgroundColor: list.map(p => PALETTE[Math.max(0, ["fused", "unfused", "streams", "nccl"].indexOf(p.program))]) }] },
      options: { indexAxis: "y", plugins: { legend: { display: false } }, scales: { x: axis("us", { beginAtZero: true }), y: axis("") } },
    });
}
function drawProblem(g) {
  clearPlots(byId("detail"));
  contestants(byId("detail"), g);
  crewPlot(byId("detail"), g);
  linkPlot(byId("detail"), g);
}

/* ---- timeline ---- */

/* "gemm #96" is of kind gemm, "wait ready[4]" waits for ready */
const sliceKind = name => name.replace(/( #|\[).*$/, "");
function drawTimeline(t) {
  const kinds = [...new Set(t.slices.map(s => sliceKind(s[4])))].sort((a, b) => a.startsWith("wait") - b.startsWith("wait"));
  const taskColors = [PALETTE[0], PALETTE[2], PALETTE[5], PALETTE[7], PALETTE[8]], waitColors = [PALETTE[1], PALETTE[4], PALETTE[3], PALETTE[9], "#9a9a9a"];
  let tasks = 0, waits = 0;
  const sets = kinds.map(kind => ({
    label: kind, grouped: false, barPercentage: 0.95, categoryPercentage: 0.95, minBarLength: 1,
    borderColor: "rgba(255,255,255,.75)", borderWidth: { left: 1 }, borderSkipped: false,
    backgroundColor: kind.startsWith("wait") ? waitColors[waits++ % 5] : taskColors[tasks++ % 5],
    data: t.slices.filter(s => sliceKind(s[4]) === kind).map(s => ({ x: [s[1], s[1] + s[2]], y: t.threads[s[0]], name: s[4] })),
  }));
  byId("timeline").hidden = false;
  byId("timeline-text").textContent = t.title + ", from " + t.file + ": at most four workers of a crew" +
    (t.cut ? "; the first " + t.slices.length + " slices, " + t.cut + " later ones are not shown" : "") + ". The trace file shows all of it.";
  addPlot(byId("timeline-plot"), "Tasks and waits over time", "", kinds.length + " kinds of slices on " + t.threads.length + " workers.", {
    type: "bar",
    data: { labels: t.threads, datasets: sets },
    options: { indexAxis: "y", interaction: { mode: "nearest", intersect: true, axis: "xy" },
      plugins: { legend: { labels: { usePointStyle: true, boxHeight: 7, pointStyle: "rect" } },
        tooltip: { callbacks: { title: items => items[0].raw.name,
          label: item => item.raw.x[0].toFixed(2) + " to " + item.raw.x[1].toFixed(2) + " us: " + (item.raw.x[1] - item.raw.x[0]).toFixed(2) + " us" } } },
      scales: { x: axis("us", { min: 0 }), y: axis("") } },
  }, true);
}

/* ---- all of it, each step a task of its own so that the page stays responsive.  Not by animation frames: a browser
   that shows no window may never give one ---- */

function fillSelect(select, names, choose) {
  names.forEach((n, i) => { const o = element("option", n); o.value = i; select.append(o); });
  select.addEventListener("change", () => choose(Number(select.value)));
}
const kernels = [...new Set(problems.map(g => g.kernel))];
fillSelect(byId("kernel"), kernels, i => drawKernel(kernels[i]));
fillSelect(byId("problem"), problems.map(g => g.kernel + ": " + problemText(g.first) + ", " + worldText(g.first) + ", " + (g.first.mode || g.first.backend)),
  i => drawProblem(problems[i]));
const steps = [() => drawKernel(kernels[0]), () => {
  const last = problems.length - 1;
  byId("problem").value = last;
  drawProblem(problems[last]);
}];
if (data.timeline) steps.push(() => drawTimeline(data.timeline));
setTimeout(function next() {
  const step = steps.shift();
  if (step) { step(); setTimeout(next); }
  else document.documentElement.dataset.drawn = "yes"; /* tests wait for it */
});
