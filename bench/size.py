"""How large the code is, and in what pieces: files, lines, functions, classes of one name, modules of one importer.

    python bench/size.py                          our own src
    python bench/size.py ../old/src ../other/src  other people's code by the same rule
    python bench/size.py --check                  exit 1 when our src is above its limits

Code lines are the lines of a file without blank lines, docstrings and lines with a comment, be it at their end. The
rule is kept as it was when the first figures were published, so that they stay comparable: the end of a file counts as
one blank line, and a blank line inside a docstring counts twice. A plain count (`plain`) is about 3.5 % higher.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
LIMITS = {"files": 230, "code": 24_000, "median": 7, "p90": 18, "longest": 69}
SMALL = 60

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file, counted."""

    path: Path
    name: str  # dotted
    lines: int
    code: int
    plain: int
    functions: tuple[tuple[int, str, bool], ...]  # lines, name, whether its return is typed
    classes: tuple[str, ...]
    handlers: int
    broad: int
    imports: frozenset[str]


@dataclass
class Size:
    """What is printed about one tree."""

    modules: list[Module] = field(default_factory=list)

    @property
    def code(self) -> int:
        return sum(module.code for module in self.modules)

    @property
    def functions(self) -> list[int]:
        return sorted(lines for module in self.modules for lines, _, _ in module.functions) or [0]

    @property
    def p90(self) -> int:
        return self.functions[int(len(self.functions) * 0.9)]

    def share_of_typed_returns(self) -> float:
        typed = [is_typed for module in self.modules for _, _, is_typed in module.functions]
        return sum(typed) / max(len(typed), 1)

    def classes_of_one_name(self) -> dict[str, int]:
        counts = Counter(name for module in self.modules for name in module.classes)
        return {name: count for name, count in counts.most_common() if count > 1}

    def importers(self) -> dict[str, set[str]]:
        """Which modules import each module."""
        found: dict[str, set[str]] = defaultdict(set)
        for module in self.modules:
            for other in self.modules:
                if other.name != module.name and other.name in module.imports:
                    found[other.name].add(module.name)
        return found

    def of_one_importer(self) -> list[Module]:
        importers = self.importers()
        single = [one for one in self.modules if len(importers[one.name]) == 1]
        return sorted((one for one in single if one.path.name != "__init__.py"), key=lambda one: one.lines)


def measured(root: Path) -> Size:
    """Every Python file below a folder, counted."""
    return Size([_module(path, root) for path in sorted(root.rglob("*.py"))])


def _module(path: Path, root: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines()
    documented = set(_docstring_lines(tree))
    comments = _comment_lines(text)
    blank = sum(not line.strip() for line in lines)
    plain = sum(
        1
        for number, line in enumerate(lines, 1)
        if line.strip() and number not in documented and not line.lstrip().startswith("#")
    )
    at_end = text.endswith("\n")
    functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    parts = path.relative_to(root).with_suffix("").parts
    return Module(
        path=path.relative_to(root),
        name=".".join(parts[:-1] if parts[-1] == "__init__" else parts),
        lines=len(lines),
        code=len(lines) - blank - at_end - len(documented) - len(comments),
        plain=plain,
        functions=tuple((_length(node), node.name, node.returns is not None) for node in functions),
        classes=tuple(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)),
        handlers=len(handlers),
        broad=sum(_is_broad(handler) for handler in handlers),
        imports=frozenset(_imports(tree, parts)),
    )


def _length(function: FunctionNode) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | FunctionNode) or not node.body:
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def _comment_lines(text: str) -> list[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.start[0] for token in tokens if token.type == tokenize.COMMENT]


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(
        one is None or (isinstance(one, ast.Name) and one.id in ("Exception", "BaseException"))
        for one in names
    )


def _imports(tree: ast.Module, parts: Sequence[str]) -> Iterator[str]:
    """The dotted names that a module imports, each with what may be a module of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level] if node.level else ()
            base = ".".join((*above, *((node.module,) if node.module else ())))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def report(title: str, size: Size) -> None:
    """Print what was counted."""
    files = sorted((module.lines, str(module.path)) for module in size.modules)
    single = size.of_one_importer()
    small = [module for module in single if module.lines < SMALL]
    same = size.classes_of_one_name()
    rows = {
        "files": f"{len(files):,}",
        "lines": f"{sum(lines for lines, _ in files):,}",
        "code lines": f"{size.code:,} (plain {sum(module.plain for module in size.modules):,})",
        "file, median / longest": f"{statistics.median(lines for lines, _ in files):g} / {files[-1][0]:,}",
        "functions": f"{len(size.functions):,}",
        "function, median / p90 / longest": _lengths(size),
        "typed returns": f"{size.share_of_typed_returns():.1%}",
        "broad / all excepts": f"{sum(m.broad for m in size.modules)} / {sum(m.handlers for m in size.modules)}",
        "classes": f"{sum(len(module.classes) for module in size.modules):,}",
        "names of several classes": ", ".join(f"{name} ×{count}" for name, count in same.items()) or "none",
        f"modules of one importer / under {SMALL} lines": f"{len(single)} / {len(small)}",
        "the small ones": ", ".join(f"{module.path} {module.lines}" for module in small) or "none",
        "longest files": ", ".join(f"{path} {lines:,}" for lines, path in files[:-6:-1]),
        "longest functions": ", ".join(
            f"{path} {name} {lines}" for lines, name, path in _longest_functions(size, 5)
        ),
    }
    print(f"\n{title}\n")
    for name, value in rows.items():
        print(f"  {name:<40} {value}")


def _lengths(size: Size) -> str:
    return f"{statistics.median(size.functions):g} / {size.p90} / {size.functions[-1]}"


def _longest_functions(size: Size, count: int) -> list[tuple[int, str, str]]:
    every = [
        (lines, name, str(module.path)) for module in size.modules for lines, name, _ in module.functions
    ]
    return sorted(every, reverse=True)[:count]


def above_limits(size: Size) -> list[str]:
    """What is larger than it may be."""
    counted = {
        "files": len(size.modules),
        "code": size.code,
        "median": statistics.median(size.functions),
        "p90": size.p90,
        "longest": size.functions[-1],
    }
    found = [
        f"{name}: {counted[name]:,g}, at most {LIMITS[name]:,}"
        for name in LIMITS
        if counted[name] > LIMITS[name]
    ]
    return found + [
        f"{count} classes are called {name}" for name, count in size.classes_of_one_name().items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="exit 1 when our own code is above its limits")
    given = parser.parse_args()
    ours = measured(SOURCE)
    report("src", ours)
    for path in given.paths:
        report(str(path), measured(path))
    if given.check:
        problems = above_limits(ours)
        print("\n" + ("\n".join(problems) or "within the limits"))
        sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
