"use strict";
(() => {
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_ZOOM = 256;

  // What a mark stands for is in its title, for those without scripts; here it goes to the panel
  // below the drawing instead, so that the browser does not show it twice.
  const told = new Map();
  for (const mark of all(".mark")) {
    const title = mark.querySelector("title");
    told.set(mark, title.textContent);
    title.remove();
  }

  // Search and filters.
  const search = document.getElementById("search");
  const matches = document.getElementById("matches");
  const findings = all(".finding");
  const rows = all("tr.hit");
  const texts = new Map([...findings, ...rows].map((e) => [e, e.textContent.toLowerCase()]));
  const chips = all(".chip");
  const refresh = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    const off = new Set(chips.filter((c) => c.ariaPressed === "false").map((c) => c.dataset.severity));
    for (const finding of findings) {
      finding.hidden = off.has(finding.dataset.severity) || !has(texts.get(finding));
    }
    for (const row of rows) row.hidden = !has(texts.get(row));
    for (const [mark, text] of told) {
      mark.classList.toggle("dim", words.length > 0 && !has(text.toLowerCase()));
    }
    const left = (list) => `${list.filter((e) => !e.hidden).length} of ${list.length}`;
    matches.textContent = words.length || off.size ? `${left(findings)} findings, ${left(rows)} rows` : "";
  };
  search.addEventListener("input", refresh);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.ariaPressed = String(chip.ariaPressed === "false");
      refresh();
    });
  }

  // From finding to finding.
  let current = null;
  const go = (finding) => {
    if (!finding) return;
    if (current) current.classList.remove("on");
    current = finding;
    finding.classList.add("on");
    finding.focus({ preventScroll: true });
    finding.scrollIntoView({ block: "center" });
  };
  const step = (by) => {
    const seen = findings.filter((finding) => !finding.hidden);
    const at = seen.indexOf(current);
    go(seen[at < 0 ? (by > 0 ? 0 : seen.length - 1) : at + by]);
  };

  // Marks of the drawings.
  const chosen = new Map();
  const choose = (drawing, mark) => {
    const before = chosen.get(drawing);
    if (before) before.classList.remove("on");
    chosen.set(drawing, mark);
    mark.classList.add("on");
    const where = mark.dataset.finding ? "the finding about it" : mark.dataset.lane ? "what runs in it" : "";
    const hint = where ? `\nEnter or click: ${where}` : "";
    drawing.closest("figure").querySelector(".detail").textContent = told.get(mark) + hint;
  };
  const open = (mark) => {
    if (mark && mark.dataset.finding) go(document.getElementById(`finding-${mark.dataset.finding}`));
    if (mark && mark.dataset.lane) {
      const drawing = document.getElementById(mark.dataset.lane).querySelector(".marks");
      drawing.focus({ preventScroll: true });
      drawing.scrollIntoView({ block: "center" });
    }
  };
  for (const drawing of all(".marks")) {
    const marks = all(".mark", drawing);
    if (drawing.viewBox.baseVal && drawing.viewBox.baseVal.width) {
      marks.sort((a, b) => a.cx.baseVal.value - b.cx.baseVal.value);
    }
    drawing.addEventListener("pointerover", (event) => {
      const mark = event.target.closest(".mark");
      if (mark) choose(drawing, mark);
    });
    drawing.addEventListener("click", (event) => open(event.target.closest(".mark")));
    drawing.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const seen = marks.filter((mark) => !mark.classList.contains("dim"));
      if (by && seen.length) {
        const at = seen.indexOf(chosen.get(drawing));
        const next = at < 0 ? (by > 0 ? 0 : seen.length - 1) : at + by;
        const mark = seen[Math.max(0, Math.min(seen.length - 1, next))];
        choose(drawing, mark);
        mark.scrollIntoView({ block: "nearest", inline: "nearest" });
        event.preventDefault();
      } else if (event.key === "Enter") {
        open(chosen.get(drawing));
        event.preventDefault();
      }
    });
  }

  // Timelines: zoom and ruler.
  const UNITS = [["s", 1], ["ms", 1e-3], ["\u00b5s", 1e-6], ["ns", 1e-9]];
  const pretty = (seconds, stride) => {
    if (!seconds) return "0";
    const [unit, size] = UNITS.find(([, s]) => seconds >= s) || UNITS[3];
    const digits = Math.max(0, Math.ceil(-Math.log10(stride / size) - 1e-9));
    return `${(seconds / size).toFixed(digits)} ${unit}`;
  };
  const makeSvg = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  const rule = (lane) => {
    const extent = Number(lane.dataset.seconds);
    const drawing = lane.querySelector(".marks");
    const ruler = drawing.querySelector(".ruler");
    ruler.replaceChildren();
    if (!(extent > 0)) return;
    const parts = Math.max(2, (drawing.clientWidth || drawing.getBoundingClientRect().width) / 110);
    const power = 10 ** Math.floor(Math.log10(extent / parts));
    const stride = power * [1, 2, 5, 10].find((f) => extent / (f * power) <= parts);
    for (let number = 0; number * stride <= extent * (1 + 1e-9); number += 1) {
      const x = `${(100 * number * stride) / extent}%`;
      makeSvg("line", { x1: x, x2: x, y1: 0, y2: "100%" }, ruler);
      const end = number * stride > extent * 0.97;
      makeSvg("text", { x, y: 12, dx: end ? -3 : 3, "text-anchor": end ? "end" : "start" }, ruler).textContent = pretty(number * stride, stride);
    }
  };
  const zooms = new Map();
  const zoom = (lane, how) => {
    const track = lane.querySelector(".track");
    const drawing = lane.querySelector(".marks");
    const before = zooms.get(lane) || 1;
    const next = { in: before * 2, out: before / 2, all: 1 }[how];
    const after = Math.max(1, Math.min(MOST_ZOOM, next));
    const mark = chosen.get(drawing);
    const box = mark ? mark.getBoundingClientRect() : track.getBoundingClientRect();
    const edge = drawing.getBoundingClientRect();
    const middle = (box.left + box.width / 2 - edge.left) / edge.width;
    zooms.set(lane, after);
    drawing.style.width = `${after * 100}%`;
    track.scrollLeft = middle * track.clientWidth * after - track.clientWidth / 2;
    rule(lane);
  };
  const lanes = all(".lane");
  for (const lane of lanes) {
    rule(lane);
    for (const button of all("[data-zoom]", lane)) {
      button.addEventListener("click", () => zoom(lane, button.dataset.zoom));
    }
    lane.querySelector(".marks").addEventListener("keydown", (event) => {
      const how = { "+": "in", "=": "in", "-": "out", "0": "all" }[event.key];
      if (how && !event.ctrlKey && !event.metaKey) {
        zoom(lane, how);
        event.preventDefault();
      }
    });
  }
  addEventListener("resize", () => lanes.forEach((lane) => rule(lane)));

  // Tables, sorted by a column.
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    all("th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.ariaSort !== "descending";
        all("th", table).forEach((other) => { other.ariaSort = null; });
        head.ariaSort = down ? "descending" : "ascending";
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
        };
        const less = (a, b) => (a < b ? -1 : Number(a > b));
        const sorted = Array.from(body.rows).sort((a, b) => (down ? -1 : 1) * less(key(a), key(b)));
        body.append(...sorted);
      });
    });
  }

  // Theme, help, keys.
  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = dark === "dark" ? "light" : "dark";
  };
  const help = document.getElementById("help");
  document.getElementById("theme").addEventListener("click", theme);
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target === search) {
      if (event.key === "Escape") {
        search.value = "";
        refresh();
        search.blur();
      } else if (event.key === "Enter") {
        search.blur();
        step(1);
      }
      return;
    }
    const act = {
      "/": () => search.focus(),
      j: () => step(1),
      k: () => step(-1),
      t: theme,
      "?": () => help.showModal(),
    }[event.key];
    if (act) {
      act();
      event.preventDefault();
    }
  });
})();
