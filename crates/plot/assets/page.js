// The page of courses in time: charts with one time axis, whose cursors and zoom move together.

const page = document.getElementById("page");

// kind: line, step, dashed, dot, cross. color: place in the palette, -1 for what went wrong.
const CHARTS = [
  { title: "Time and sequence", unit: "bytes", text: "bytes sent, in the order of their first departure", height: 340, series: [
    { key: "sent", label: "sent", kind: "dot", color: 0, size: 3 },
    { key: "lost", label: "declared lost", kind: "cross", color: -1 },
    { key: "resent", label: "sent again", kind: "dot", color: 1, size: 4 },
    { key: "spurious", label: "lost in error", kind: "dot", color: 3, size: 6 },
    { key: "acked", label: "acknowledged up to", kind: "step", color: 2, width: 1.75 },
  ] },
  { title: "Congestion window and bytes in flight", unit: "bytes", text: "strip: state of the controller", height: 260, phases: true, series: [
    { key: "window", label: "congestion window", kind: "step", color: 0, width: 2 },
    { key: "in_flight", label: "in flight", kind: "step", color: 2 },
    { key: "ssthresh", label: "slow start threshold", kind: "dashed", color: 7 },
    { key: "probe_timeouts", label: "probe timeout", kind: "cross", color: -1 },
  ] },
  { title: "Round-trip time", unit: "micros", text: "as this end measured it", height: 220, series: [
    { key: "rtt_latest", label: "latest", kind: "line", color: 5 },
    { key: "rtt_smoothed", label: "smoothed", kind: "step", color: 0, width: 2 },
    { key: "rtt_min", label: "smallest", kind: "dashed", color: 1 },
  ] },
  { title: "Rates", unit: "rate", text: "of the UDP payload", height: 220, series: [
    { key: "pacing", label: "pacing", kind: "step", color: 0 },
    { key: "delivery", label: "delivery", kind: "step", color: 1 },
  ] },
  { title: "Queue of the bottleneck", unit: "bytes", text: "in the direction in which this end sends", height: 200, series: [
    { key: "queue", label: "waiting", kind: "step", color: 0, fill: true },
    { key: "drops", label: "dropped by the link", kind: "cross", color: -1 },
    { key: "marks", label: "marked (CE)", kind: "dot", color: 4, size: 5 },
  ] },
  { title: "Datagram size", unit: "bytes", text: "UDP payload of a full datagram", height: 130, series: [
    { key: "mtu", label: "size", kind: "step", color: 0, width: 2 },
  ] },
];

// Differences become times in seconds, strictly increasing so that no point hides another, and values.
function decode(series) {
  const xs = new Float64Array(series.t.length), ys = new Float64Array(series.v.length);
  let t = 0, v = 0, last = -1;
  for (let i = 0; i < xs.length; i++) {
    t += series.t[i]; v += series.v[i];
    let x = t / 1e6;
    if (x <= last) x = last + 1e-9;
    xs[i] = last = x; ys[i] = v;
  }
  return [xs, ys];
}

const lanes = [];
data.runs.forEach((run, number) => {
  const most = Math.max(...run.lanes.map((lane) => lane.bytes));
  const main = run.lanes.findIndex((lane) => lane.bytes === most);
  run.lanes.forEach((lane, place) => {
    const name = data.runs.length > 1 ? run.name + " · " + lane.name : lane.name;
    const series = new Map(lane.series.map((one) => [one.key, decode(one)]));
    lanes.push({ name, run: number, series, phases: lane.phases, requests: lane.requests, shown: place === main && number < 4, color: lanes.length });
  });
});
const own = data.runs.map((run, number) => lanes.filter((lane) => lane.run === number));
if (data.runs.length > 1) own.forEach((group, number) => group.forEach((lane, place) => { lane.color = number + place * data.runs.length; }));

const hidden = new Set();
let charts = [];
let bars = [];
const end = Math.max(1e-6, ...lanes.flatMap((lane) => lane.requests.map((request) => request.end / 1e6)), ...lanes.flatMap((lane) => [...lane.series.values()].map(([xs]) => xs[xs.length - 1] || 0)));
let range = [0, end];

function zoom(from, to) {
  const width = Math.max(to - from, 1e-6);
  from = Math.max(0, Math.min(from, end - width)); to = Math.min(end, from + width);
  range = [from, to];
  bars.forEach((bar) => bar());
  charts.forEach(({ plot }) => {
    if (plot.scales.x.min !== from || plot.scales.x.max !== to) plot.setScale("x", { min: from, max: to });
  });
}

function cross(radius) {
  return (plot, series, first, last) => {
    const path = new Path2D(), r = radius * devicePixelRatio;
    const xs = plot.data[0], ys = plot.data[series], scale = plot.series[series].scale;
    for (let i = first; i <= last; i++) {
      if (ys[i] === null || ys[i] === undefined) continue;
      const x = plot.valToPos(xs[i], "x", true), y = plot.valToPos(ys[i], scale, true);
      path.moveTo(x - r, y - r); path.lineTo(x + r, y + r); path.moveTo(x - r, y + r); path.lineTo(x + r, y - r);
    }
    return { stroke: path, fill: null, flags: 3 };
  };
}

function styled(spec, lane, several) {
  const color = () => theme.color(spec.color < 0 ? -1 : several ? lane.color : spec.color);
  const series = { label: spec.label, scale: "y", stroke: color, width: (spec.width || 1.25), spanGaps: true, points: { show: false } };
  if (spec.kind === "step" || spec.kind === "dashed") series.paths = uPlot.paths.stepped({ align: 1 });
  if (spec.kind === "dashed") series.dash = [6, 4];
  if (spec.fill) series.fill = () => theme.variable("--shade");
  if (spec.kind === "dot") {
    series.paths = () => null;
    series.points = { show: true, size: spec.size, width: 0, stroke: color, fill: color };
  }
  if (spec.kind === "cross") {
    series.paths = cross(3);
    series.width = 1.25;
    if (several) series.stroke = color;
  }
  if (several && (spec.key === "in_flight" || spec.key === "rtt_latest" || spec.key === "delivery")) { series.alpha = 0.55; series.width = 1; }
  return series;
}

// The states of the controllers: a strip for each lane along the top of the chart.
const phaseNames = [...new Set(lanes.flatMap((lane) => lane.phases.map(([, name]) => name)))];
function phaseColor(name) { return theme.color(phaseNames.indexOf(name)); }
function drawPhases(shown) {
  return (plot) => {
    const { ctx, bbox } = plot, height = 6 * devicePixelRatio;
    ctx.save();
    shown.filter((lane) => lane.phases.length).forEach((lane, row) => {
      lane.phases.forEach(([at, name], index) => {
        const next = index + 1 < lane.phases.length ? lane.phases[index + 1][0] / 1e6 : end;
        const x0 = Math.max(bbox.left, plot.valToPos(at / 1e6, "x", true));
        const x1 = Math.min(bbox.left + bbox.width, plot.valToPos(next, "x", true));
        if (x1 <= bbox.left || x0 >= bbox.left + bbox.width) return;
        ctx.fillStyle = phaseColor(name);
        ctx.fillRect(x0, bbox.top + row * (height + 2), Math.max(x1 - x0, 0.5), height);
      });
    });
    ctx.restore();
  };
}
// What the schedule of the link did: a band behind everything for what lasts, a dashed line for what is for good.
function eventsOf(shown) {
  const events = shown.flatMap((lane) => data.runs[lane.run].events);
  return [...new Map(events.map((event) => [event.join(), event])).values()];
}
function drawEvents(shown, lasting) {
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    eventsOf(shown).filter(([from, to]) => lasting === to > from).forEach(([from, to]) => {
      const x0 = plot.valToPos(from / 1e6, "x", true), x1 = plot.valToPos(to / 1e6, "x", true);
      if (to > from) {
        ctx.fillStyle = theme.variable("--band");
        ctx.fillRect(x0, bbox.top, Math.max(x1 - x0, 1), bbox.height);
        return;
      }
      ctx.strokeStyle = theme.variable("--soft"); ctx.lineWidth = devicePixelRatio; ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath(); ctx.moveTo(x0, bbox.top); ctx.lineTo(x0, bbox.top + bbox.height); ctx.stroke();
    });
    ctx.restore();
  };
}
function phaseAt(lane, x) {
  let found = "";
  for (const [at, name] of lane.phases) { if (at / 1e6 > x) break; found = name; }
  return found;
}

// The value of a series at the cursor: the last one before it.
function valueAt([xs, ys], x, kind) {
  let low = 0, high = xs.length;
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] <= x + 1e-8) low = middle + 1; else high = middle; }
  if (low === 0) return null;
  if ((kind === "dot" || kind === "cross") && Math.abs(xs[low - 1] - x) > (range[1] - range[0]) / 100) return null;
  return ys[low - 1];
}

function build(spec, shown) {
  const several = shown.length > 1;
  const parts = shown.flatMap((lane) => spec.series.filter((one) => lane.series.has(one.key)).map((one) => ({ lane, one, points: lane.series.get(one.key) })));
  if (!parts.length) return null;
  const keys = element("div", { class: "keys" });
  const holder = element("div", {});
  const card = element("section", { class: "card", "data-chart": spec.title }, element("div", { class: "head" }, element("h2", {}, spec.title), element("span", { class: "unit" }, spec.text), pictureButton(() => plot, spec.title)), keys, holder);
  const plot = new uPlot({
    width: Math.max(320, page.clientWidth - 74), height: spec.height, padding: [10, 26, 0, 0],
    scales: { x: { time: false, range: (chart, min, max) => (min === null ? [0, end] : [min, max]) }, y: { range: (chart, min, max) => (max === null ? [0, 1] : spec.unit === "bytes" || min < max * 0.6 ? [spec.title === "Time and sequence" && min > 0 ? min - (max - min) * 0.05 : 0, max + (max - (spec.title === "Time and sequence" ? min : 0)) * 0.08 || 1] : [Math.max(0, min - (max - min || max) * 0.2), max + (max - min || max) * 0.2])} },
    axes: [axis("micros", { values: (chart, splits) => ticks("micros")(chart, splits.map((split) => split * 1e6)), size: 34 }), axis(spec.unit, { size: 86 })],
    legend: { show: false },
    cursor: { sync: { key: "fulmar" }, drag: { x: true, y: false, setScale: false }, points: { show: false }, bind: { dblclick: () => () => { zoom(0, end); return null; } } },
    series: [{}, ...parts.map(({ one, lane }) => styled(one, lane, several))],
    hooks: {
      setSelect: [(chart) => {
        if (chart.select.width > 4) zoom(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
        chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
      setCursor: [(chart) => {
        const x = chart.cursor.left >= 0 ? chart.posToVal(chart.cursor.left, "x") : null;
        labels.forEach((label) => label(x));
      }],
      drawClear: [drawEvents(shown, true)],
      draw: [drawEvents(shown, false), ...(spec.phases ? [drawPhases(shown)] : [])],
    },
  }, uPlot.join(parts.map(({ points }) => points)), holder);
  plot.setScale("x", { min: range[0], max: range[1] });

  const labels = parts.map(({ lane, one, points }, index) => {
    const id = spec.title + "/" + one.key + "/" + lane.name;
    const value = element("b", {});
    const kind = one.kind === "dot" || one.kind === "cross" || one.kind === "dashed" ? one.kind : "line";
    const button = element("button", {
      class: "key", title: "Show or hide; with Shift alone", "data-series": one.key, "aria-pressed": String(!hidden.has(id)),
      onclick: (event) => {
        if (event.shiftKey) return alone(index);
        show(index, hidden.has(id));
      },
    }, element("i", { class: kind }), element("span", {}, several ? lane.name + " · " + one.label : one.label), value);
    const paint = () => button.style.setProperty("--c", theme.color(one.color < 0 ? -1 : several ? lane.color : one.color));
    paint();
    if (hidden.has(id)) plot.setSeries(index + 1, { show: false });
    keys.append(button);
    const label = (x) => {
      const v = x === null ? null : valueAt(points, x, one.kind);
      value.textContent = v === null ? "" : UNITS[spec.unit](v);
    };
    return Object.assign(label, { paint, id, button });
  });
  const show = (index, visible) => {
    const { id, button } = labels[index];
    if (visible) hidden.delete(id); else hidden.add(id);
    button.setAttribute("aria-pressed", String(visible));
    plot.setSeries(index + 1, { show: visible });
  };
  const alone = (index) => {
    const others = labels.some((label, place) => place !== index && !hidden.has(label.id));
    labels.forEach((label, place) => show(place, place === index || !others));
  };
  if (spec.phases && phaseNames.length) {
    shown.filter((lane) => lane.phases.length).forEach((lane) => {
      const value = element("b", {}), i = element("i", {});
      keys.append(element("span", { class: "key" }, i, element("span", {}, several ? lane.name + " · state" : "state"), value));
      const label = (x) => {
        const name = phaseAt(lane, x === null ? end : x);
        value.textContent = name;
        i.style.setProperty("--c", phaseColor(name));
      };
      label(null);
      labels.push(Object.assign(label, { paint: () => label(null), id: "", button: keys.lastChild }));
    });
    // Which colour of the strip is which state.
    const names = phaseNames.filter((name) => shown.some((lane) => lane.phases.some(([, own]) => own === name)));
    names.forEach((name) => {
      const i = element("i", {});
      keys.append(element("span", { class: "key", "data-state": name }, i, element("span", {}, name)));
      const paint = () => i.style.setProperty("--c", phaseColor(name));
      paint();
      labels.push(Object.assign(() => {}, { paint, id: "", button: keys.lastChild }));
    });
  }
  // Zooming by the wheel with Ctrl, so that the page still scrolls; sideways by Shift.
  plot.over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const width = range[1] - range[0];
    if (event.shiftKey) { const by = width * 0.1 * Math.sign(event.deltaY || event.deltaX); return zoom(range[0] + by, range[1] + by); }
    const factor = event.deltaY < 0 ? 0.8 : 1.25, at = plot.posToVal(plot.cursor.left, "x");
    zoom(at - (at - range[0]) * factor, at + (range[1] - at) * factor);
  }, { passive: false });
  return { card, plot, labels };
}

// The requests of a lane: a row for each, with a bar from its fields to its last frame. The lighter part waits for the response.
function requests(lane, several) {
  const head = ["stream", "request", "status", "begins", "response after", "last frame after", "sent", "received"];
  const rows = lane.requests.map((request) => {
    const wait = element("i", { class: "wait" }), body = element("i", { class: "body" });
    const place = (node, from, to) => {
      const of = (micros) => Math.max(0, Math.min(100, (micros / 1e6 - range[0]) / (range[1] - range[0]) * 100));
      node.style.left = of(from) + "%";
      node.style.width = Math.max(0.15, of(to) - of(from)) + "%";
      node.style.visibility = to / 1e6 < range[0] || from / 1e6 > range[1] ? "hidden" : "visible";
    };
    const answered = request.answered === null ? request.end : request.answered;
    const bar = () => { place(wait, request.start, answered); place(body, answered, request.end); };
    bar();
    bars.push(bar);
    const after = (at) => (at === null ? "" : UNITS.micros(at - request.start));
    const texts = [request.stream, request.method + " " + request.path, request.status, UNITS.micros(request.start), after(request.answered), after(request.end), UNITS.bytes(request.sent), UNITS.bytes(request.received)];
    return element("tr", {}, ...texts.map((text) => element("td", {}, String(text))), element("td", { class: "lane" }, wait, body));
  });
  const table = element("table", { class: "requests" }, element("thead", {}, element("tr", {}, ...head.map((name) => element("th", {}, name)), element("th", { class: "lane" }, ""))), element("tbody", {}, ...rows));
  return element("section", { class: "card", "data-chart": "Requests" }, element("div", { class: "head" }, element("h2", {}, "Requests" + (several ? " · " + lane.name : "")), element("span", { class: "unit" }, "HTTP/3, by the frames on their streams")), element("div", { class: "scroll" }, table));
}

const area = element("div", { id: "charts" });
function rebuild() {
  charts.forEach(({ plot }) => plot.destroy());
  const shown = lanes.filter((lane) => lane.shown);
  charts = CHARTS.map((spec) => build(spec, shown)).filter((chart) => chart !== null);
  bars = [];
  const tables = shown.filter((lane) => lane.requests.length).map((lane) => requests(lane, shown.length > 1));
  area.replaceChildren(...tables, ...charts.map(({ card }) => card));
  if (!charts.length && !tables.length) area.append(element("p", { class: "card empty" }, lanes.length ? "Choose what to show." : "There is nothing to draw."));
  window.charts = charts;
}

function chips() {
  const box = element("div", { class: "chips", id: "lanes" });
  lanes.forEach((lane) => {
    const chip = element("button", { class: "chip", "aria-pressed": String(lane.shown), onclick: () => {
      lane.shown = !lane.shown;
      chip.setAttribute("aria-pressed", String(lane.shown));
      rebuild();
    } }, element("i", {}), lane.name);
    const paint = () => chip.style.setProperty("--c", theme.color(lane.color));
    paint();
    theme.listeners.push(paint);
    box.append(chip);
  });
  return box;
}

function facts() {
  const names = [...new Set(data.runs.flatMap((run) => run.facts.map(([name]) => name)))];
  const rows = data.runs.map((run) => {
    const known = new Map(run.facts);
    return element("tr", {}, element("td", {}, run.name), ...names.map((name) => element("td", {}, known.get(name) || "")));
  });
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, element("th", {}, "run"), ...names.map((name) => element("th", {}, name)))), element("tbody", {}, ...rows)));
}

// What the runs are of: the text of each scenario with the changes of its runs, and what its schedule did.
function scenarios() {
  const texts = [...new Set(data.runs.map((run) => run.scenario))].filter((text) => text);
  const seconds = (micros) => (micros / 1e6).toFixed(3) + " s";
  return texts.map((text) => {
    const runs = data.runs.filter((run) => run.scenario === text);
    const changes = runs.filter((run) => run.settings.length).map((run) => "# " + run.name + ": --set " + run.settings.join(" --set "));
    const events = [...new Map(runs.flatMap((run) => run.events).map((event) => [event.join(), event])).values()];
    const rows = events.map(([from, to, what]) => element("tr", {}, element("td", {}, seconds(from) + (to > from ? " to " + seconds(to) : "")), element("td", {}, what)));
    return element("details", { class: "scenario" }, element("summary", {}, "Scenario" + (changes.length ? ", settings" : "") + (rows.length ? ", events" : "")),
      element("pre", {}, [...changes, text].join("\n")), rows.length ? element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...rows))) : null);
  });
}

const reset = element("button", { id: "reset", title: "Show the whole time (double click, 0)", onclick: () => zoom(0, end) }, "Whole time");
page.append(heading(reset));
page.append(element("section", { class: "card" }, facts(), element("div", { style: "height: 8px" }), chips(),
  element("p", { class: "hint" }, "Drag to zoom, double click for the whole time, Ctrl and wheel to zoom at the cursor, Shift and wheel or the arrow keys to move. Click a name in a legend to hide it, with Shift to see it alone."), ...scenarios()));
page.append(area);
rebuild();

theme.listeners.push(() => charts.forEach(({ plot, labels }) => { labels.forEach((label) => label.paint()); plot.redraw(false, true); }));
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => charts.forEach(({ plot }) => plot.setSize({ width: Math.max(320, page.clientWidth - 74), height: plot.height })), 80);
});
addEventListener("keydown", (event) => {
  const width = range[1] - range[0], middle = (range[0] + range[1]) / 2;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "0") zoom(0, end);
  else if (event.key === "+") zoom(middle - width / 4, middle + width / 4);
  else if (event.key === "-") zoom(middle - width, middle + width);
  else if (event.key === "ArrowLeft") zoom(range[0] - width / 10, range[1] - width / 10);
  else if (event.key === "ArrowRight") zoom(range[0] + width / 10, range[1] + width / 10);
});
