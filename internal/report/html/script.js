// What the page can do beyond being read: values under the pointer, sorting, the call tree. It reads only what is in
// the page, and puts text there as text.
"use strict";
(() => {
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // --- numbers, as the rest of the page writes them
  const gap = "\u202f";
  const digits = (v) => (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2));
  const bytes = (v) => {
    let unit = 0;
    for (; v >= 1023.5 && unit < 6; unit++) v /= 1024;
    return (unit ? digits(v) : v.toFixed(0)) + gap + ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit];
  };
  const time = (ns) => {
    if (ns >= 1e9) return (ns / 1e9).toFixed(ns < 1e11 ? 2 : 0) + gap + "s";
    return ns >= 1e6 ? digits(ns / 1e6) + gap + "ms" : digits(ns / 1e3) + gap + "µs";
  };
  const written = { bytes, rate: (v) => (100 * v).toFixed(1) + gap + "%" };

  // --- command lines
  for (const code of document.querySelectorAll(".try code.copy")) {
    const button = make("button", "copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        button.textContent = "selected";
      }
    });
    code.after(button);
  }

  // --- tables
  const sortBy = (table, heads, column) => {
    const head = heads[column];
    const value = (row) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.toLowerCase();
    };
    const number = head.classList.contains("n") || "v" in (table.tBodies[0].rows[0]?.cells[column].dataset ?? {});
    const current = head.ariaSort;
    const down = current ? current === "ascending" : number;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a), y = value(b);
      return (down ? -1 : 1) * (x < y ? -1 : x > y ? 1 : 0);
    });
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent) return;
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => sortBy(table, heads, column));
    });
  }

  // --- values under the pointer, or where the arrow keys lead
  const readout = (box, data, at) => {
    const from = data.start + at * data.step;
    box.replaceChildren(make("b", time(from)));
    const table = make("table"), body = make("tbody");
    let sum = 0;
    for (const series of [...data.series].reverse()) {
      const value = series.values[at];
      if (value === null || value === undefined || (data.total && value === 0)) continue;
      sum += value;
      const row = make("tr"), name = make("td");
      name.append(make("i", "", "swatch " + series.class), " ", make("span", series.name, "name"));
      row.append(name, make("td", written[data.unit](value), "n"));
      body.append(row);
    }
    if (data.total) {
      const row = make("tr");
      row.append(make("td", data.total), make("td", written[data.unit](sum), "n"));
      body.append(row);
    }
    table.append(body);
    box.append(table);
  };
  const follow = (svg) => {
    const data = JSON.parse(svg.dataset.plot), count = Math.max(...data.series.map((s) => s.values.length));
    const cursor = svg.querySelector(".cursor"), figure = svg.closest("figure");
    const place = () => svg.getBoundingClientRect();
    const box = make("div", "", "readout");
    box.hidden = true;
    box.setAttribute("aria-live", "polite");
    figure.append(box);
    let now = -1;
    const show = (at) => {
      now = Math.max(0, Math.min(count - 1, at));
      const part = (now + 0.5) / count, x = place().left - figure.getBoundingClientRect().left + part * place().width;
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, 100 * part + "%");
      cursor.setAttribute("visibility", "visible");
      readout(box, data, now);
      box.hidden = false;
      const beside = part < 0.5 ? x + 16 : x - box.offsetWidth - 4;
      box.style.left = Math.max(4, Math.min(beside, figure.clientWidth - box.offsetWidth - 4)) + "px";
    };
    const hide = () => {
      box.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (event) => {
      const part = (event.clientX - place().left) / place().width;
      if (part < 0 || part > 1) hide();
      else show(Math.floor(part * count));
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -count, End: count }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      show(now + step);
    });
  };
  document.querySelectorAll("svg.plot[data-plot]").forEach(follow);

  // --- the call tree
  const flames = document.querySelector(".flames");
  if (!flames) return;
  const tools = flames.querySelector(".tools"), search = tools.querySelector("input");
  const output = tools.querySelector("output"), reset = tools.querySelector("button");
  tools.hidden = false;
  flames.classList.add("live");
  const tell = (frame) => (output.textContent = frame.title);
  const label = (frame) => { // narrow frames come without
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", "4");
    text.setAttribute("y", "13");
    text.textContent = frame.name;
    frame.element.append(text);
  };
  const trees = [...flames.querySelectorAll("svg.flame")].map((svg) => {
    const frames = [...svg.querySelectorAll(".frame")].map((element) => ({
      element, x: parseFloat(element.getAttribute("x")), width: parseFloat(element.getAttribute("width")),
      depth: Number(element.dataset.depth), title: element.querySelector("title").textContent,
      name: element.querySelector("text")?.textContent ?? element.querySelector("title").textContent,
    }));
    const tree = { svg, frames, here: frames[0] };
    const within = (a, b) => a.x >= b.x - 1e-3 && a.x + a.width <= b.x + b.width + 1e-3;
    tree.zoom = (to) => {
      for (const frame of frames) {
        const above = frame.depth < to.depth && within(to, frame);
        const inside = frame.depth >= to.depth && within(frame, to);
        frame.element.setAttribute("display", above || inside ? "inline" : "none");
        frame.element.classList.toggle("above", above);
        if ((above || inside) && !frame.element.querySelector("text")) label(frame);
        frame.element.setAttribute("x", (above ? 0 : (100 * (frame.x - to.x)) / to.width) + "%");
        frame.element.setAttribute("width", (above ? 100 : (100 * frame.width) / to.width) + "%");
      }
      tree.go(to);
    };
    tree.go = (to) => {
      tree.here.element.classList.remove("here");
      tree.here = to;
      to.element.classList.add("here");
      tell(to);
    };
    const near = {
      ArrowDown: () => frames.find((f) => f.depth === tree.here.depth + 1 && within(f, tree.here)),
      ArrowUp: () => frames.find((f) => f.depth === tree.here.depth - 1 && within(tree.here, f)),
      ArrowRight: () => frames.filter((f) => f.depth === tree.here.depth && f.x > tree.here.x).sort((a, b) => a.x - b.x)[0],
      ArrowLeft: () => frames.filter((f) => f.depth === tree.here.depth && f.x < tree.here.x).sort((a, b) => b.x - a.x)[0],
    };
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") tree.zoom(tree.here);
      else if (event.key === "Escape") tree.zoom(frames[0]);
      else if (event.key in near) {
        const to = near[event.key]();
        if (to) tree.go(to);
      } else return;
      event.preventDefault();
    });
    for (const frame of frames) {
      frame.element.addEventListener("click", () => tree.zoom(frame));
      frame.element.addEventListener("pointerenter", () => tell(frame));
    }
    return tree;
  });
  reset.addEventListener("click", () => trees.forEach((tree) => tree.zoom(tree.frames[0])));
  search.addEventListener("input", () => {
    let pattern = null;
    try {
      pattern = search.value && new RegExp(search.value, "i");
    } catch {
      output.textContent = "no regular expression";
    }
    let found = 0;
    for (const tree of trees) {
      for (const frame of tree.frames) {
        const hit = Boolean(pattern) && frame.depth > 0 && pattern.test(frame.name);
        frame.element.classList.toggle("found", hit);
        if (hit && tree.svg.getBoundingClientRect().width > 0) found++;
      }
    }
    if (pattern) output.textContent = found + (found === 1 ? " frame" : " frames");
    else if (!search.value) output.textContent = "";
  });
})();
