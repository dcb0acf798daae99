// The page of distributions: a box and a curve for each group of runs.

const page = document.getElementById("page");

const QUANTILES = ["min", "p10", "p25", "median", "p75", "p90", "max"];
const TITLES = {
  completion_s: "Completion time", bytes: "Bytes read", packets_sent: "packets sent", packets_lost: "packets lost",
  packets_spurious: "packets lost in error", bytes_sent: "bytes sent", ack_bytes: "bytes of ACK frames", acks_sent: "ACK frames sent",
  pto_count: "probe timeouts", rtt_min_ms: "smallest round-trip time", rtt_max_ms: "largest round-trip time",
  cwnd_max: "largest congestion window", connections_accepted: "connections accepted",
};
function titleOf(figure) {
  const [side, rest] = figure.includes(".") ? figure.split(/\.(.*)/s) : ["", figure];
  const name = TITLES[rest] || rest;
  return side ? side.charAt(0).toUpperCase() + side.slice(1) + ": " + name : name;
}
// The unit of a figure by its name, and what its values are to be multiplied with for it.
function unitOf(figure) {
  if (figure.endsWith("_s")) return ["micros", 1e6];
  if (figure.endsWith("_ms")) return ["micros", 1e3];
  if (/bytes|cwnd/.test(figure)) return ["bytes", 1];
  return ["plain", 1];
}

const hidden = new Set();
let figure = data.figures[0], charts = [];
// Colours tell controllers, or each group from the others.
const controllers = [...new Set(data.groups.map((group) => group.controller))];
let byController = controllers.length > 1;
const colorOf = (index) => theme.color(byController ? controllers.indexOf(data.groups[index].controller) : index);

// The settings that are numbers and differ between groups: what a figure can be drawn against.
function valueOf(group, key) {
  const own = group.settings.find(([name]) => name === key);
  const value = own === undefined || own[1].trim() === "" ? NaN : Number(own[1]);
  return Number.isFinite(value) ? value : null;
}
const numeric = [...new Set(data.groups.flatMap((group) => group.settings.map(([key]) => key)))].filter((key) =>
  new Set(data.groups.map((group) => valueOf(group, key)).filter((value) => value !== null)).size > 1);
let setting = numeric[0], logarithmic = { x: false, y: false };
const narrow = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
// A setting in so many characters: the tables before its name go first, then the end of the name, its value last.
const narrowSetting = (text, length) => {
  const at = text.indexOf("=");
  if (text.length <= length || at < 0) return narrow(text, length);
  const value = narrow(text.slice(at), Math.max(2, length - 2));
  return narrow(text.slice(0, at).split(".").pop(), Math.max(2, length - value.length)) + value;
};

function shownGroups() {
  return data.groups.map((group, index) => ({ group, index, summary: group.figures[figure] })).filter(({ index, summary }) => summary && !hidden.has(index));
}

function card(title, text, plot, ...content) {
  return element("section", { class: "card", "data-chart": title }, element("div", { class: "head" }, element("h2", {}, title), element("span", { class: "unit" }, text), plot && pictureButton(() => plot, title)), ...content);
}

// Whiskers from the 10th to the 90th percentile, a box between the quartiles, dots for the extremes.
function drawBoxes(groups, factor) {
  return (plot) => {
    const { ctx } = plot, ratio = devicePixelRatio;
    const slot = Math.abs(plot.valToPos(1, "x", true) - plot.valToPos(0, "x", true)), half = Math.min(26 * ratio, slot * 0.3);
    ctx.save();
    groups.forEach(({ summary, index }, place) => {
      const x = plot.valToPos(place, "x", true), y = (value) => plot.valToPos(value * factor, "y", true), color = colorOf(index);
      ctx.strokeStyle = color; ctx.fillStyle = color; ctx.lineWidth = 1.5 * ratio;
      const line = (x0, y0, x1, y1) => { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); };
      line(x, y(summary.p10), x, y(summary.p25)); line(x, y(summary.p75), x, y(summary.p90));
      line(x - half / 2, y(summary.p10), x + half / 2, y(summary.p10)); line(x - half / 2, y(summary.p90), x + half / 2, y(summary.p90));
      const top = y(summary.p75), height = y(summary.p25) - top;
      ctx.globalAlpha = 0.22; ctx.fillRect(x - half, top, 2 * half, height); ctx.globalAlpha = 1;
      ctx.strokeRect(x - half, top, 2 * half, height);
      ctx.lineWidth = 3 * ratio; line(x - half, y(summary.median), x + half, y(summary.median));
      for (const value of [summary.min, summary.max]) { ctx.beginPath(); ctx.arc(x, y(value), 2.5 * ratio, 0, 7); ctx.fill(); }
    });
    ctx.restore();
  };
}

function boxes(groups, width) {
  const [unit, factor] = unitOf(figure), holder = element("div", {});
  const values = groups.flatMap(({ summary }) => [summary.min, summary.max]).map((value) => value * factor);
  const top = Math.max(...values), bottom = Math.min(...values), zero = bottom < 0.5 * top || top === bottom;
  const room = Math.max(6, Math.floor((width - 100) / (groups.length + 0.2) / 7.5) - 1);
  const lines = Math.max(1, ...groups.map(({ group }) => group.name.split(" · ").length));
  const plot = new uPlot({
    width, height: 330, padding: [12, 14, 0, 0], legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false, range: () => [-0.6, groups.length - 0.4] }, y: { range: () => (zero ? [0, top * 1.06 || 1] : [bottom - (top - bottom) * 0.1, top + (top - bottom) * 0.1]) } },
    axes: [axis("plain", { grid: { show: false }, splits: () => groups.map((_, place) => place), values: () => groups.map(({ group }) => group.name.split(" · ").map((part) => narrowSetting(part, room)).join("\n")), size: 20 + 18 * lines }), axis(unit, { size: 86 })],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    hooks: { draw: [drawBoxes(groups, factor)] },
  }, [groups.map((_, place) => place), groups.map(({ summary }) => summary.median * factor)], holder);
  return { plot, holder };
}

function curves(groups, width) {
  const [unit, factor] = unitOf(figure), holder = element("div", {});
  const tables = groups.map(({ summary }) => {
    // The share of runs that are at or below a value; equal values are one step.
    const xs = [], ys = [], n = summary.steps.length;
    summary.steps.forEach((value, place) => {
      if (xs.length && xs[xs.length - 1] === value * factor) ys[ys.length - 1] = (place + 1) / n;
      else { xs.push(value * factor); ys.push((place + 1) / n); }
    });
    return [[xs[0] - Math.abs(xs[0] || 1) * 1e-9, ...xs], [0, ...ys]];
  });
  const plot = new uPlot({
    width, height: 330, padding: [12, 14, 0, 0], legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: false }, y: { range: () => [0, 1.02] } },
    axes: [axis(unit, { size: 34, space: 90 }), axis("plain", { size: 60, values: (chart, splits) => splits.map((split) => Math.round(split * 100) + " %") })],
    series: [{}, ...groups.map(({ index }) => ({ stroke: () => colorOf(index), width: 2, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }))],
  }, tables.length ? uPlot.join(tables) : [[]], holder);
  return { plot, holder };
}

function table() {
  const [unit, factor] = unitOf(figure), text = (value) => UNITS[unit](value * factor);
  const rows = data.groups.map((group, index) => {
    const summary = group.figures[figure];
    const key = element("button", { class: "key", "aria-pressed": String(!hidden.has(index)), "data-group": String(index), title: "Show or hide", onclick: () => { if (!hidden.delete(index)) hidden.add(index); rebuild(); } }, element("i", { color: colorOf(index) }), element("span", {}, group.name));
    const cells = summary ? [summary.n, ...QUANTILES.map((name) => text(summary[name])), text(summary.mean)] : ["0", ...QUANTILES.map(() => ""), ""];
    return element("tr", {}, element("td", {}, key), ...cells.map((cell) => element("td", {}, String(cell))), element("td", {}, group.failed ? String(group.failed) : ""));
  });
  const names = ["n", "min", "p10", "p25", "median", "p75", "p90", "max", "mean", "failed"];
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "group"), ...names.map((name) => element("th", {}, name)))), element("tbody", {}, ...rows)));
}

// The lines of the chart against a setting: groups that differ in nothing else.
function linesOf(groups, factor) {
  const lines = new Map();
  groups.forEach(({ group, summary }) => {
    const x = valueOf(group, setting);
    // Of few runs there is no interval.
    const sure = summary.median_low !== null, [low, high] = sure ? [summary.median_low, summary.median_high] : [summary.median, summary.median];
    if (x === null || (logarithmic.x && x <= 0) || (logarithmic.y && low * factor <= 0)) return;
    const others = group.settings.filter(([key]) => key !== setting).map(([key, value]) => key.split(".").pop() + "=" + value);
    const scenario = new Set(data.groups.map((one) => one.scenario)).size > 1 ? [group.scenario] : [];
    const name = [...scenario, group.controller, ...others, ...group.origin].filter((part) => part).join(" · ");
    if (!lines.has(name)) lines.set(name, { name, controller: group.controller, points: [] });
    lines.get(name).points.push({ x, y: summary.median * factor, low: low * factor, high: high * factor, sure });
  });
  const all = [...lines.values()];
  const DASHES = [[], [9, 5], [2, 4], [9, 4, 2, 4]];
  all.forEach((line, place) => {
    line.points.sort((a, b) => a.x - b.x);
    const twins = all.slice(0, place).filter((other) => other.controller === line.controller).length;
    line.color = () => theme.color(byController ? controllers.indexOf(line.controller) : place);
    line.dash = byController ? DASHES[twins % DASHES.length] : [];
  });
  return all;
}

// What the points of these lines are.
function pointsAre(lines) {
  const unsure = lines.flatMap((line) => line.points).filter(({ sure }) => !sure).length;
  const text = "medians with their confidence intervals of 95 %";
  if (!unsure) return text;
  return unsure === lines.flatMap((line) => line.points).length ? "medians; too few runs for an interval" : text + "; too few runs for an interval where there is none";
}

function drawIntervals(lines) {
  return (plot) => {
    const { ctx } = plot, ratio = devicePixelRatio, half = 4 * ratio;
    ctx.save();
    lines.forEach((line) => line.points.forEach(({ x, y, low, high, sure }) => {
      const left = plot.valToPos(x, "x", true), at = (value) => plot.valToPos(value, "y", true);
      ctx.strokeStyle = ctx.fillStyle = line.color(); ctx.lineWidth = 1.5 * ratio;
      if (sure) {
        ctx.beginPath();
        ctx.moveTo(left, at(low)); ctx.lineTo(left, at(high));
        [low, high].forEach((value) => { ctx.moveTo(left - half, at(value)); ctx.lineTo(left + half, at(value)); });
        ctx.stroke();
      }
      ctx.beginPath(); ctx.arc(left, at(y), 3 * ratio, 0, 7); ctx.fill();
    }));
    ctx.restore();
  };
}

function against(groups, width) {
  const [unit, factor] = unitOf(figure), holder = element("div", {}), lines = linesOf(groups, factor);
  const points = lines.flatMap((line) => line.points);
  const spread = (values, log) => {
    if (!values.length) return log ? [1, 10] : [0, 1];
    const low = Math.min(...values), high = Math.max(...values);
    if (log) return [low / 1.15, high * 1.15];
    return low >= 0 && low < 0.5 * high ? [0, high * 1.06] : [low - (high - low || 1) * 0.1, high + (high - low || 1) * 0.1];
  };
  const xs = points.map(({ x }) => x), ys = points.flatMap(({ low, high }) => [low, high]);
  const plot = new uPlot({
    width, height: 360, padding: [12, 24, 0, 0], legend: { show: false }, cursor: { show: false },
    scales: {
      x: { time: false, distr: logarithmic.x ? 3 : 1, range: () => spread(xs, logarithmic.x) },
      y: { distr: logarithmic.y ? 3 : 1, range: () => spread(ys, logarithmic.y) },
    },
    axes: [
      logarithmic.x ? logAxis({ size: 34 }) : axis("plain", { size: 34, space: 60 }),
      // The ticks of a logarithmic axis differ too much for one unit.
      logarithmic.y ? logAxis({ size: 86, values: (chart, splits) => splits.map(UNITS[unit]) }) : axis(unit, { size: 86 }),
    ],
    series: [{}, ...lines.map((line) => ({ stroke: line.color, width: 2, dash: line.dash, spanGaps: true, points: { show: false } }))],
    hooks: { draw: [drawIntervals(lines)] },
  }, lines.length ? uPlot.join(lines.map((line) => [line.points.map(({ x }) => x), line.points.map(({ y }) => y)])) : [[]], holder);
  const key = (line) => element("span", { class: "key" }, element("i", { color: line.color() }), element("span", {}, line.name));
  const box = (axisName) => {
    const input = element("input", { type: "checkbox", onchange: () => { logarithmic[axisName] = input.checked; rebuild(); } });
    input.checked = logarithmic[axisName];
    return element("label", {}, input, " log " + axisName);
  };
  const choice = element("select", { id: "setting", "aria-label": "Setting", onchange: () => { setting = choice.value; rebuild(); } }, ...numeric.map((name) => element("option", { value: name }, name)));
  choice.value = setting;
  const tools = element("div", { class: "keys" }, choice, box("x"), box("y"), ...lines.map(key));
  return { plot, text: pointsAre(lines), holder: element("div", {}, tools, holder) };
}

const area = element("div", {});
function rebuild() {
  charts.forEach((plot) => plot.destroy());
  const groups = shownGroups(), two = page.clientWidth > 1150;
  const width = Math.max(320, (two ? (page.clientWidth - 44 - 14) / 2 : page.clientWidth - 44) - 30);
  if (!figure) { area.replaceChildren(element("p", { class: "card empty" }, "No run has a figure to show.")); charts = []; return; }
  const box = boxes(groups, width), curve = curves(groups, width);
  const line = numeric.length ? against(groups, Math.max(320, page.clientWidth - 74)) : null;
  charts = [box.plot, curve.plot, ...(line ? [line.plot] : [])];
  window.charts = charts;
  area.replaceChildren(
    card(titleOf(figure), "by group", null, table()),
    ...(line ? [card(titleOf(figure) + " against a setting", line.text, line.plot, line.holder)] : []),
    element("div", { class: two ? "grid2" : "" },
      card("Boxes", "quartiles and median; whiskers from 10 % to 90 %, dots at the extremes", box.plot, box.holder),
      card("Share of runs", "at or below a value; drag to zoom, double click for all", curve.plot, curve.holder)));
}

const choice = element("select", { id: "figure", "aria-label": "Figure", onchange: () => { figure = choice.value; rebuild(); } }, ...data.figures.map((name) => element("option", { value: name }, titleOf(name))));
const colours = element("button", { id: "colours", title: "What colours tell", onclick: () => { byController = !byController; rebuild(); } }, "Colours: controllers or groups");
page.append(heading(...(controllers.length > 1 ? [colours] : []), choice), area);
rebuild();
theme.listeners.push(rebuild);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(rebuild, 120); });
