
"use strict";
(function () {
  const doc = JSON.parse(document.getElementById("data").textContent).result;
  const ms = ns => (ns >= 1e9 ? (ns / 1e6).toFixed(0) : (ns / 1e6).toPrecision(3)) + " ms";

  // Mean of one column over the tokens of a bar.
  function mean(column, from, to) {
    let sum = 0;
    for (let i = from; i < to; i++) sum += column[i];
    return sum / (to - from);
  }

  function describe(run, bar, size) {
    const t = run.tokens, from = bar * size, to = Math.min(from + size, t.token.length);
    const name = to - from > 1 ? "tokens " + t.token[from] + " to " + t.token[to - 1] + ", mean" : "token " + t.token[from];
    const parts = ["attention", "predict", "io", "memory", "ffn", "other"]
      .map(p => p + " " + ms(mean(t.parts_ns[p], from, to)));
    return run.kind + ", " + name + ": latency " + ms(mean(t.latency_ns, from, to)) + "; " + parts.join(", ");
  }

  for (const svg of document.querySelectorAll("svg.timeline")) {
    const d = svg.dataset, run = doc.runs[+d.run], bars = +d.bars, x0 = +d.x0, step = (+d.x1 - x0) / bars;
    const readout = svg.closest("figure").querySelector(".readout");
    const cursor = document.createElementNS(svg.namespaceURI, "rect");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y", d.y0);
    cursor.setAttribute("height", +d.y1 - +d.y0);
    cursor.setAttribute("width", 0);
    svg.append(cursor);
    let at = 0;

    function show(bar) {
      at = Math.max(0, Math.min(bars - 1, bar));
      cursor.setAttribute("x", x0 + at * step);
      cursor.setAttribute("width", step);
      readout.textContent = describe(run, at, +d.size);
    }

    svg.addEventListener("pointermove", e => {
      const box = svg.getBoundingClientRect();
      const x = (e.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      show(Math.floor((x - x0) / step));
    });
    svg.addEventListener("focus", () => show(at));
    svg.addEventListener("keydown", e => {
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars - 1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      show(to);
    });
  }
})();
