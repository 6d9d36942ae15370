"use strict";
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const short = (value, units, base) => {
    let place = 0;
    while (Math.abs(value) >= 999.5 && place + 1 < units.length) { value /= 1000; place += 1; }
    const digits = place === 0 && Number.isInteger(value) ? 0 : Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0;
    return (value.toFixed(digits) + (base === undefined ? " " + units[place] : units[place] + base)).trim();
  };
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  const bits = prefixes.map((prefix) => prefix + "bit/s");
  const octets = prefixes.map((prefix) => prefix + "B/s");
  const quantities = {
    rate: (value) => asBytes ? short(value / 8, octets) : short(value, bits),
    per_second: (value) => short(value, prefixes, " /s"),
    duration: (value) => short(value, ["ns", "µs", "ms", "s"]),
    bytes: (value) => short(value, prefixes.map((prefix) => prefix + "B")),
    count: (value) => short(value, prefixes, ""),
    percent: (value) => value.toFixed(1) + " %",
  };

  // Rates in bytes, and back: every text of the page that has bit/s.
  let asBytes = false;
  const rates = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (/[0-9] [kMGTPE]?bit\/s/.test(node.data) && !node.parentNode.closest("pre")) rates.push([node, node.data]);
  }
  const inBytes = (text) => text.replace(/([0-9.]+) ([kMGTPE]?)bit\/s/g,
    (_, number, prefix) => short(number * 1000 ** prefixes.indexOf(prefix) / 8, octets));
  byId("tools").hidden = false;
  byId("units").onclick = (event) => {
    asBytes = !asBytes;
    for (const [node, text] of rates) node.data = asBytes ? inBytes(text) : text;
    event.target.textContent = asBytes ? "bits" : "bytes";
    event.target.setAttribute("aria-pressed", asBytes);
  };
  if (!rates.length) byId("units").hidden = true;

  // The document, as it is in the page.
  const save = byId("save");
  if (save) save.onclick = async () => {
    const bytes = Uint8Array.from(atob(byId("document").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await new Response(stream).blob());
    link.download = save.dataset.name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // A line across all panels of a time axis, and the values there.
  const valueAt = (group, x, high) => {
    let found = null;
    for (const line of all("polyline", group)) {
      const points = line.points;
      if (!points.length || points[0].x > x || points[points.length - 1].x < x) continue;
      let low = 0, end = points.length - 1;
      while (low < end) {
        const middle = (low + end + 1) >> 1;
        if (points[middle].x <= x) low = middle; else end = middle - 1;
      }
      found = (100 - points[low].y) / 100 * high;
    }
    return found;
  };
  for (const time of all(".time")) {
    const panels = all(".panel", time).map((panel) => {
      const plot = panel.querySelector(".plot");
      const cursor = plot.appendChild(document.createElement("div"));
      cursor.className = "cursor";
      cursor.hidden = true;
      const keys = all(".key li", panel).map((item) => item.appendChild(document.createElement("b")));
      // Each layer of a stack begins where the next one ends.
      const isStack = "stack" in panel.dataset;
      return { plot, cursor, keys, isStack, groups: all("g", panel), high: +panel.dataset.high, render: quantities[panel.dataset.unit] };
    });
    const clear = () => panels.forEach((panel) => { panel.cursor.hidden = true; panel.keys.forEach((key) => { key.textContent = ""; }); });
    time.onpointerleave = clear;
    time.onpointermove = (event) => {
      const box = panels[0].plot.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      if (share < 0 || share > 1) return clear();
      for (const panel of panels) {
        panel.cursor.hidden = false;
        panel.cursor.style.left = share * 100 + "%";
        const values = panel.groups.map((group) => valueAt(group, share * 1000, panel.high));
        panel.groups.forEach((group, place) => {
          let value = values[place];
          if (panel.isStack && value !== null) value -= values[place + 1] ?? 0;
          if (panel.keys[place]) panel.keys[place].textContent = value === null ? "" : panel.render(Math.max(value, 0));
        });
      }
    };
  }

  // A page of a store follows the store, and the page of a run that is measured follows the run. Their versions come
  // as STORE+RUN. STORE is empty while it is not known.
  const live = document.querySelector("[data-live]");
  if (live) {
    const events = new EventSource(live.dataset.live);
    const version = live.dataset.version;
    events.onmessage = (event) => {
      const cut = event.data.lastIndexOf("+");
      const now = version.startsWith("+") ? event.data.slice(cut) : event.data.slice(0, cut);
      if (now && now !== version) location.reload();
    };
  }
})();
