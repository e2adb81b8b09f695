"use strict";
// Time, roofline and memory, by Observable Plot.

const width = (view) => Math.max(360, byId(view).clientWidth - 40);
const kernelLabel = (k) => k.number + " " + (k.name.length > 30 ? k.name.slice(0, 28) + "…" : k.name);
const told = (k) => `kernel ${k.number}: ${k.layers.join(", ")}\n${k.how}\n${micros(kernelTime(k))}`
  + ` · ${rate(k.flops, k, "GFLOP/s")} · ${rate(k.bytes, k, "GB/s")}`;

function rate(count, k, unit) {
  const us = kernelTime(k);
  return us > 0 && count > 0 ? ((count * Math.max(1, k.calls)) / us / 1e3).toFixed(1) + " " + unit : "– " + unit;
}

function chart(view, title, figure, more) {
  byId(view).append(element("h2", "", title));
  if (more) byId(view).append(element("p", "dim", more));
  byId(view).append(figure);
}

/// Clicks on marks of a plot choose the kernel of that number.
function choosing(figure, kernels) {
  figure.addEventListener("click", () => {
    if (figure.value && figure.value.number !== undefined) onChoose({ kernel: figure.value.number });
  });
  figure.style.cursor = kernels.length ? "pointer" : "";
  return figure;
}

function drawTime() {
  byId("time").replaceChildren();
  const kinds = d3.rollups([...data.kernels.filter((k) => k.median_us !== null).map((k) => [k.kind, k.median_us]), ...data.calls.map((c) => ["called", c.median_us])],
    (rows) => [d3.sum(rows, (r) => r[1]), rows.length], (r) => r[0]);
  const table = kinds.map(([kind, [us, count]]) => ({ kind: `${kind} (${count})`, us, text: `${micros(us)}, ${((100 * us) / totalTime).toFixed(1)} %` }));
  chart("time", "By kind of kernel", Plot.plot({
    width: width("time"), height: 50 + 26 * table.length, marginLeft: 130, marginRight: 110, x: { label: "µs", grid: true }, y: { label: null },
    marks: [Plot.barX(table, { x: "us", y: "kind", fill: "var(--accent)", sort: { y: "-x" } }), Plot.text(table, { x: "us", y: "kind", text: "text", textAnchor: "start", dx: 5 })],
  }), `one run: ${micros(data.median_us)} as a whole, ${data.machine.threads} thread${data.machine.threads > 1 ? "s" : ""}`);
  const most = data.kernels.filter((k) => k.median_us > 0).sort((a, b) => b.median_us - a.median_us).slice(0, 60);
  chart("time", most.length < data.kernels.length ? `The ${most.length} kernels that take longest` : "By kernel", choosing(Plot.plot({
    width: width("time"), height: 60 + 20 * most.length, marginLeft: 230, marginRight: 60, x: { label: "µs", grid: true, axis: "top" }, y: { label: null },
    color: { legend: true, domain: kinds.map((k) => k[0]), scheme: "Tableau10" },
    marks: [
      Plot.barX(most, { x: "median_us", y: kernelLabel, fill: "kind", sort: { y: "-x" } }),
      Plot.text(most, { x: "median_us", y: kernelLabel, text: (k) => ((100 * k.median_us) / totalTime).toFixed(1) + " %", textAnchor: "start", dx: 4 }),
      Plot.tip(most, Plot.pointerY({ x: "median_us", y: kernelLabel, title: told })),
    ],
  }), most));
}

function drawRoofline() {
  byId("roofline").replaceChildren();
  const points = data.kernels.filter((k) => k.median_us > 0 && k.flops > 0 && k.bytes > 0).map((k) => ({
    ...k, intensity: k.flops / k.bytes, gflops: (k.flops * Math.max(1, k.calls)) / k.median_us / 1e3,
  }));
  const { f32_gflops: peak, copy_gbytes: copy, threads } = data.machine;
  if (!points.length) { chart("roofline", "Roofline", element("p", "dim", "No kernel computes with floats.")); return; }
  const low = Math.min(0.02, d3.min(points, (p) => p.intensity) / 2);
  const high = Math.max((peak / copy) * 20, d3.max(points, (p) => p.intensity) * 2);
  const bottom = Math.min(copy * low, d3.min(points, (p) => p.gflops)) / 1.5;
  const roof = (gflops) => [low, gflops / copy, high].map((x) => ({ x, y: Math.min(gflops, copy * x) }));
  const roofs = [Plot.line(roof(peak), { x: "x", y: "y", stroke: "var(--text)" }), Plot.text([{ x: high, y: peak }], { x: "x", y: "y", text: () => `${peak.toFixed(0)} GFLOP/s, one thread`, textAnchor: "end", dy: -7 })];
  if (threads > 1) {
    const all = peak * threads;
    roofs.push(Plot.line(roof(all), { x: "x", y: "y", stroke: "var(--dim)", strokeDasharray: "4 3" }), Plot.text([{ x: high, y: all }], { x: "x", y: "y", text: () => `${threads} threads`, textAnchor: "end", dy: -7, fill: "var(--dim)" }));
  }
  roofs.push(Plot.text([{ x: low, y: copy * low }], { x: "x", y: "y", text: () => `copies ${copy.toFixed(1)} GB/s`, textAnchor: "start", dy: -14, dx: 6 }));
  chart("roofline", "Roofline", choosing(Plot.plot({
    width: width("roofline"), height: Math.max(380, Math.min(640, width("roofline") * 0.7)), marginLeft: 60, marginTop: 30, grid: true,
    x: { type: "log", label: "operations per byte of the tensors →", domain: [low, high], ticks: 6, tickFormat: "~g" },
    y: { type: "log", label: "↑ GFLOP/s", domain: [bottom, peak * threads * 1.6], ticks: 6, tickFormat: "~g" },
    color: { legend: true, scheme: "Tableau10", domain: [...new Set(points.map((p) => p.kind))] }, r: { range: [2, 14] },
    marks: [...roofs, Plot.dot(points, { x: "intensity", y: "gflops", r: "median_us", fill: "kind", fillOpacity: 0.65, stroke: "kind" }), Plot.tip(points, Plot.pointer({ x: "intensity", y: "gflops", title: told }))],
  }), points), "Each dot is a kernel, larger if it takes longer. Operations are those on floats as the nest writes them, a function such as exp as one. Tensors are counted once: a kernel whose tensors stay in a cache may lie above the line of copies.");
}

function drawMemory(group) {
  byId("memory").replaceChildren();
  for (const number of group) {
    const plan = data.plans[number];
    const name = (plan.once ? "Once, before the first run: " : "") + bytes(plan.arena) + " of temporaries";
    if (!plan.buffers.length) { chart("memory", name, element("p", "dim", "Nothing is kept between the kernels of this plan.")); continue; }
    const live = [...plan.kernels, null].map((_, at) => ({ at, bytes: d3.sum(plan.buffers.filter((b) => b.first <= at && at <= b.last), (b) => b.bytes) }));
    const at = (k) => data.kernels[plan.kernels[Math.max(0, Math.min(plan.kernels.length - 1, Math.floor(k)))]];
    chart("memory", name, Plot.plot({
      width: width("memory"), height: 420, marginLeft: 70, x: { label: "kernel →", domain: [0, plan.kernels.length] }, y: { label: "↑ offset", tickFormat: bytes, domain: [0, plan.arena], grid: true },
      marks: [Plot.rect(plan.buffers, { x1: "first", x2: (b) => b.last + 1, y1: "offset", y2: (b) => b.offset + b.bytes, fill: (b) => (b.first * 7 + b.offset / 64) % 10, stroke: "var(--back)", inset: 0.3 }),
        Plot.tip(plan.buffers, Plot.pointer({ x: (b) => (b.first + b.last + 1) / 2, y: (b) => b.offset + b.bytes / 2, title: (b) => `${b.name}\n${bytes(b.bytes)} at ${b.offset}\nfrom kernel ${at(b.first).number} to ${at(b.last).number}` }))],
      color: { type: "categorical", scheme: "Tableau10" },
    }), "What lies where, and from which kernel to which it is needed. What never lives at the same time shares memory.");
    chart("memory", "In use", Plot.plot({
      width: width("memory"), height: 180, marginLeft: 70, x: { label: "kernel →" }, y: { label: null, tickFormat: bytes, grid: true },
      marks: [Plot.areaY(live, { x: "at", y: "bytes", curve: "step-after", fill: "var(--accent)", fillOpacity: 0.35 }), Plot.lineY(live, { x: "at", y: "bytes", curve: "step-after", stroke: "var(--accent)" })],
    }));
  }
}
