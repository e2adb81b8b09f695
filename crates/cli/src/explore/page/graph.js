"use strict";
// The graph of layers, by Cytoscape and dagre: kernels are frames around their layers.

let cy = null;
let onChoose = () => {};

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
/// From the page's ground to red, by the share of the time.
function heat(us) {
  if (!us || !totalTime) return isDark() ? "#2a313c" : "#eef1f5";
  const scale = d3.scaleLinear().domain([0, 0.02, 0.1, 0.4, 1]).clamp(true);
  const colors = isDark()
    ? ["#2a313c", "#4d3a2a", "#7a4520", "#b3441f", "#e03131"]
    : ["#eef1f5", "#ffeccc", "#ffc078", "#ff8a5c", "#fa5252"];
  return scale.range(colors)(us / totalTime);
}

function elements(group, withConstants) {
  const graph = graphOf(group);
  const fate = fates(group);
  const shown = [];
  const frames = new Map();
  data.layers.forEach((layer, index) => {
    if (layer.graph !== graph || (layer.type === "Const" && !withConstants)) return;
    const f = fate.get(layer.name) ?? { kernels: [], folded: false, called: false };
    // A layer of several kernels stands in the one that takes longest.
    const kernel = d3.greatest(f.kernels, (k) => kernelTime(data.kernels[k]));
    const classes = [layer.type === "Parameter" || layer.type === "Result" ? "port" : ""];
    if (layer.type === "Const" || f.folded) classes.push("folded");
    if (f.called) classes.push("called");
    if (f.kernels.length > 1) classes.push("shared");
    if (kernel === undefined && !f.called && !f.folded && !["Parameter", "Result", "Const"].includes(layer.type)) classes.push("absent");
    const marks = (f.kernels.length > 1 ? " ×" + f.kernels.length : "") + (f.folded ? " (folded)" : "");
    const label = layer.type + marks + (layer.name.length > 26 ? "\n" + layer.name.slice(0, 24) + "…" : "\n" + layer.name);
    const call = data.calls.find((c) => f.called && c.layer === layer.name);
    const node = { data: { id: "l" + index, label, layer: index, us: call ? call.median_us : kernel === undefined ? 0 : kernelTime(data.kernels[kernel]) } };
    if (kernel !== undefined) {
      node.data.parent = "k" + kernel;
      node.data.kernel = kernel;
      frames.set(kernel, (frames.get(kernel) ?? 0) + 1);
    }
    shown.push({ ...node, classes: classes.join(" ").trim(), index });
  });
  const known = new Set(shown.map((n) => n.index));
  const parents = [...frames.keys()].map((k) => ({
    data: { id: "k" + k, kernel: k, us: kernelTime(data.kernels[k]), label: `kernel ${k}  ${timeText(data.kernels[k])}` },
    classes: "kernel" + (data.kernels[k].same_code_as !== null ? " same" : ""),
  }));
  const edges = [];
  for (const node of shown) {
    for (const input of new Set(data.layers[node.index].inputs)) {
      if (known.has(input)) edges.push({ data: { id: "e" + input + "-" + node.index, source: "l" + input, target: "l" + node.index } });
    }
  }
  return [...parents, ...shown.map(({ data, classes }) => ({ data, classes })), ...edges];
}

function graphStyle() {
  const css = getComputedStyle(document.documentElement);
  const [text, line, accent, back, dim] = ["--text", "--line", "--accent", "--back", "--dim"].map((v) => css.getPropertyValue(v).trim());
  return [
    { selector: "node", style: { shape: "round-rectangle", label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "font-size": 11, color: text, width: 150, height: 36, "background-color": (n) => heat(n.data("us")), "border-width": 1, "border-color": line } },
    { selector: ".port", style: { shape: "round-tag", "border-color": accent } },
    { selector: ".folded", style: { "border-style": "dashed", "background-opacity": 0.35, color: dim } },
    { selector: ".absent", style: { "border-style": "dotted", "background-opacity": 0.35, color: dim } },
    { selector: ".called", style: { shape: "cut-rectangle", "border-color": text } },
    { selector: ".shared", style: { "border-style": "double", "border-width": 4 } },
    { selector: ".kernel", style: { "text-valign": "top", "text-halign": "center", "font-size": 10, "background-opacity": 0.45, padding: 10, "border-color": line, "border-width": 1.5 } },
    { selector: ".kernel.same", style: { "border-style": "dashed" } },
    { selector: "edge", style: { width: 1.2, "line-color": dim, "target-arrow-color": dim, "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier", opacity: 0.7 } },
    { selector: ".chosen", style: { "border-color": accent, "border-width": 4 } },
    { selector: ".found", style: { "border-color": accent, "border-width": 5, "border-style": "solid", "background-opacity": 1 } },
    { selector: ".faded", style: { opacity: 0.25 } },
    { selector: "core", style: { "active-bg-opacity": 0 } },
  ].map((rule) => (rule.selector === "core" ? rule : { ...rule, style: { ...rule.style, ...(rule.selector === "node" ? { "text-outline-color": back, "text-outline-width": 0 } : {}) } }));
}

function drawGraph(group) {
  if (cy) cy.destroy();
  cy = cytoscape({
    container: byId("graph"),
    elements: elements(group, byId("constants").checked),
    style: graphStyle(),
    layout: { name: "dagre", rankDir: "TB", nodeSep: 18, rankSep: 34, edgeSep: 8, animate: false, fit: true, padding: 20 },
    minZoom: 0.02, maxZoom: 3, boxSelectionEnabled: false, autoungrabify: true,
  });
  cy.on("tap", "node", (event) => {
    const node = event.target;
    const layer = node.data("layer");
    onChoose({ kernel: node.data("kernel"), layer });
  });
  start();
}

/// A small graph as a whole; of a large one the beginning, so that it can be read.
function start() {
  cy.fit(undefined, 20);
  if (cy.zoom() < 0.45) {
    cy.zoom(0.7);
    const box = cy.elements().boundingBox();
    cy.pan({ x: cy.width() / 2 - ((box.x1 + box.x2) / 2) * 0.7, y: 30 - box.y1 * 0.7 });
  }
  if (cy.zoom() > 1.3) { cy.zoom(1.3); cy.center(); }
}

function markChosen(kernel, layer, move) {
  if (!cy) return;
  cy.nodes(".chosen").removeClass("chosen");
  const node = cy.getElementById(kernel === undefined ? "l" + layer : "k" + kernel);
  node.addClass("chosen");
  if (move && node.nonempty()) cy.animate({ center: { eles: node }, duration: 150 });
}

/// The layers whose name or type has the text; shows the one of this number among them.
function search(text, number) {
  cy.elements().removeClass("found faded");
  text = text.trim().toLowerCase();
  if (!text) return 0;
  const is = (layer) => layer.name.toLowerCase().includes(text) || layer.type.toLowerCase().includes(text);
  const found = cy.nodes("[layer]").filter((n) => is(data.layers[n.data("layer")]));
  cy.nodes("[layer]").not(found).addClass("faded");
  found.addClass("found");
  if (found.nonempty()) {
    const node = found[number % found.length];
    if (cy.zoom() < 0.5) cy.zoom(0.8);
    cy.center(node);
  }
  return found.length;
}
