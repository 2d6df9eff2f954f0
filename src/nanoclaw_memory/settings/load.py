"""Read nanoclaw.json, ${ENV}, NANOCLAW_* and --set into settings that know where each value came from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.settings.sections import PluginEntries, Settings

FILE_NAME = "nanoclaw.json"
SECRET_KEYS = frozenset({"apiKey"})
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# What a project file may set: nothing that could send memory elsewhere or show it to others.
_PROJECT_MAY_SET = ("memory.", "plugins.entries.", "graph.")


class Leaf(msgspec.Struct, frozen=True):
    """One setting: its path, type, default, and sentence."""

    path: str
    type: Any
    default: Any
    description: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.path)
        return "NANOCLAW_" + re.sub(r"[.\-]", "_", snake).upper()

    @property
    def secret(self) -> bool:
        return self.path.rpartition(".")[2] in SECRET_KEYS


class Configuration(msgspec.Struct, frozen=True):
    """Settings with the origin of each value and what was said while reading them."""

    settings: Settings
    origins: Mapping[str, str] = msgspec.field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def origin(self, path: str) -> str:
        return self.origins.get(path, "default")

    def value(self, path: str) -> Any:
        """The value at a dotted path, as in the file."""
        node = msgspec.to_builtins(self.settings)
        for part in path.split("."):
            if not isinstance(node, dict) or part not in node:
                raise unknown_key(path, path)
            node = node[part]
        return node


def leaves(section: Any = Settings, prefix: str = "") -> Iterator[Leaf]:
    """Every setting there is."""
    for entry in msgspec.structs.fields(section):
        path = f"{prefix}{entry.encode_name}"
        kind = entry.type
        inner = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from leaves(inner, path + ".")
        else:
            text = next((m.description for m in _metas(kind) if m.description), "")
            default = entry.default if entry.default is not msgspec.NODEFAULT else entry.default_factory()
            yield Leaf(path, kind, default, text)


def load(
    home: Path,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Configuration:
    """Read and validate all sources; `directory` is where the search for a project file starts."""
    known = {leaf.path: leaf for leaf in leaves()}
    tree: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    for leaf in known.values():  # defaults may hold ${VAR} too
        if isinstance(leaf.default, str) and "${" in leaf.default:
            _put(tree, leaf.path, leaf.default)
    _merge_file(home / FILE_NAME, "file", tree, origins, known, problems)
    project = project_file(directory, home) if directory else None
    if project:
        _merge_file(project, f"project {project}", tree, origins, known, problems)
    _expand(tree, "", environ, problems, origins)
    for leaf in known.values():
        if leaf.variable in environ:
            _put(tree, leaf.path, _from_text(leaf, environ[leaf.variable], leaf.variable))
            origins[leaf.path] = f"environment {leaf.variable}"
    for path, text in (overrides or {}).items():
        _put(tree, path, _from_text(known.get(path) or _unknown(path, known), text, f"--set {path}"))
        origins[path] = "flag"
    return Configuration(validated(tree), origins, tuple(problems))


def validated(tree: Mapping[str, Any]) -> Settings:
    """The tree as settings, or an error that names the key and what is allowed."""
    try:
        return msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at ")
        path = where.strip("`").removeprefix("$.")
        leaf = next((leaf for leaf in leaves() if leaf.path == path.partition("[")[0]), None)
        raise SettingsError(
            f"{path}: {message[:1].lower()}{message[1:]}", allowed(leaf) if leaf else ""
        ) from None


def allowed(leaf: Leaf) -> str:
    """What a setting takes, in words."""
    for part in _unwrapped(leaf.type):
        if get_origin(part) is Literal:
            return "allowed: " + ", ".join(map(str, get_args(part)))
    bounds = [
        f"{n} {b}"
        for m in _metas(leaf.type)
        for n, b in (("at least", m.ge), ("at most", m.le))
        if b is not None
    ]
    default = json.dumps(msgspec.to_builtins(leaf.default))
    return f"allowed: {type_name(leaf)}{''.join(', ' + b for b in bounds)}; default {default}"


def type_name(leaf: Leaf) -> str:
    """The JSON type of a setting."""
    base = _unwrapped(leaf.type)[-1]
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    origin = get_origin(base)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(base)))
    return names.get(base) or {tuple: "list of text", dict: "object"}.get(origin, "value")


def project_file(directory: Path, home: Path) -> Path | None:
    """The nearest nanoclaw.json at or above `directory` that is not the home's own."""
    for folder in (directory, *directory.parents):
        candidate = folder / FILE_NAME
        if candidate.is_file() and folder.resolve() != home.resolve():
            return candidate
        if (folder / ".git").exists() or folder == Path.home():
            return None
    return None


def with_value(raw: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """The file's tree with one setting changed; validated as a whole."""
    known = {leaf.path: leaf for leaf in leaves()}
    leaf = known.get(path) or _unknown(path, known)
    tree: dict[str, Any] = json.loads(json.dumps(raw))
    value = _from_text(leaf, text, path)
    probe: dict[str, Any] = {}
    _put(probe, path, value)
    if "${" not in text:
        validated(probe)
    _put(tree, path, value)
    return tree


def read_file(path: Path) -> dict[str, Any]:
    """The JSON object of a settings file; empty when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", "check the file's permissions and encoding"
        ) from None
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise SettingsError(
            f"{path} is not valid JSON: {error}", "correct that line; nothing was changed"
        ) from None
    if not isinstance(tree, dict):
        raise SettingsError(
            f"{path} must hold a JSON object", 'for example {"user": {"timezone": "Europe/Berlin"}}'
        )
    return tree


def unknown_key(path: str, where: str, names: tuple[str, ...] = ()) -> SettingsError:
    """The error for a key that does not exist, with the nearest ones that do."""
    import difflib

    options = names or tuple(leaf.path for leaf in leaves())
    near = difflib.get_close_matches(path, options, n=3, cutoff=0.5)
    last = path.rpartition(".")[2].lower()
    near = near or [option for option in options if option.lower().endswith(last)][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "see: nanoclaw-memory config show"
    return SettingsError(f"{where}: there is no setting {path!r}", hint)


def _unknown(path: str, known: Mapping[str, Leaf]) -> Leaf:
    raise unknown_key(path, path, tuple(known))


def _merge_file(
    path: Path,
    origin: str,
    tree: dict[str, Any],
    origins: dict[str, str],
    known: Mapping[str, Leaf],
    problems: list[str],
) -> None:
    raw = _normalised(read_file(path))
    for key, value in _flat(raw, known, str(path)):
        if origin != "file" and not key.startswith(_PROJECT_MAY_SET):
            problems.append(
                f"{path}: {key} is ignored: a project file may not set endpoints, keys, paths or privacy"
            )
            continue
        _put(tree, key, value)
        origins[key] = origin


def _normalised(raw: dict[str, Any]) -> dict[str, Any]:
    """Accept the older spelling `priority` for a plugin's order, and set third-party plugins apart."""
    plugins = raw.get("plugins")
    if not isinstance(plugins, dict) or not isinstance(plugins.get("entries"), dict):
        return raw
    builtin = {entry.encode_name for entry in msgspec.structs.fields(PluginEntries)}
    entries = {
        name: {
            ("order" if key == "priority" and name in builtin else key): value for key, value in entry.items()
        }
        if isinstance(entry, dict)
        else entry
        for name, entry in plugins["entries"].items()
    }
    others = {name: entry for name, entry in entries.items() if name not in builtin}
    own = {name: entry for name, entry in entries.items() if name in builtin}
    third = {**plugins.get("thirdParty", {}), **others}
    return {**raw, "plugins": {**plugins, "entries": own, **({"thirdParty": third} if third else {})}}


def _flat(
    raw: Mapping[str, Any], known: Mapping[str, Leaf], where: str, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        path = prefix + key
        if path in known:
            yield path, value
        elif any(name.startswith(path + ".") for name in known):
            if not isinstance(value, dict):
                raise SettingsError(f"{where}: {path} must be an object", "see: nanoclaw-memory config show")
            yield from _flat(value, known, where, path + ".")
        else:
            raise unknown_key(path, where, tuple(known))


def _expand(
    node: Any, path: str, environ: Mapping[str, str], problems: list[str], origins: Mapping[str, str]
) -> Any:
    if isinstance(node, dict):
        for key, value in node.items():
            node[key] = _expand(value, f"{path}.{key}" if path else key, environ, problems, origins)
        return node
    if isinstance(node, list):
        return [_expand(value, path, environ, problems, origins) for value in node]
    if not isinstance(node, str):
        return node

    def replace(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        value = environ.get(name) or default
        if value is None:
            problems.append(f"{path}: the environment variable {name} is not set")
        return value or ""

    return _VARIABLE.sub(replace, node)


def _from_text(leaf: Leaf, text: str, where: str) -> Any:
    """A value given as text (flag, environment, `config set`) in the setting's own type."""
    base = _unwrapped(leaf.type)[-1]
    if base is str or get_origin(base) is Literal or "${" in text:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        if get_origin(base) is tuple:
            return [part.strip() for part in text.split(",") if part.strip()]
        raise SettingsError(f"{where}: {text!r} is not a {type_name(leaf)}", allowed(leaf)) from None
    return value


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        tree = tree.setdefault(part, {})
    tree[last] = value


def _metas(kind: Any) -> Iterator[Meta]:
    while get_origin(kind) is Annotated:
        kind, *extra = get_args(kind)
        yield from (meta for meta in extra if isinstance(meta, Meta))


def _unwrapped(kind: Any) -> list[Any]:
    found = [kind]
    while get_origin(found[-1]) is Annotated:
        found.append(get_args(found[-1])[0])
    return found
