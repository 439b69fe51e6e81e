"use strict";
/* Words and tables of the report.  Texts come from result files and are only ever set as text. */
const data = JSON.parse(document.getElementById("data").textContent);

const byId = id => document.getElementById(id);
function element(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

/* ---- numbers ---- */

const hasTime = p => p.status === "done" && p.median_us > 0;
function us(x) {
  return x >= 1000 ? x.toFixed(0) : x >= 100 ? x.toFixed(1) : x.toFixed(2);
}
const ratio = x => x.toFixed(2) + "x";
const percent = x => (x >= 0 ? "+" : "") + (100 * x).toFixed(1) + " %";
const rate = x => (x / 1e9).toFixed(x < 1e11 ? 1 : 0) + " GB/s";

/* ---- problems: points that differ in variant, program and parameters only ---- */

/* "512KiB" is less than "2MiB", "4096" a number, "ring" none. */
const UNITS = { B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824, KB: 1e3, MB: 1e6, GB: 1e9, ps: 1e-6, ns: 1e-3, us: 1, ms: 1e3, s: 1e6 };
function keyNumber(text) {
  const m = /^(-?[\d.]+(?:e[+-]?\d+)?)([A-Za-z]*)$/.exec(String(text));
  return m && (m[2] === "" || UNITS[m[2]]) ? Number(m[1]) * (UNITS[m[2]] || 1) : NaN;
}
function problemKeys(p) {
  return Object.entries(p.keys).filter(([k]) => k.startsWith("problem.") && k !== "problem.kernel")
    .map(([k, v]) => [k.slice(8), v]);
}
function paramText(p) {
  const own = Object.entries(p.keys).filter(([k]) => k.startsWith("params.") && varying.has(p.kernel + k));
  return own.map(([k, v]) => k.slice(7) + "=" + v).join(" ") || "-";
}

/* Parameters that differ between points of one kernel, and problem keys that do. */
const varying = new Set(), seen = new Map();
for (const p of data.points)
  for (const [k, v] of Object.entries(p.keys)) {
    const name = p.kernel + k;
    if (!seen.has(name)) seen.set(name, v);
    else if (seen.get(name) !== v) varying.add(name);
  }
const constant = new Set(["dtype"]);

function problemText(p) {
  const keys = problemKeys(p).filter(([k]) => !constant.has(k) || varying.has(p.kernel + "problem." + k));
  return keys.map(([k, v]) => k + " " + v).join(" ");
}

const problems = [], problemOf = new Map();
for (const p of data.points) {
  const id = JSON.stringify([p.kernel, problemKeys(p), p.nodes, p.gpus_per_node, p.mode, p.keys["timing.launch"],
    p.backend, p.keys.machine]);
  let g = problemOf.get(id);
  if (!g) {
    g = { kernel: p.kernel, first: p, points: [], best: {} };
    problemOf.set(id, g);
    problems.push(g);
  }
  p.problem = g;
  g.points.push(p);
  if (hasTime(p) && (!g.best[p.program] || p.median_us < g.best[p.program].median_us)) g.best[p.program] = p;
}
function speedup(g) {
  return g.best.fused && g.best.nccl ? g.best.nccl.median_us / g.best.fused.median_us : undefined;
}
function worldText(p) {
  return p.nodes + " x " + p.gpus_per_node;
}

/* ---- published values ---- */

const SHAPE_KEYS = { seq_total: "seq", tokens: "tokens", B: "batch", D: "head_dim", I: "inter", E: "experts", topk: "top_k",
  M: "m", N: "n", K: "k" };
function shapeKeys(shape) {
  const keys = {};
  for (const part of shape.split(";")) {
    const [k, v] = part.split("=");
    if (v === undefined) keys.causal = part === "causal" ? "true" : "false";
    else if (k === "H") keys[shape.includes("tokens") ? "hidden" : "heads"] = v;
    else keys[SHAPE_KEYS[k] || k] = v;
  }
  return keys;
}
function published(p, fused) {
  const own = Object.fromEntries(problemKeys(p));
  return (data.published || []).filter(row => {
    if (row.kernel !== p.kernel || (row.system === "mKernel") !== fused) return false;
    if (!fused && !row.system.includes("cuBLAS") && !row.system.includes("NCCL")) return false;
    if (!row.hardware.startsWith(p.nodes + " nodes x " + p.gpus_per_node + " ")) return false;
    if ((row.hardware.includes("EFA")) !== ((data.runs[p.run].machine || {})["nic.kind"] === "srd")) return false;
    return Object.entries(shapeKeys(row.shape)).every(([k, v]) => own[k] === v);
  });
}
function publishedUs(row, p) {
  if (row.metric === "ms") return 1000 * Number(row.value);
  return p.tflops_per_gpu ? p.tflops_per_gpu * p.median_us / Number(row.value) : undefined;
}
function bestPublished(p, fused) {
  let best;
  for (const row of p ? published(p, fused) : []) {
    const time = publishedUs(row, p);
    if (time > 0 && (!best || time < best.us)) best = { us: time, row };
  }
  return best;
}

/* ---- measured against simulated ---- */

const isSimulated = p => p.backend === "sim";
function pairs() {
  const found = [];
  for (const m of data.points) {
    if (isSimulated(m) || !hasTime(m) || m.backend === "cpu") continue;
    const id = q => JSON.stringify([q.kernel, q.program, problemKeys(q), q.nodes, q.gpus_per_node]);
    const s = data.points.filter(q => isSimulated(q) && hasTime(q) && id(q) === id(m)).sort((a, b) => a.median_us - b.median_us)[0];
    if (s) found.push({ point: s, measured_us: m.median_us, source: m.backend });
  }
  for (const g of problems)
    for (const [program, fused] of [["fused", true], ["nccl", false]]) {
      const p = g.best[program], b = p && isSimulated(p) && bestPublished(p, fused);
      if (b) found.push({ point: p, measured_us: b.us, source: "published: " + b.row.hardware });
    }
  return found.map(x => Object.assign(x, { error: x.point.median_us / x.measured_us - 1 }));
}
const errors = pairs();
function modelError(g) {
  return errors.filter(e => e.point.problem === g && e.point.program === "fused")[0];
}

/* ---- words ---- */

function machineText(m) {
  if (!m || !m.name) return "machine not recorded";
  const parts = [m.name + (m.title ? ": " + m.title : "")];
  if (m["nvlink.rate"]) parts.push("NVLink " + m["nvlink.rate"] + " a GPU and direction");
  if (m["nic.rate"]) parts.push(m["nic.per_gpu"] + " NIC a GPU at " + m["nic.rate"] + " (" + m["nic.kind"] + ")");
  return parts.join("; ");
}
function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}
function commandText(run) {
  return Array.isArray(run.command) ? ["mkernel", ...run.command].map(quote).join(" ") : "";
}
function addRuns() {
  data.runs.forEach((run, i) => {
    const box = element("div", undefined, "run"), own = data.points.filter(p => p.run === i);
    const worlds = [...new Set(own.map(worldText))].join(", "), models = [...new Set(own.map(p => p.model).filter(Boolean))];
    box.append(element("h3", (run.scenario || run.file) + " (" + run.file + ")"));
    box.append(element("p", "Machine: " + machineText(run.machine) + "."));
    box.append(element("p", own.length + " points of " + [...new Set(own.map(p => p.kernel))].join(", ") + " on " + worlds +
      " GPUs (nodes x GPUs), backend " + run.backend + ". Times come from: " + (models.join("; ") || "not recorded") + "."));
    const error = (run.machine || {}).model_error;
    if (run.backend === "sim")
      box.append(element("p", "Simulated. Model error on this machine: " + (error || "not yet measured") + "."));
    if (run.source) box.append(element("p", "Source: " + run.source));
    box.append(element("p", "mkernel " + (run.version || "?") + " (" + (run.commit || "?").slice(0, 13) + "), " + (run.date || "no date") +
      (run.host ? ", on " + run.host.name + ": " + run.host.cpu + ", " + run.host.cores + " cores" : ""), "soft"));
    byId("runs").append(box);
  });
}
function range(list) {
  const low = Math.min(...list), high = Math.max(...list);
  return high - low < 0.005 ? ratio(low) : ratio(low) + " to " + ratio(high);
}
function addVerdict() {
  const words = [];
  for (const kernel of new Set(problems.map(g => g.kernel))) {
    const all = problems.filter(g => g.kernel === kernel).map(speedup).filter(x => x !== undefined);
    const wins = all.filter(x => x > 1);
    if (all.length === 0) continue;
    const streams = problems.filter(g => g.kernel === kernel && g.best.fused && g.best.streams);
    const behind = streams.filter(g => g.best.streams.median_us < 0.995 * g.best.fused.median_us);
    words.push(kernel + ": fused beats NCCL + cuBLAS at " + wins.length + " of " + all.length + " problems (" + range(all) + " its speed)" +
      (behind.length ? ", but trails hand-overlapped streams at " + behind.length + " of " + streams.length +
        " (" + range(streams.map(g => g.best.streams.median_us / g.best.fused.median_us)) + " their speed)" : ""));
  }
  byId("verdict").textContent = (words.join(". ") || "Nothing to compare: a fused result and one of NCCL are needed") + ".";
  const names = [...new Set(data.runs.map(r => r.scenario || r.file))];
  byId("title").textContent = "mkernel report: " + names.slice(0, 3).join(", ") + (names.length > 3 ? ", ..." : "");
  document.title = byId("title").textContent;
}

/* ---- tables ---- */

/* columns: [heading, left?, wraps?, value(row) -> text or [text, class], sort key(row)] */
function fillTable(table, columns, rows) {
  const head = element("thead"), line = element("tr"), body = element("tbody");
  columns.forEach((c, i) => {
    const th = element("th", undefined, c.left ? "left" : ""), button = element("button", c.name);
    th.scope = "col";
    button.type = "button";
    button.addEventListener("click", () => sortBy(i, th));
    th.append(button);
    line.append(th);
  });
  function draw(list) {
    body.replaceChildren(...list.map(row => {
      const tr = element("tr");
      for (const c of columns) {
        const v = c.text(row), [text, className] = Array.isArray(v) ? v : [v, ""];
        tr.append(element("td", text, (c.left ? "left " : "") + (c.wraps ? "wraps " : "") + className));
      }
      return tr;
    }));
  }
  function sortBy(i, th) {
    const up = th.getAttribute("aria-sort") !== "ascending", key = columns[i].sort || columns[i].text;
    for (const other of line.children) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => { const v = key(row); return v === undefined || v === "-" ? Infinity : v; };
    draw([...rows].sort((a, b) => {
      const x = value(a), y = value(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    }));
  }
  head.append(line);
  draw(rows);
  table.replaceChildren(head, body);
}
function timeColumn(program, name) {
  return { name, text: g => g.best[program] ? us(g.best[program].median_us) : "-",
    sort: g => g.best[program] && g.best[program].median_us };
}
/* A column where problems differ; else the same for all, which a sentence says. */
const alike = [];
function differing(name, text) {
  if (new Set(problems.map(text)).size > 1) return { name, left: true, text };
  if (text(problems[0]) !== "-") alike.push(name + " " + text(problems[0]));
  return undefined;
}
function addProblems() {
  const columns = [
    { name: "kernel", left: true, text: g => g.kernel },
    { name: "problem", left: true, text: g => problemText(g.first), sort: g => keyNumber((problemKeys(g.first)[0] || [0, 0])[1]) },
    differing("world", g => worldText(g.first)), differing("mode", g => g.first.mode || "-"), differing("backend", g => g.first.backend),
    differing("machine", g => g.first.keys.machine || "-"),
    timeColumn("fused", "fused us"), timeColumn("unfused", "unfused us"), timeColumn("streams", "streams us"),
    timeColumn("nccl", "NCCL us"),
    { name: "speed-up", sort: speedup, text: g => {
      const x = speedup(g);
      return x === undefined ? "-" : [ratio(x), x > 1.005 ? "good" : x < 0.995 ? "bad" : ""];
    } },
    { name: "fused published us", text: g => { const b = bestPublished(g.best.fused, true); return b ? us(b.us) : "-"; } },
    { name: "NCCL published us", text: g => { const b = bestPublished(g.best.nccl, false); return b ? us(b.us) : "-"; } },
    { name: "error of fused", text: g => { const e = modelError(g); return e ? percent(e.error) : "-"; },
      sort: g => (modelError(g) || {}).error },
    { name: "best split", left: true, wraps: true, text: g => g.best.fused ? paramText(g.best.fused) : "-" },
    { name: "fused TFLOP/s", text: g => g.best.fused && g.best.fused.tflops_per_gpu ? g.best.fused.tflops_per_gpu.toFixed(1) : "-",
      sort: g => g.best.fused && g.best.fused.tflops_per_gpu },
  ].filter(Boolean);
  const used = columns.filter((c, i) => i < 2 || problems.some(g => { const t = c.text(g); return (Array.isArray(t) ? t[0] : t) !== "-"; }));
  fillTable(byId("problems"), used, problems);
  byId("alike").textContent = alike.length ? "All: " + alike.join(", ") + "." : "";
}
function spreadText(p) {
  return p.samples > 1 ? us(p.low_us) + " .. " + us(p.high_us) + " (" + p.samples + ")" : "-";
}
function addEvery() {
  byId("point-count").textContent = data.points.length;
  const columns = [
    { name: "kernel", left: true, text: p => p.kernel },
    { name: "problem", left: true, text: problemText, sort: p => keyNumber((problemKeys(p)[0] || [0, 0])[1]) },
    { name: "world", text: worldText },
    { name: "variant", left: true, text: p => p.variant },
    { name: "program", left: true, text: p => p.program },
    { name: "parameters", left: true, text: paramText },
    { name: "mode", left: true, text: p => p.mode || "-" },
    { name: "median us", text: p => hasTime(p) ? us(p.median_us) : "-", sort: p => p.median_us },
    { name: "middle half us (samples)", text: spreadText },
    { name: "TFLOP/s per GPU", text: p => p.tflops_per_gpu ? p.tflops_per_gpu.toFixed(1) : "-", sort: p => p.tflops_per_gpu },
    { name: "busbw GB/s", text: p => p.busbw_gb_per_s ? p.busbw_gb_per_s.toFixed(1) : "-", sort: p => p.busbw_gb_per_s },
    { name: "over NCCL", text: p => p.speedup_over_nccl ? ratio(p.speedup_over_nccl) : "-", sort: p => p.speedup_over_nccl },
    { name: "verdict", left: true, text: p => [p.verdict || p.status || "-", p.verdict === "best" ? "good" : hasTime(p) ? "" : "bad"] },
    { name: "proved", left: true, text: p => p.verified || "-" },
    { name: "model", left: true, text: p => [p.model, p.choice].filter(Boolean).join(", ") || "-" },
  ];
  const once = () => { if (!byId("all").firstChild) fillTable(byId("all"), columns, data.points); };
  byId("every").addEventListener("toggle", once);
  window.addEventListener("beforeprint", () => { once(); byId("every").open = data.points.length <= 100; });
}
function addRepeat() {
  data.runs.forEach(run => {
    const command = commandText(run);
    if (!command) return;
    byId("repeat").append(element("p", run.file + ":"), element("pre", command));
    if (!run.scenario_text) return;
    const details = element("details"), pre = element("pre", run.scenario_text);
    details.append(element("summary", "The scenario file " + (run.scenario_path || "") + " (" + (run.scenario_hash || "") + ")"), pre);
    byId("repeat").append(details);
  });
}

/* report.html?only=timeline shows that part alone, for pictures. */
function showOnly(name) {
  const part = name && byId("h-" + name);
  if (!part) return;
  for (const section of document.querySelectorAll("main > section"))
    section.classList.toggle("away", !section.contains(part));
  document.querySelector("header").classList.add("away");
}

addVerdict();
addRuns();
addProblems();
addEvery();
addRepeat();
showOnly(new URLSearchParams(location.search).get("only"));
