// Fetches the files that are named here, looks at all that came with the page, and writes what it saw into it, as JSON.
"use strict";

const FILES = ["empty", "one", "1k", "5m"];

async function digest(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function fetched(name) {
  const response = await fetch(name, { cache: "no-store" });
  const bytes = await response.arrayBuffer();
  return { name, status: response.status, bytes: bytes.byteLength, sha256: await digest(bytes) };
}

function pixels(id) {
  const image = document.getElementById(id);
  return { complete: image.complete, width: image.naturalWidth, height: image.naturalHeight };
}

// Each letter of the page's font is half an em wide; other fonts have wide and narrow ones.
function textWidth(id) {
  const range = document.createRange();
  range.selectNodeContents(document.getElementById(id));
  return range.getBoundingClientRect().width;
}

async function look() {
  await document.fonts.load('2rem "Fulmar Blocks"');
  await document.fonts.ready;
  const files = await Promise.all(FILES.map(fetched));
  const navigation = performance.getEntriesByType("navigation")[0];
  const parts = [navigation, ...performance.getEntriesByType("resource")];
  return {
    parts: parts.map((part) => ({
      name: new URL(part.name).pathname,
      protocol: part.nextHopProtocol,
      status: part.responseStatus,
      bytes: part.decodedBodySize,
      sent: part.encodedBodySize,
    })),
    files,
    photograph: pixels("photograph"),
    drawing: pixels("drawing"),
    background: getComputedStyle(document.body).backgroundColor,
    font: [...document.fonts].map((face) => face.status),
    textWidth: textWidth("blocks"),
  };
}

window.addEventListener("load", () => {
  const report = document.getElementById("report");
  look().then(
    (seen) => (report.textContent = JSON.stringify(seen)),
    (error) => (report.textContent = JSON.stringify({ error: String(error) })),
  );
});
