"""Write the graph of multilingual-e5-small without its weights: `multilingual.onnx`, which the product gives them to.

    python training/multilingual.py [--out FILE]

The weights are 4-bit in blocks of 32 with a scale each, as `MatMulNBits` takes them. Their file is fetched by
`ncm models install multilingual-e5-small`; nothing of it is in here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from onnx import TensorProto, helper

from nanoclaw_memory.providers.multilingual import BLOCK, GRAPH, HIDDEN, LAYERS

HEADS, EPSILON = 12, 1e-12
MICROSOFT = "com.microsoft"


class Graph:
    """Nodes and the tensors that they are given from outside."""

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.given: list[object] = []

    def add(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def tensor(self, name: str, kind: int, *dims: int) -> str:
        made = TensorProto(name=name, data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
        place = made.external_data.add()
        place.key, place.value = "location", "given by the product"
        self.given.append(made)
        return name

    def numbers(self, name: str, count: int = HIDDEN) -> str:
        return self.tensor(name, TensorProto.FLOAT, count)

    def linear(self, x: str, name: str, rows: int = HIDDEN, columns: int = HIDDEN) -> str:
        weights = self.tensor(f"{name}.w", TensorProto.UINT8, rows, columns // BLOCK, BLOCK // 2)
        scales = self.numbers(f"{name}.s", rows * columns // BLOCK)
        # Level 4: activations as 8-bit integers, block by block.
        sizes = {"K": columns, "N": rows, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        return self.add("MatMulNBits", [x, weights, scales], f"{name}.y", domain=MICROSOFT, **sizes)

    def normalised(self, x: str, before: str, name: str, bias: str, output: str) -> str:
        inputs = [x, before, self.numbers(f"{name}.w"), self.numbers(f"{name}.b"), self.numbers(bias)]
        return self.add("SkipLayerNormalization", inputs, output, domain=MICROSOFT, epsilon=EPSILON)

    def layer(self, x: str, name: str) -> str:
        asked = [self.linear(x, f"{name}.{part}") for part in "qkv"]
        inputs = [*asked, self.numbers(f"{name}.qkv.b", 3 * HIDDEN)]
        seen = self.add("MultiHeadAttention", inputs, f"{name}.seen", domain=MICROSOFT, num_heads=HEADS)
        x = self.normalised(self.linear(seen, f"{name}.ao"), x, f"{name}.aln", f"{name}.ao.b", f"{name}.x")
        wide = self.linear(x, f"{name}.fi", 4 * HIDDEN)
        bent = self.add(
            "BiasGelu", [wide, self.numbers(f"{name}.fi.b", 4 * HIDDEN)], f"{name}.bent", domain=MICROSOFT
        )
        narrow = self.linear(bent, f"{name}.fo", HIDDEN, 4 * HIDDEN)
        return self.normalised(narrow, x, f"{name}.oln", f"{name}.fo.b", f"{name}.out")


def graph() -> bytes:
    """Embedded pieces to the mean of their last states."""
    made = Graph()
    first = ["embedded", made.numbers("emb.ln.w"), made.numbers("emb.ln.b")]
    x = made.add("LayerNormalization", first, "x", axis=-1, epsilon=EPSILON)
    for number in range(LAYERS):
        x = made.layer(x, f"l{number}")
    made.add("ReduceMean", [x, "axes"], "mean", keepdims=0)
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    embedded = helper.make_tensor_value_info("embedded", TensorProto.FLOAT, [1, "pieces", HIDDEN])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, [1, HIDDEN])
    whole = helper.make_graph(made.nodes, "multilingual-e5-small", [embedded], [mean], [*made.given, axes])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=10).SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GRAPH)
    parser.parse_args().out.write_bytes(graph())


if __name__ == "__main__":
    main()
