"use strict";
// The data of the page, and what follows from it for a plan.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/// An element with a class and a text.
function element(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}

const micros = (us) =>
  us >= 1e6 ? (us / 1e6).toFixed(2) + " s" : us >= 1e3 ? (us / 1e3).toFixed(2) + " ms" : us.toFixed(2) + " µs";

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let k = 0;
  while (n >= 1024 && k < 3) { n /= 1024; k += 1; }
  return (k ? n.toFixed(1) : n) + " " + units[k];
}

/// The time of a kernel in one run, as text.
const timeText = (k) => (k.timed_with !== null ? "with " + k.timed_with : k.median_us === null ? "once" : micros(k.median_us));
const kernelTime = (k) => k.median_us ?? 0;
const totalTime = data.kernels.reduce((sum, k) => sum + kernelTime(k), 0)
  + data.calls.reduce((sum, c) => sum + c.median_us, 0);

/// Groups of plans: what is computed once stands with the plan that it is part of.
const groups = [];
data.plans.forEach((plan, number) => {
  const last = groups[groups.length - 1];
  if (last && data.plans[last[last.length - 1]].once) last.push(number);
  else groups.push([number]);
});

function groupName(group) {
  const plan = data.plans[group[group.length - 1]];
  const parts = plan.micro_batches > 1 ? `, in ${plan.micro_batches} micro-batches` : "";
  return (plan.heading || "start of the model") + parts;
}

/// The sub-graph that a group of plans is about, by its name in the layers; "" for the model itself.
function graphOf(group) {
  const heading = data.plans[group[0]].heading;
  const names = [...new Set(data.layers.map((l) => l.graph))].filter((g) => g);
  // A heading says `then_body of layer 'name' (If, opset8)`, a layer's graph `then_body of name`.
  const is = (g) => {
    const [kind, rest] = [g.slice(0, g.indexOf(" of ")), g.slice(g.indexOf(" of ") + 4)];
    return heading.startsWith(kind + " of ") && heading.includes("'" + rest.split(" in ")[0] + "'");
  };
  return names.find(is) ?? "";
}

/// What becomes of each layer of a graph in a group of plans.
function fates(group) {
  const fate = new Map();
  const put = (name, what) => {
    if (!fate.has(name)) fate.set(name, { kernels: [], folded: false, called: false });
    what(fate.get(name));
  };
  // Later segments of the same graph are shown with it.
  const graph = graphOf(group);
  for (const other of groups.filter((g) => graphOf(g) === graph)) {
    for (const number of other) {
      const plan = data.plans[number];
      if (other !== group && plan.heading === data.plans[group[0]].heading) continue;
      for (const k of plan.kernels) for (const layer of data.kernels[k].layers) put(layer, (f) => f.kernels.push(k));
      for (const layer of plan.folded) put(layer, (f) => (f.folded = true));
      for (const layer of plan.called) put(layer, (f) => (f.called = true));
    }
  }
  return fate;
}

/// Why a kernel was not fused with what reads its results.
function whyApart(kernel) {
  const plan = data.plans[kernel.plan];
  const own = new Set(kernel.stages.map((s) => s.target));
  const reasons = kernel.kind === "contraction" ? [["", "a contraction is a kernel of its own"]] : [];
  for (const pass of plan.passes) {
    for (const [name, reason] of pass.kept) if (own.has(name)) reasons.push([name + ": ", reason]);
  }
  return reasons;
}

/// What each pass made of the layers of a kernel: `[pass, stages before, stages after]`.
function passesOf(kernel) {
  const layers = new Set(kernel.layers);
  const of = (stages) => stages.filter((s) => s.layers.some((l) => layers.has(l))).map((s) => s.text);
  let before = null;
  const all = [];
  for (const pass of data.plans[kernel.plan].passes) {
    const after = pass.stages ? of(pass.stages) : before;
    if (before === null || after.join("\n") !== before.join("\n")) all.push([pass, before, after]);
    before = after;
  }
  return all;
}
