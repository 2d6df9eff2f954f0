"""The graph: an entity with its neighbours and facts, now or at a date, and every way to correct them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nanoclaw_memory.errors import NotFound
from nanoclaw_memory.interfaces.web.screen import Redirection, RenderedScreen, Screen, ScreenData, WebRequest
from nanoclaw_memory.rendering import visible_line

if TYPE_CHECKING:
    from nanoclaw_memory.memory import Memory

SHOWN = 100
STEPS = 25  # iterations of the layout


def show(memory: Memory, request: WebRequest) -> RenderedScreen:
    """Show an entity, or the warmest facts to begin with."""
    entity, as_of, depth = request.text("entity"), request.text("as_of"), request.number("depth", 1, 4) or 1
    values: dict[str, Any] = {
        "entity": entity,
        "as_of": as_of,
        "depth": depth,
        "around": None,
        "unknown": False,
    }
    if not entity:
        return RenderedScreen("graph.html", {**values, "top": memory.graph.top(limit=50)})
    try:
        around = memory.graph.show(entity, depth, as_of or None)
    except NotFound:
        return RenderedScreen(
            "graph.html", {**values, "unknown": True, "top": memory.graph.top(limit=50)}, 404
        )
    history = memory.graph.history(entity)
    days = {moment[:10] for fact in history for moment in (fact.valid_from, fact.valid_to) if moment}
    values |= {
        **request.slice(around.relations),
        "around": around,
        "facts": around.facts.get(around.center, []),
        "label": around.labels.get(around.center, around.center),
        "history": history[: -SHOWN - 1 : -1],
        "aliases": memory.graph.aliases(entity),
        "days": [*sorted(days), f"{memory.clock.now():%Y-%m-%d}"],
    }
    return RenderedScreen("graph.html", values)


def data(memory: Memory, request: WebRequest) -> ScreenData:
    """Return the neighbourhood with positions, for the drawing."""
    around = memory.graph.show(
        request.text("entity"), request.number("depth", 1, 4) or 1, request.text("as_of") or None
    )
    names = list(around.depths)
    number = {name: at for at, name in enumerate(names)}
    edges = [(number[subject], number[object_], own.predicate) for subject, object_, own in around.relations]
    places = positions([*around.depths.values()], [(start, end) for start, end, _ in edges])
    nodes = [
        {
            "label": visible_line(around.labels.get(name, name), 60),
            "depth": around.depths[name],
            "x": x,
            "y": y,
        }
        for name, (x, y) in zip(names, places, strict=True)
    ]
    return ScreenData(
        {"nodes": nodes, "edges": [(start, end, visible_line(word, 40)) for start, end, word in edges]}
    )


def change(memory: Memory, request: WebRequest) -> Redirection:
    """Set, retire or reject a fact; relate or unrelate; name or merge."""
    entity, key, value, other = (request.text(name) for name in ("entity", "key", "value", "other"))
    graph = memory.graph
    acts: dict[str, Callable[[], object]] = {
        "set": lambda: graph.upsert(entity, key, value, valid_from=request.text("valid_from")),
        "retire": lambda: graph.remove(entity, key, value),
        "reject": lambda: graph.reject(entity, key, value),
        "relate": lambda: graph.relate(entity, key, value),
        "unrelate": lambda: graph.unrelate(entity, key, value),
        "alias": lambda: graph.alias(other, entity),
        "unalias": lambda: graph.unalias(other),
    }
    request.act(acts)()
    return Redirection(f"/graph?entity={quote(request.text('shown') or entity)}", "changed")


def positions(depths: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Compute a position for each node, the same for the same graph: rings first, then repulsion and attraction by
    edges.
    """
    import numpy as np

    count = len(depths)
    angles = np.arange(count) * 2.399963  # the golden angle spreads a ring however many are on it
    rings = np.asarray(depths, dtype=np.float32)[:, None]
    places = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32) * rings
    if count < 3 or not edges:
        return [(float(x), float(y)) for x, y in places]
    ends = np.asarray(edges)
    ideal = 1.0 / np.sqrt(count) * 2
    for step in range(STEPS):
        # Each is pushed from each by ideal²/distance; the sum over all others is a product of matrices.
        lengths = (places**2).sum(1)
        near = ideal**2 / (lengths[:, None] + lengths[None, :] - 2 * places @ places.T + 0.01)
        push = places * near.sum(1)[:, None] - near @ places
        along = places[ends[:, 1]] - places[ends[:, 0]]
        pull = along * (np.sqrt((along**2).sum(1)) / ideal)[:, None]
        force = push
        np.add.at(force, ends[:, 0], pull)
        np.add.at(force, ends[:, 1], -pull)
        length = np.sqrt((force**2).sum(1))[:, None] + 1e-9
        places = places + force / length * np.minimum(length, 0.3 * (1 - step / STEPS))
    return [(round(float(x), 4), round(float(y), 4)) for x, y in places]


SCREENS = (
    Screen("GET", "/graph", show),
    Screen("GET", "/graph/data", data),
    Screen("POST", "/graph", change),
)
