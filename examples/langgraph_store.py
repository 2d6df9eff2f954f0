"""LangGraph's long-term store on our database.

python examples/langgraph_store.py [HOME]
"""

from __future__ import annotations

import sys

from nanoclaw_memory import Memory
from nanoclaw_memory.interfaces.sdk.langgraph import MemoryStore

with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
    memory.init()
    store = MemoryStore(memory)  # graph.compile(store=store)
    store.put(("users", "mara"), "food", {"text": "likes green tea"})
    for item in store.search(("users", "mara"), query="what tea does she like?"):
        print(item.key, item.value, f"{item.score:.2f}")
