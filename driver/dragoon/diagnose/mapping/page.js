"use strict";
// Draws the map from the data in the page. Text reaches the document as text nodes only.

const map = JSON.parse(document.getElementById("data").textContent);
const STATES = ["whole", "shared", "mig", "free", "unusable"];
const WORDS = {
  whole: "held whole", shared: "held in shares", mig: "held in MIG instances", free: "free",
  unusable: "unusable (tainted)",
};
const LARGE = 64;   // so many GPUs are drawn with text
const OPEN = 640;   // so many GPUs are drawn at once, without a click on their group
const BLOCK = 32;   // nodes without any place are grouped by name, so many together
const LISTED = 200; // so many lines of a list are shown
const chosenStates = new Set();
let chosen = null;

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

function all(list) { return list || []; }

function gib(bytes) { return bytes ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : "size not known"; }

// One record for each GPU, with what the page needs of its node.
const cards = map.nodes.flatMap((node) => all(node.cards).map((card) => {
  const model = all(node.models)[card.model || 0] || {};
  const holds = all(card.holds).map((hold) => ({ ...hold, by: map.claims[hold.claim] }));
  const words = [node.name, ...Object.values(node.places || {}), card.address, card.state, model.product,
    ...all(card.taints), ...all(card.forms)];
  for (const { by, device } of holds) words.push(by.name, by.gang, device, ...all(by.pods));
  return {
    ...card, node, model, holds, fill: card.fill || 0,
    domain: card.domain === undefined ? "" : node.domains[card.domain],
    text: words.filter(Boolean).join("\n").toLowerCase(),
  };
}));
const byNode = new Map(map.nodes.map((node) => [node, []]));
for (const card of cards) byNode.get(card.node).push(card);

function groupings() {
  const names = [...new Set(map.nodes.flatMap((node) => Object.keys(node.places || {})))];
  const values = (name) => new Set(map.nodes.map((node) => (node.places || {})[name]));
  const useful = names.filter((name) => name !== "state" && values(name).size > 1);
  return [...useful.sort((a, b) => values(b).size - values(a).size), "name", "state"];
}

function groupsBy(key) {
  const found = new Map();
  const put = (name, node) => found.set(name, [...all(found.get(name)), node]);
  if (key !== "name") {
    for (const node of map.nodes) put((node.places || {})[key] || "(without)", node);
    return [...found].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  }
  for (let start = 0; start < map.nodes.length; start += BLOCK) {
    const block = map.nodes.slice(start, start + BLOCK);
    const last = block[block.length - 1].name;
    found.set(block.length > 1 ? `${block[0].name} to ${last}` : last, block);
  }
  return [...found];
}

function tally(list) {
  const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const card of list) counts[card.state] += 1;
  return counts;
}

function drawBar(into, list) {
  const counts = tally(list);
  into.replaceChildren(...STATES.filter((state) => counts[state]).map((state) => {
    const part = make("span", state);
    part.style.width = `${(100 * counts[state]) / list.length}%`;
    part.title = `${counts[state]} ${WORDS[state]}`;
    return part;
  }));
}

function matcher() {
  const terms = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!terms.length && !chosenStates.size) return null;
  return (card) => (!chosenStates.size || chosenStates.has(card.state))
    && terms.every((term) => card.text.includes(term));
}

function holderName(card) {
  if (!card.holds.length) return card.state === "free" ? "" : card.state;
  const first = card.holds[0].by;
  const name = first.gang || all(first.pods)[0] || first.name;
  return card.holds.length > 1 ? `${name} and ${card.holds.length - 1} more` : name;
}

function drawCard(card, matches) {
  const element = make("button", `card ${card.state}`);
  element.type = "button";
  if (all(card.taints).length) element.classList.add("tainted");
  if (matches && !matches(card)) element.classList.add("miss");
  if (chosen === card) element.classList.add("chosen");
  const said = `${card.node.name} ${card.address}: ${WORDS[card.state]}${card.fill ? `, ${card.fill} %` : ""}`;
  element.title = said;
  element.setAttribute("aria-label", said);
  const fill = make("span", "fill");
  fill.style[cards.length <= LARGE ? "width" : "height"] = `${card.fill}%`;
  if (cards.length <= LARGE) {
    element.append(make("b", "", card.address), make("span", "", card.model.product || "unknown product"),
      make("span", "faint", gib(card.model.memory)), make("span", "", holderName(card) || "free"));
  }
  element.append(fill);
  element.addEventListener("click", () => {
    chosen = card;
    document.querySelectorAll(".chosen").forEach((one) => one.classList.remove("chosen"));
    element.classList.add("chosen");
    drawDetail(card);
  });
  return element;
}

function drawNode(node, matches) {
  const title = make("h3", "", node.name);
  const state = (node.places || {}).state;
  const marks = [state && !["schedulable", "not known"].includes(state) ? state : "", ...all(node.fences)];
  if (marks.some(Boolean)) title.append(" ", make("span", "mark", marks.filter(Boolean).join(", ")));
  const row = make("div", "cards");
  let domain = null;
  const ordered = [...byNode.get(node)].sort((a, b) => a.domain.localeCompare(b.domain) || a.address.localeCompare(b.address));
  for (const card of ordered) {
    if (!card.domain) { row.append(drawCard(card, matches)); continue; }
    if (!domain || domain.dataset.of !== card.domain) {
      domain = make("div", "domain");
      domain.dataset.of = card.domain;
      domain.title = `NVLink domain ${card.domain}`;
      if (cards.length <= LARGE) domain.append(make("div", "caption", `NVLink domain ${card.domain}`));
      row.append(domain);
    }
    domain.append(drawCard(card, matches));
  }
  return make("div", "node", title, row);
}

function drawGroup([name, nodes], matches, open) {
  const members = nodes.flatMap((node) => byNode.get(node));
  const bar = make("div", "bar");
  drawBar(bar, members);
  const counts = tally(members);
  const figures = [`${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`, `${counts.free} of ${members.length} GPUs free`];
  if (counts.unusable) figures.push(`${counts.unusable} unusable`);
  if (matches) figures.push(`${members.filter(matches).length} match`);
  const details = make("details", "group", make("summary", "", make("span", "name", name), bar,
    make("span", "figures", figures.join(" · "))));
  const body = make("div", "body");
  details.append(body);
  details.addEventListener("toggle", () => {
    if (!details.open || body.childElementCount) return;
    const shown = matches ? nodes.filter((node) => byNode.get(node).some(matches)) : nodes;
    body.append(...shown.map((node) => drawNode(node, matches)));
  });
  details.open = open;
  return details;
}

function draw() {
  const matches = matcher();
  const hits = matches ? cards.filter(matches) : cards;
  const touched = new Set(hits.map((card) => card.node));
  const groups = groupsBy(document.getElementById("group").value)
    .filter(([, nodes]) => !matches || nodes.some((node) => touched.has(node)));
  let shown = 0;
  for (const node of touched) shown += byNode.get(node).length;
  document.getElementById("hits").textContent = matches ? `${hits.length} of ${cards.length} GPUs` : "";
  const into = document.getElementById("nodes");
  into.classList.toggle("large", cards.length <= LARGE);
  into.replaceChildren(...groups.map((group) => drawGroup(group, matches, shown <= OPEN)));
  if (!groups.length) into.append(make("p", "faint", matches ? "No GPU matches." : "No GPU is published."));
}

function terms(pairs) {
  return make("dl", "", ...pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
}

function drawDetail(card) {
  const pairs = [["Node", card.node.name], ["Product", card.model.product], ["Memory", gib(card.model.memory)],
    ["NVLink domain", card.domain], ["State", `${WORDS[card.state]}${card.fill ? `, ${card.fill} %` : ""}`],
    ["Forms", all(card.forms).slice(0, 12).join(", ")], ["Taints", all(card.taints).join(", ")]];
  const holds = card.holds.map(({ by, device, memory }) => make("div", "gang", terms([["Claim", by.name],
    ["Pods", all(by.pods).join(", ")], ["Gang", by.gang], ["Device", device], ["Memory", gib(memory)]])));
  document.getElementById("detail").replaceChildren(make("h2", "", card.address), terms(pairs), ...holds);
}

function search(text) {
  document.getElementById("search").value = text;
  draw();
}

function drawGangs() {
  if (!map.gangs.length) return;
  const waits = (gang) => gang.message || gang.lines.length;
  const ordered = [...map.gangs].sort((a, b) => Boolean(waits(b)) - Boolean(waits(a)));
  const rows = ordered.slice(0, LISTED).map((gang) => {
    const name = make("button", "", gang.name);
    name.type = "button";
    name.addEventListener("click", () => search(gang.name));
    const row = make("div", waits(gang) ? "gang waits" : "gang", name,
      make("span", "phase", ` ${gang.phase || "not seen yet"} ${gang.ready}/${gang.size}`));
    if (gang.message) row.append(make("p", "", gang.message));
    if (gang.change) row.append(make("p", "", make("b", "", "What would help: "), gang.change));
    if (gang.lines.length) {
      const lines = make("ul", "", ...gang.lines.map((line) => make("li", "", line)));
      row.append(make("details", "why", make("summary", "", "why, line by line"), lines));
    }
    return row;
  });
  document.getElementById("gangs").append(make("h2", "", `Gangs (${map.gangs.length})`), ...rows, ...more(map.gangs));
}

function more(list) {
  return list.length > LISTED ? [make("p", "faint", `and ${list.length - LISTED} more`)] : [];
}

function drawList(id, title, list, item) {
  if (!list.length) return;
  document.getElementById(id).append(make("h2", "", title), make("ul", "", ...list.slice(0, LISTED).map(item)), ...more(list));
}

function drawLegend() {
  const counts = tally(cards);
  const chips = STATES.map((state) => {
    const chip = make("button", "chip", make("i", `swatch ${state}`), `${WORDS[state]} `, make("span", "faint", String(counts[state])));
    chip.type = "button";
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      if (!chosenStates.delete(state)) chosenStates.add(state);
      chip.setAttribute("aria-pressed", String(chosenStates.has(state)));
      draw();
    });
    return chip;
  });
  const taint = make("span", "chip faint", make("i", "swatch tainted"), "tainted");
  const frame = make("span", "chip faint", make("i", "swatch"), "frame: one NVLink domain");
  document.getElementById("legend").append(...chips, taint, frame);
}

function start() {
  const group = document.getElementById("group");
  group.append(...groupings().map((name) => {
    const option = make("option", "", name);
    option.value = name;
    return option;
  }));
  group.addEventListener("change", draw);
  document.getElementById("search").addEventListener("input", draw);
  const root = document.documentElement;
  if (matchMedia("(prefers-color-scheme: dark)").matches) root.dataset.theme = "dark";
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  });
  drawBar(document.getElementById("total"), cards);
  drawLegend();
  drawGangs();
  drawList("waiting", `Pods that wait (${map.waiting.length})`, map.waiting, (name) => {
    const [namespace, pod] = name.split("/");
    return make("li", "", `${name}: `, make("code", "", `dragoon explain pod/${pod} -n ${namespace}`));
  });
  drawList("notes", "Not seen", map.notes, (note) => make("li", "", note));
  draw();
}

start();
