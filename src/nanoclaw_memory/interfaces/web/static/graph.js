// Draws the neighbourhood that the server placed, and turns the slider over time; the tables below say the same.
(() => {
  const place = document.querySelector("#drawing");
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() || "#222";
  const shades = ["#1f5fa8", "#3f8f5a", "#b3761b", "#8a5aa8", "#777777"];

  async function draw() {
    const answer = await fetch(place.dataset.source);
    if (!answer.ok) return;
    const { nodes, edges } = await answer.json();
    const graph = new graphology.MultiGraph();
    nodes.forEach((node, at) => graph.addNode(at, {
      x: node.x, y: node.y, label: node.label, size: node.depth ? 7 : 12, color: shades[Math.min(node.depth, 4)],
    }));
    edges.forEach(([start, end, label]) => graph.addEdge(start, end, { label, size: 1.5, color: "#8b949e" }));
    const drawn = new Sigma(graph, place, {
      labelColor: { color: ink }, edgeLabelColor: { color: ink }, renderEdgeLabels: edges.length < 40, labelRenderedSizeThreshold: 0,
      allowInvalidContainer: true,
    });
    drawn.on("clickNode", ({ node }) => { location.href = place.dataset.link + encodeURIComponent(nodes[node].label); });
    place.dataset.nodes = nodes.length;
  }

  const slider = document.querySelector("#slider");
  if (slider) {
    const range = slider.querySelector("input");
    const days = range.dataset.days.split(" ");
    const form = document.querySelector("#asked");
    slider.hidden = false;
    range.addEventListener("input", () => { slider.querySelector("output").textContent = days[range.value]; });
    range.addEventListener("change", () => {
      form.elements.as_of.value = Number(range.value) === days.length - 1 ? "" : days[range.value];
      form.submit();
    });
  }
  if (place && window.Sigma && window.graphology) draw();
})();
