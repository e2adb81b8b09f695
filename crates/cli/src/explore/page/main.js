"use strict";
// The kernel that is chosen, with its code; keys, and what changes when something is chosen.

let group = groups.find((g) => !data.plans[g[g.length - 1]].heading) ?? groups[0];
let view = "graph";
let chosen = { kernel: undefined, layer: undefined };
/// Found so far of a search.
let foundNumber = 0;

const planOf = (kernel) => groups.find((g) => g.some((p) => data.plans[p].kernels.includes(kernel)));

function facts(rows) {
  const list = element("dl", "facts");
  for (const [name, value] of rows) {
    list.append(element("dt", "", name));
    const dd = element("dd");
    dd.append(value);
    list.append(dd);
  }
  return list;
}

function kernelLink(number) {
  const link = element("a", "", "kernel " + number);
  link.onclick = () => onChoose({ kernel: number, move: true });
  return link;
}

/// A box of lines of code under a heading.
function codeBox(id) {
  const box = element("div", "code");
  box.id = id;
  box.tabIndex = 0;
  return box;
}

/// The tensors of a kernel that a line of its nest reads or writes, by their numbers.
function accessed(kernel, line) {
  const is = ([name]) => {
    const quoted = JSON.stringify(name);
    const plain = line.split(/[^A-Za-z0-9_./[]+/).some((word) => word.split("[")[0] === name && word.includes("["));
    return plain || line.includes(quoted + "[");
  };
  return kernel.buffers.map((buffer, number) => (is(buffer) ? number : -1)).filter((n) => n >= 0);
}

function nestBox(kernel) {
  const box = codeBox("nest");
  kernel.stages.forEach((stage, number) => {
    stage.text.split("\n").forEach((line, at) => {
      const div = element("div", "", line);
      div.dataset.stage = number;
      div.dataset.tensors = ` ${accessed(kernel, line).join(" ")} `;
      if (at === 0) div.append(element("span", "layers", "   # " + stage.layers.join(", ")));
      box.append(div);
    });
  });
  return box;
}

/// How many loops each line of intermediate code is in: between a block and a jump back to it.
function clifDepths(lines) {
  const depth = lines.map(() => 0);
  const blocks = new Map();
  lines.forEach(([text, number], at) => {
    const head = number === null && /^ *(block\d+)/.exec(text);
    if (head) blocks.set(head[1], at);
    if (!/^ *(jump|brif|br_table) /.test(text)) return;
    for (const [block] of text.matchAll(/block\d+/g)) {
      for (let k = blocks.get(block) ?? Infinity; k <= at; k += 1) depth[k] += 1;
    }
  });
  return depth;
}

function clifBox(code) {
  const box = codeBox("clif");
  const depth = clifDepths(code.clif);
  code.clif.forEach(([text, number, stage], at) => {
    const div = element("div", "", "  ".repeat(depth[at]) + text);
    if (number !== null) div.dataset.clif = number;
    if (stage !== null) div.dataset.stage = stage;
    const tensor = number === null ? null : / region(\d+) /.exec(text);
    if (tensor) div.dataset.tensor = tensor[1];
    box.append(div);
  });
  return box;
}

/// How many loops each instruction of a function is in: between the target of a jump back and the jump.
function depths(lines) {
  const depth = lines.map(() => 0);
  lines.forEach(([, offset, , text], at) => {
    const jump = /^j\w+ (?:near |short )?0x([0-9A-Fa-f]+)$/.exec(text);
    const target = jump ? parseInt(jump[1], 16) : Infinity;
    if (target > offset) return;
    for (let k = at; k >= 0 && lines[k][1] >= target; k -= 1) depth[k] += 1;
  });
  return depth;
}

/// `owner` is the kernel that the code was made for, whose tensors have other names but the same order.
function asmBox(kernel, owner, code) {
  const box = codeBox("asm");
  const tensors = new Map();
  for (const [text, number] of code.clif) {
    const tensor = number === null ? null : / region(\d+) /.exec(text);
    if (tensor) tensors.set(number, tensor[1]);
  }
  // A note is what is done, the tensor, and how far from its start on.
  const ofNote = (note) => {
    const [, rest] = /^(?:load|store|prefetch|gather elements) (.*)$/.exec(note) ?? [];
    return owner.buffers.findIndex(([name]) => rest === name || rest?.startsWith(name + " "));
  };
  const functions = d3.group(code.asm, (line) => line[0]);
  for (const [number, lines] of functions) {
    box.append(element("div", "head", number === 0 ? "the kernel" : "vector loop of stage " + lines[0][4]));
    const depth = depths(lines);
    let note = "";
    lines.forEach(([, offset, hex, text, stage, clif, what], at) => {
      const div = element("div");
      div.append(element("span", "offset", offset.toString(16)), element("span", "bytes", hex.replace(/../g, "$& ").trim()));
      div.lastChild.title = hex;
      div.append("  ".repeat(depth[at]) + text.replace(/0x0+(?=[0-9A-F]+$)/, "0x"));
      const tensor = clif === null ? ofNote(what) : (tensors.get(clif) ?? -1);
      if (tensor >= 0) div.dataset.tensor = tensor;
      const told = clif === null && tensor >= 0 ? what.replace(owner.buffers[tensor][0], () => kernel.buffers[tensor][0]) : what;
      if (told && told !== note) div.append(element("span", "note", "; " + told));
      note = told;
      if (clif !== null) div.dataset.clif = clif;
      if (stage !== null) div.dataset.stage = stage;
      box.append(div);
    });
  }
  return box;
}

/// Shows what belongs to a line: brightly what is of the same instruction, or reaches the tensors of a line of the nest,
/// and all of the same stage.
function link(line, scroll) {
  const right = byId("right");
  right.querySelectorAll(".same, .in-stage").forEach((e) => e.classList.remove("same", "in-stage"));
  if (!line) return;
  const { stage, clif, tensor, tensors } = line.dataset;
  const mark = (selector, cls) => right.querySelectorAll(selector).forEach((e) => e.classList.add(cls));
  if (stage !== undefined) mark(`.code [data-stage="${stage}"]`, "in-stage");
  if (clif !== undefined) mark(`.code [data-clif="${clif}"]`, "same");
  else line.classList.add("same");
  const ofStage = stage === undefined ? "" : `[data-stage="${stage}"]`;
  if (tensor !== undefined) mark(`#nest ${ofStage}[data-tensors~="${tensor}"]`, "same");
  for (const number of tensors?.trim().split(" ") ?? []) mark(`.code ${ofStage}[data-tensor="${number}"]`, "same");
  if (!scroll) return;
  for (const box of right.querySelectorAll("#nest, #clif, #asm")) {
    if (box.contains(line)) continue;
    const other = box.querySelector(".same") ?? box.querySelector(".in-stage");
    if (other) box.scrollTop = other.offsetTop - box.offsetTop - box.clientHeight / 3;
  }
}

function passesPart(kernel) {
  const part = element("details");
  const all = passesOf(kernel);
  part.append(element("summary", "", `What the passes did: ${all.length - 1} of ${data.plans[kernel.plan].passes.length - 1} changed it`));
  for (const [pass, before, after] of all) {
    part.append(element("h3", "", before === null ? "as lowered, layer by layer" : pass.name + ` (${pass.ms.toFixed(2)} ms for the whole plan)`));
    const box = codeBox("");
    const old = new Set(before ?? []);
    const now = new Set(after);
    for (const text of before ?? []) if (!now.has(text)) text.split("\n").forEach((l) => box.append(element("div", "out", "- " + l)));
    for (const text of after) if (!old.has(text)) text.split("\n").forEach((l) => box.append(element("div", "", "+ " + l)));
    part.append(box);
  }
  return part;
}

function kernelFacts(kernel) {
  const rows = [["layers", kernel.layers.join(", ")], ["runs as", kernel.how + (kernel.threads > 1 ? `, shared by ${kernel.threads} threads` : "")]];
  if (kernel.timed_with !== null) {
    const counted = element("span", "", "counted with ");
    counted.append(kernelLink(kernel.timed_with));
    rows.push(["time", counted]);
  } else if (kernel.median_us === null) rows.push(["time", "runs once, before the first run"]);
  else rows.push(["time", `${micros(kernel.median_us)}, ${((100 * kernel.median_us) / totalTime).toFixed(1)} %` + (kernel.calls > 1 ? `, in ${kernel.calls} calls` : "") + ` · ${rate(kernel.flops, kernel, "GFLOP/s")} · ${rate(kernel.bytes, kernel, "GB/s")}`]);
  rows.push(["tensors", kernel.buffers.map(([name, n]) => `${name} (${bytes(n)})`).join(", ")]);
  if (kernel.packed_bytes) rows.push(["packed constants", bytes(kernel.packed_bytes)]);
  if (kernel.code) rows.push(["code", `${kernel.code.bytes} bytes, compiled in ${kernel.code.compile_ms.toFixed(2)} ms`]);
  if (kernel.same_code_as !== null) rows.push(["same code as", kernelLink(kernel.same_code_as)]);
  const apart = whyApart(kernel);
  if (apart.length) rows.push(["not fused further", apart.map(([name, reason]) => name + reason).join("; ")]);
  return facts(rows);
}

function showKernel(kernel) {
  const right = byId("right");
  right.replaceChildren(element("h2", "", `Kernel ${kernel.number} – ${kernel.name}`), kernelFacts(kernel));
  right.append(element("h2", "", "Nest"), nestBox(kernel), passesPart(kernel));
  const owner = kernel.same_code_as === null ? kernel : data.kernels[kernel.same_code_as];
  const code = owner.code;
  if (!code) {
    right.append(element("p", "dim", "A contraction kernel of the library computes this: its code is that of the library, and the same for all models."));
    return;
  }
  const linked = element("div");
  linked.id = "linked";
  const [left, rest] = [element("div"), element("div")];
  left.append(element("h2", "", "Cranelift's intermediate code"), clifBox(code));
  rest.append(element("h2", "", "Machine code"), asmBox(kernel, owner, code));
  linked.append(left, rest);
  right.append(linked);
}

function showLayer(layer) {
  const right = byId("right");
  const f = fates(group).get(layer.name);
  const why = f?.folded ? "It depends on constants alone: its value was computed while the model was compiled."
    : f?.called ? "It is called as a whole, between kernels."
      : ["Parameter", "Result", "Const"].includes(layer.type) ? "" : "Nothing is left of it: what reads it reads what it reads, or nothing does.";
  right.replaceChildren(element("h2", "", layer.name));
  right.append(layerFacts(layer), element("p", "dim", why));
}

function layerFacts(layer) {
  const rows = [["layer", `${layer.type}, ${layer.version}`], ["outputs", layer.outputs.join(", ") || "–"]];
  const kernels = fates(group).get(layer.name)?.kernels ?? [];
  if (kernels.length > 1) {
    const links = element("span");
    kernels.forEach((k) => links.append(kernelLink(k), " "));
    rows.push(["part of", links]);
  }
  if (layer.attributes.length) rows.push(["attributes", layer.attributes.map(([k, v]) => `${k}=${v}`).join(", ")]);
  return facts(rows);
}

function overview() {
  const right = byId("right");
  right.replaceChildren(element("h2", "", "The model"), facts([
    ["file", data.model.file], ["inputs", data.model.inputs.join(", ")], ["outputs", data.model.outputs.join(", ")],
    ["layers", data.layers.length], ["kernels", data.kernels.length + (data.plans_left_out ? `, and those of ${data.plans_left_out} more plans for other values of the run` : "")], ["one run", micros(data.median_us)],
  ]), element("h2", "", "Kernels"));
  const table = element("table");
  const head = element("tr");
  ["", "time", "", "bytes of code", "layers"].forEach((t) => head.append(element("th", "", t)));
  table.append(head);
  for (const number of group.flatMap((p) => data.plans[p].kernels)) {
    const k = data.kernels[number];
    const row = element("tr");
    const name = element("td");
    name.append(kernelLink(number));
    row.append(name, element("td", "number", timeText(k)), element("td", "number", k.median_us === null ? "" : ((100 * k.median_us) / totalTime).toFixed(1) + " %"));
    row.append(element("td", "number", k.code ? (k.same_code_as === null ? k.code.bytes : "as " + k.same_code_as) : k.kind), element("td", "", k.layers.slice(0, 6).join(", ") + (k.layers.length > 6 ? " …" : "")));
    table.append(row);
  }
  right.append(table);
}

onChoose = ({ kernel, layer, move }) => {
  if (kernel !== undefined && !group.some((p) => data.plans[p].kernels.includes(kernel))) showPlan(planOf(kernel), false);
  chosen = { kernel, layer };
  if (kernel !== undefined) {
    showKernel(data.kernels[kernel]);
    if (layer !== undefined) byId("right").querySelector("dl").after(element("h3", "", "Layer " + data.layers[layer].name), layerFacts(data.layers[layer]));
  } else if (layer !== undefined) showLayer(data.layers[layer]);
  markChosen(kernel, layer, move);
};

function show(next) {
  view = next;
  for (const tab of document.querySelectorAll("[role=tab]")) tab.setAttribute("aria-selected", tab.dataset.view === view);
  for (const id of ["graph", "time", "roofline", "memory"]) byId(id).hidden = id !== view;
  byId("graph-bar").hidden = view !== "graph";
  if (view === "time") drawTime();
  if (view === "roofline") drawRoofline();
  if (view === "memory") drawMemory(group);
}

function showPlan(next, withOverview) {
  group = next;
  byId("plan").value = groups.indexOf(group);
  drawGraph(group);
  if (view === "memory") drawMemory(group);
  if (withOverview) overview();
}

function step(by) {
  const all = group.flatMap((p) => data.plans[p].kernels);
  if (!all.length) return;
  const at = all.indexOf(chosen.kernel);
  onChoose({ kernel: all[(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by + all.length) % all.length], move: true });
}

function find() {
  const count = search(byId("search").value, foundNumber);
  byId("found").textContent = byId("search").value ? count + " found" : "";
  return count;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    byId("search").value = "";
    find();
    byId("right").querySelectorAll(".kept").forEach((e) => e.classList.remove("kept"));
    link(null);
    document.activeElement.blur();
    return;
  }
  const writes = event.target instanceof Element && event.target.matches("input, select");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    1: () => show("graph"), 2: () => show("time"), 3: () => show("roofline"), 4: () => show("memory"),
    "/": () => byId("search").focus(), j: () => step(1), k: () => step(-1), f: () => cy.fit(undefined, 20), "?": () => byId("help").showModal(),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

byId("right").addEventListener("mouseover", (event) => {
  if (byId("right").querySelector(".kept")) return;
  const line = event.target.closest("[data-stage], [data-clif]");
  if (line) link(line, false);
});
byId("right").addEventListener("click", (event) => {
  const line = event.target.closest("[data-stage], [data-clif]");
  if (!line) return;
  const was = line.classList.contains("kept");
  byId("right").querySelectorAll(".kept").forEach((e) => e.classList.remove("kept"));
  line.classList.toggle("kept", !was);
  link(line, true);
});
byId("search").addEventListener("input", () => { foundNumber = 0; show("graph"); find(); });
byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") { foundNumber += 1; find(); } });
byId("constants").addEventListener("change", () => drawGraph(group));
byId("fit").onclick = () => cy.fit(undefined, 20);
byId("help-button").onclick = () => byId("help").showModal();
byId("plan").addEventListener("change", (event) => showPlan(groups[Number(event.target.value)], true));
for (const tab of document.querySelectorAll("[role=tab]")) tab.onclick = () => show(tab.dataset.view);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawGraph(group));
new ResizeObserver(() => show(view)).observe(byId("left"));

cytoscape.use(cytoscapeDagre);
byId("name").textContent = data.model.name;
byId("about").textContent = `Written by Vinelift ${data.vinelift}. Times are medians on the machine that it ran on.`;
const legend = [[`background:${heat(totalTime)}`, "all the time"], [`background:${heat(totalTime * 0.1)}`, "a tenth"],
  ["border:1px dashed", "folded away, or with the code of another"], ["border:3px double", "in several kernels"]];
for (const [style, text] of legend) {
  const item = element("span");
  const box = element("i");
  box.style.cssText = style;
  item.append(box, text);
  byId("legend").append(item, " ");
}
groups.forEach((g, number) => byId("plan").append(new Option(groupName(g), number)));
byId("plan-choice").hidden = groups.length < 2;
showPlan(group, true);
show("graph");
