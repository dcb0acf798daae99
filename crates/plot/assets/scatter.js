// The page of points: a figure against each parameter, and the share of runs at or below each value of it.

const page = document.getElementById("page");
const hidden = new Set();
const LOG = 3;
let charts = [];

function card(title, text, ...content) {
  return element("section", { class: "card", "data-chart": title }, element("div", { class: "head" }, element("h2", {}, title), element("span", { class: "unit" }, text)), ...content);
}

const shown = () => data.groups.map((group, index) => ({ ...group, index })).filter(({ index }) => !hidden.has(index));

function rangeOf(values, logarithmic) {
  const min = Math.min(...values), max = Math.max(...values);
  if (!values.length) return [1, 10];
  if (logarithmic) return [min / 1.08, max * 1.08];
  const margin = (max - min || 1) * 0.03;
  return [min - margin, max + margin];
}

function scatter(parameter, place, width) {
  const groups = shown(), holder = element("div", {}), hint = element("p", { class: "hint" }, "\u00a0");
  // Points of one chart in the order of their parameter; two of one place stay two.
  const all = groups.flatMap((group, series) => group.points.map((point) => ({ x: point.at[place], y: point.value, series, point, group })));
  all.sort((a, b) => a.x - b.x);
  const columns = [all.map(({ x }) => x), ...groups.map((_, series) => all.map((one) => (one.series === series ? one.y : null)))];
  const nearest = (plot) => {
    const { left, top } = plot.cursor;
    let best = null, least = 400;
    if (left >= 0) for (const one of all) {
      const dx = plot.valToPos(one.x, "x") - left, dy = plot.valToPos(one.y, "y") - top, distance = dx * dx + dy * dy;
      if (distance < least) { least = distance; best = one; }
    }
    hint.textContent = best ? best.group.name + ", " + data.figure + " " + UNITS.plain(best.y) + ": " + best.point.name : "\u00a0";
  };
  const xs = rangeOf(columns[0], parameter.logarithmic), ys = rangeOf(all.map(({ y }) => y), true);
  const plot = new uPlot({
    width, height: 300, padding: [12, 14, 0, 0], legend: { show: false }, cursor: { drag: { x: true, y: false }, points: { show: false } },
    scales: {
      x: { time: false, distr: parameter.logarithmic ? LOG : 1, range: (chart, min, max) => (min === null || min === max ? xs : max - min >= columns[0][columns[0].length - 1] - columns[0][0] ? xs : [min, max]) },
      y: { distr: LOG, range: () => ys },
    },
    axes: [parameter.logarithmic ? logAxis({ size: 34 }) : axis("plain", { size: 34 }), logAxis({ size: 54 })],
    series: [{}, ...groups.map(({ index }) => ({ stroke: () => theme.color(index), paths: () => null, points: { show: true, size: 6, width: 1, fill: () => theme.color(index) + "70" } }))],
    hooks: { setCursor: [nearest] },
  }, columns, holder);
  return { plot, holder, hint };
}

function shares(width) {
  const groups = shown(), holder = element("div", {});
  const tables = groups.map(({ points }) => {
    const sorted = points.map(({ value }) => value).sort((a, b) => a - b), xs = [], ys = [];
    sorted.forEach((value, place) => {
      if (xs.length && xs[xs.length - 1] === value) ys[ys.length - 1] = (place + 1) / sorted.length;
      else { xs.push(value); ys.push((place + 1) / sorted.length); }
    });
    return [xs, ys];
  });
  const range = rangeOf(tables.flatMap(([xs]) => xs), true);
  const plot = new uPlot({
    width, height: 300, padding: [12, 14, 0, 0], legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { time: false, distr: LOG, range: () => range }, y: { range: () => [0, 1.02] } },
    axes: [logAxis({ size: 34 }), axis("plain", { size: 60, values: (chart, splits) => splits.map((split) => Math.round(split * 100) + " %") })],
    series: [{}, ...groups.map(({ index }) => ({ stroke: () => theme.color(index), width: 2, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }))],
  }, tables.length ? uPlot.join(tables) : [[]], holder);
  return { plot, holder };
}

function keys() {
  const chips = data.groups.map((group, index) => element("button", { class: "key", "aria-pressed": String(!hidden.has(index)), title: "Show or hide", onclick: () => { if (!hidden.delete(index)) hidden.add(index); rebuild(); } }, element("i", { color: theme.color(index) }), element("span", {}, group.name)));
  return element("div", { class: "keys" }, ...chips);
}

function table() {
  const rows = data.table.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...data.table_head.map((name) => element("th", {}, name)))), element("tbody", {}, ...rows)));
}

const area = element("div", {});
function rebuild() {
  charts.forEach((plot) => plot.destroy());
  const two = page.clientWidth > 1150;
  const width = Math.max(320, (two ? (page.clientWidth - 44 - 14) / 2 : page.clientWidth - 44) - 30);
  const drawn = data.parameters.map((parameter, place) => ({ parameter, ...scatter(parameter, place, width) }));
  const share = shares(width);
  charts = [...drawn.map(({ plot }) => plot), share.plot];
  window.charts = charts;
  area.replaceChildren(
    keys(),
    element("div", { class: two ? "grid2" : "" },
      card("Share of runs", "at or below a value of the " + data.figure, share.holder),
      ...drawn.map(({ parameter, holder, hint }) => card(parameter.name, "drag to zoom, double click for all", holder, hint))),
    card("By class", "of the " + data.figure, table()));
}

page.append(heading(), area);
rebuild();
theme.listeners.push(rebuild);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(rebuild, 120); });
