// What the pages have in common: elements, themes, units, colours.

const data = JSON.parse(document.getElementById("data").textContent);

function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "color") node.style.setProperty("--c", value);
    else if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

// Colours that are told apart with every kind of colour vision (after Okabe and Ito), on light and on dark paper.
const PALETTES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b0419a", "#946c00", "#2aa5d8", "#5b4fc4", "#6b7280"],
  dark: ["#56b4e9", "#ff8f4d", "#34d399", "#f09ad7", "#f0c84b", "#9fd8ff", "#a99cff", "#aab4c2"],
};
const ALARMS = { light: "#d11f2d", dark: "#ff6b74" };

const theme = {
  listeners: [],
  name: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  set(name) {
    this.name = name;
    document.documentElement.dataset.theme = name;
    this.listeners.forEach((listener) => listener());
  },
  color(index) { return index < 0 ? ALARMS[this.name] : PALETTES[this.name][index % PALETTES[this.name].length]; },
  variable(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); },
};
document.documentElement.dataset.theme = theme.name;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => theme.set(event.matches ? "dark" : "light"));

function themeButton() {
  const label = () => (theme.name === "dark" ? "Light" : "Dark");
  const button = element("button", { id: "theme", title: "Light or dark", onclick: () => theme.set(theme.name === "dark" ? "light" : "dark") }, label());
  theme.listeners.push(() => { button.textContent = label(); });
  return button;
}

// Numbers with a prefix, so that they stay short.
function scaled(value, steps) {
  const size = Math.abs(value);
  const [factor, name] = steps.find(([step]) => size >= step) || steps[steps.length - 1];
  const number = value / factor;
  const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return number.toFixed(digits).replace(/\.0+$/, "") + (name ? " " + name : "");
}
const UNITS = {
  bytes: (v) => (v === 0 ? "0" : scaled(v, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]])),
  micros: (v) => (v === 0 ? "0" : scaled(v, [[1e6, "s"], [1e3, "ms"], [1, "µs"]])),
  rate: (v) => (v === 0 ? "0" : scaled(v, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]])),
  count: (v) => (v === 0 ? "0" : scaled(v, [[1e9, "G"], [1e6, "M"], [1e4, "k"], [1, ""]].map(([step, name]) => (name === "k" ? [1e3, name] : [step, name])))),
  plain: (v) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(4)))),
};

// All ticks of an axis in one unit, with as many digits as tell them apart.
function ticks(unit) {
  const steps = { bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]], micros: [[1e6, "s"], [1e3, "ms"], [1, "µs"]], rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]] }[unit];
  return (chart, splits) => {
    if (!steps) return splits.map((split) => (split === null ? "" : UNITS.plain(split)));
    const known = splits.filter((split) => split !== null);
    const largest = Math.max(...known.map(Math.abs), 0);
    const [factor, name] = steps.find(([step]) => largest >= step) || steps[steps.length - 1];
    const gap = known.length > 1 ? Math.abs(known[1] - known[0]) / factor : 1;
    let digits = 0;
    while (digits < 6 && Math.abs(gap * 10 ** digits - Math.round(gap * 10 ** digits)) > 1e-6 * gap * 10 ** digits) digits++;
    return splits.map((split) => (split === null ? "" : (split / factor).toFixed(split === 0 ? 0 : digits) + " " + name));
  };
}

// A button that saves a chart as a picture, as it is drawn now.
function pictureButton(plotOf, name) {
  return element("button", { class: "picture", title: "Save this chart as a picture", onclick: () => {
    const drawn = plotOf().ctx.canvas, canvas = document.createElement("canvas"), link = document.createElement("a");
    canvas.width = drawn.width; canvas.height = drawn.height;
    const context = canvas.getContext("2d");
    context.fillStyle = theme.variable("--card");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(drawn, 0, 0);
    link.download = (data.title + " " + name).replace(/[^A-Za-z0-9]+/g, "-") + ".png";
    link.href = canvas.toDataURL("image/png");
    link.click();
  } }, "PNG");
}

function axis(unit, extra) {
  return {
    stroke: () => theme.variable("--soft"),
    grid: { stroke: () => theme.variable("--grid"), width: 1 },
    ticks: { stroke: () => theme.variable("--line"), width: 1, size: 5 },
    font: "12px system-ui, 'DejaVu Sans', sans-serif",
    values: ticks(unit),
    ...extra,
  };
}

// Ticks of a logarithmic axis: each power of ten, and more of them the narrower its range is.
function logSplits(chart, place, min, max) {
  const ratio = max / min, splits = [];
  const digits = ratio > 1000 ? [1] : ratio > 6 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    for (const digit of digits) {
      const value = digit * 10 ** power;
      if (value >= min * 0.999 && value <= max * 1.001) splits.push(value);
    }
  }
  return splits;
}
const logAxis = (extra) => axis("plain", { splits: logSplits, filter: (chart, splits) => splits, values: (chart, splits) => splits.map((v) => (v >= 1e4 ? v.toExponential(0).replace("e+", "e") : String(Number(v.toPrecision(3))))), ...extra });

function heading(...buttons) {
  document.title = data.title;
  return element("header", {},
    element("div", {}, element("h1", {}, data.title), element("p", {}, data.subtitle)),
    element("div", { class: "tools" }, ...buttons, themeButton()));
}
