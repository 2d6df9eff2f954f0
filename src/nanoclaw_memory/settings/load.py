"""Read nanoclaw.json, ${ENV}, NANOCLAW_* and --set into settings, with the origin of each value."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.settings.sections import PluginEntries, Settings

FILE_NAME = "nanoclaw.json"
MOST_SHOWN = 80  # characters of a line that is no JSON
SECRET_KEYS = frozenset({"apiKey", "store.url"})  # last parts or whole names; a URL contains a password
# On a line that is shown to whoever meets the mistake, a shared chat and its agents included.
_MAYBE_SECRET = regex(r"api.?key|url|://|[\w+/=-]{20}", re.I)
_CAPITAL, _SEPARATOR = regex(r"(?<=[a-z0-9])([A-Z])"), regex(r"[.\-]")
_VARIABLE = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# What a project file may set: nothing that could send memory elsewhere or show it to others.
_PROJECT_MAY_SET = ("memory.", "plugins.entries.", "graph.")


class Leaf(msgspec.Struct, frozen=True):
    """One setting: its path, type, default, description and limits."""

    path: str
    type: Any
    default: Any
    description: str
    limits: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Return the environment variable that sets it."""
        return "NANOCLAW_" + _SEPARATOR.sub("_", _CAPITAL.sub(r"_\1", self.path)).upper()


class Configuration(msgspec.Struct, frozen=True):
    """Settings with the origin of each value and the problems met while reading them."""

    settings: Settings
    origins: Mapping[str, str] = msgspec.field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def origin(self, path: str) -> str:
        return self.origins.get(path, "default")

    def value(self, path: str) -> Any:
        """Return the value at a dotted path, as in the file."""
        node = msgspec.to_builtins(self.settings)
        for part in path.split("."):
            if not isinstance(node, dict) or part not in node:
                raise unknown_key(path, path)
            node = node[part]
        return node


def leaves(section: Any = Settings, prefix: str = "") -> Iterator[Leaf]:
    """Yield every setting."""
    for entry in msgspec.structs.fields(section):
        path = f"{prefix}{entry.encode_name}"
        kind, *notes = get_args(entry.type) if get_origin(entry.type) is Annotated else (entry.type,)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from leaves(kind, path + ".")
            continue
        default = entry.default if entry.default is not msgspec.NODEFAULT else entry.default_factory()
        text = next((note.description for note in notes if note.description), "")
        bounds = [pair for note in notes for pair in (("at least", note.ge), ("at most", note.le))]
        limits = tuple(f"{word} {bound}" for word, bound in bounds if bound is not None)
        yield Leaf(path, kind, default, text, limits)


def load(
    home: Path,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Configuration:
    """Read and validate all sources; `directory` is where the search for a project file starts."""
    sources = _Sources()
    sources.add_file(home / FILE_NAME, "file")
    project = project_file(directory, home) if directory else None
    if project:
        sources.add_file(project, f"project {project}")
    sources.expand(environ)
    for name, path in _AZURE.items():
        if environ.get(name) and path not in sources.origins:
            sources.put(path, environ[name], f"environment {name}")
    if any(name.startswith("NANOCLAW_") and name not in _NO_SETTINGS for name in environ):
        for leaf in sources.known.values():
            if leaf.variable in environ:
                value = _from_text(leaf, environ[leaf.variable], leaf.variable)
                sources.put(leaf.path, value, f"environment {leaf.variable}")
    for path, text in (overrides or {}).items():
        sources.put(path, _from_text(_known(path, sources.known), text, f"--set {path}"), "flag")
    return Configuration(validated(sources.tree), sources.origins, tuple(sources.problems))


def readable(home: Path, mistake: SettingsError) -> Configuration:
    """Return what can be used of a home's file that has a mistake, with the mistake: to show and to repair it."""
    sources = _Sources()
    found: dict[str, Any] = {}
    with suppress(SettingsError):
        found = _normalised(read_file(home / FILE_NAME))
    for key, value in _leaves_of(found):
        probe: dict[str, Any] = {}
        _put(probe, key, value)
        with suppress(SettingsError):
            _known(key, sources.known)
            validated(probe)
            sources.put(key, value, "file")
    sources.expand(os.environ)
    sources.problems = [f"{mistake.message}: {mistake.hint}" if mistake.hint else mistake.message]
    return Configuration(validated(sources.tree), sources.origins, tuple(sources.problems))


def _leaves_of(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves_of(value, f"{prefix}{key}.")
        yield f"{prefix}{key}", value


def without_value(raw: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the file's tree without one key, known or not."""
    tree: dict[str, Any] = json.loads(json.dumps(raw))
    at: Any = tree
    *sections, last = (path,) if path in tree else path.split(".")
    for section in sections:
        at = at.get(section) if isinstance(at, dict) else None
    if not isinstance(at, dict) or last not in at:
        raise SettingsError(f"the file does not set {path!r}", "see: nanoclaw-memory config show")
    del at[last]
    return tree


# Azure's own variables, in addition to those in the defaults; a file that sets the key takes precedence.
_AZURE = {
    "AZURE_OPENAI_EMBEDDING_DEPLOYMENT": "embeddings.deployment",
    "AZURE_OPENAI_API_VERSION": "embeddings.apiVersion",
}


# Variables that every hook has, and that set nothing.
_NO_SETTINGS = frozenset(
    {"NANOCLAW_HOME", "NANOCLAW_GROUP", "NANOCLAW_SESSION", "NANOCLAW_NO_HOOKS", "NANOCLAW_NO_SERVER"}
)


def _with_variables(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a tree whose texts contain ${VAR}, which defaults may also contain."""
    below = {key: _with_variables(value) for key, value in tree.items() if isinstance(value, dict)}
    texts = {key: value for key, value in tree.items() if isinstance(value, str) and "${" in value}
    return {key: value for key, value in (below | texts).items() if value}


class _Sources:
    """The values of all sources, later ones over earlier ones, and where each came from."""

    def __init__(self) -> None:
        self.tree = _with_variables(msgspec.to_builtins(Settings()))
        self.origins: dict[str, str] = {}
        self.problems: list[str] = []

    @cached_property
    def known(self) -> dict[str, Leaf]:
        return {leaf.path: leaf for leaf in leaves()}

    def put(self, path: str, value: Any, origin: str) -> None:
        _put(self.tree, path, value)
        self.origins[path] = origin

    def add_file(self, path: Path, origin: str) -> None:
        """Add the values of a settings file; a project's may set only what cannot redirect data."""
        raw = read_file(path)
        remedy = "to remove it: nanoclaw-memory config unset {}" if origin == "file" else ""
        for key, value in _flat(_normalised(raw), self.known, str(path), remedy) if raw else ():
            if origin == "file" or key.startswith(_PROJECT_MAY_SET):
                self.put(key, value, origin)
            else:
                self.problems.append(
                    f"{path}: {key} is ignored: a project file may not set endpoints, keys, paths or privacy"
                )

    def expand(self, environ: Mapping[str, str]) -> None:
        """Replace every ${VAR} and ${VAR:-default} in the tree."""
        self.tree = self._expanded(self.tree, "", environ)

    def _expanded(self, node: Any, path: str, environ: Mapping[str, str]) -> Any:
        if isinstance(node, dict):
            return {
                key: self._expanded(value, f"{path}.{key}" if path else key, environ)
                for key, value in node.items()
            }
        if isinstance(node, list):
            return [self._expanded(value, path, environ) for value in node]
        if not isinstance(node, str):
            return node

        def replace(match: re.Match[str]) -> str:
            value = environ.get(match[1]) or match[2]
            if value is None:
                self.problems.append(f"{path}: the environment variable {match[1]} is not set")
            return value or ""

        return _VARIABLE.sub(replace, node)


def validated(tree: Mapping[str, Any]) -> Settings:
    """Return the tree as settings, or raise an error that names the key and what is allowed."""
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
    """Return what a setting accepts, in words."""
    if get_origin(leaf.type) is Literal:
        return "allowed: " + ", ".join(map(str, get_args(leaf.type)))
    default = json.dumps(msgspec.to_builtins(leaf.default))
    return f"allowed: {', '.join((type_name(leaf), *leaf.limits))}; default {default}"


def type_name(leaf: Leaf) -> str:
    """Return the JSON type of a setting."""
    origin = get_origin(leaf.type)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(leaf.type)))
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return names.get(leaf.type) or {tuple: "list of text", dict: "object"}.get(origin, "value")


def project_file(directory: Path, home: Path) -> Path | None:
    """Return the nearest nanoclaw.json at or above `directory` that is not the home's own."""
    for folder in (directory, *directory.parents):
        candidate = folder / FILE_NAME
        if candidate.is_file() and folder.resolve() != home.resolve():
            return candidate
        if (folder / ".git").exists() or folder == Path.home():
            return None
    return None


def with_value(raw: Mapping[str, Any], path: str, text: str) -> dict[str, Any]:
    """Return the file's tree with one setting changed; only its own value is validated, beside it may be mistakes."""
    known = {leaf.path: leaf for leaf in leaves()}
    tree: dict[str, Any] = json.loads(json.dumps(raw))
    value = _from_text(_known(path, known), text, path)
    probe: dict[str, Any] = {}
    _put(probe, path, value)
    if "${" not in text:
        validated(probe)
    _put(tree, path, value)
    return tree


def read_file(path: Path) -> dict[str, Any]:
    """Return the JSON object of a settings file; empty if it is missing."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", "check the file's permissions and encoding"
        ) from None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = _line_of(text, error).strip()[:MOST_SHOWN]
        line = f" ({shown})" if shown else ""
        raise SettingsError(
            f"{path} is not valid JSON: {error}{line}",
            f"correct that line; nothing was changed. Or begin anew: mv {path} {path}.broken",
        ) from None
    if not isinstance(tree, dict):
        raise SettingsError(
            f"{path} must hold a JSON object", 'for example {"user": {"timezone": "Europe/Berlin"}}'
        )
    return tree


def _line_of(text: str, error: Exception) -> str:
    """Return the line with the mistake; empty if it is not known or may contain a credential."""
    lines = text.split("\n")
    number = getattr(error, "lineno", 0)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return "" if _MAYBE_SECRET.search(line) else line


def unknown_key(path: str, where: str, names: tuple[str, ...] = ()) -> SettingsError:
    """Return the error for a key that does not exist, with the nearest ones that do."""
    from nanoclaw_memory.text import nearest_names

    options = names or tuple(leaf.path for leaf in leaves())
    section, _, last = path.rpartition(".")
    own = {one.rpartition(".")[2]: one for one in options if one.rpartition(".")[0] == section}
    near = [own[one] for one in nearest_names(last, own)]
    near = near or [one for one in options if one.lower().endswith(f".{last.lower()}")][:3]
    near = near or nearest_names(path, options)
    hint = f"did you mean {' or '.join(near)}?" if near else "see: nanoclaw-memory config show"
    return SettingsError(f"{where}: there is no setting {path!r}", hint)


def _known(path: str, known: Mapping[str, Leaf]) -> Leaf:
    if path not in known:
        raise unknown_key(path, path, tuple(known))
    return known[path]


_PLUGIN_KEYS = {"priority": "order", "cacheTTL": "cacheTtl"}  # as older systems spelled them


def _normalised(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the tree with plugins' keys in our spelling, and third-party plugins under `thirdParty`."""
    plugins = raw.get("plugins")
    if not isinstance(plugins, dict) or not isinstance(plugins.get("entries"), dict):
        return raw
    if not isinstance(plugins.get("thirdParty", {}), dict):
        return raw
    builtin = {entry.encode_name for entry in msgspec.structs.fields(PluginEntries)}
    own: dict[str, Any] = {}
    third: dict[str, Any] = dict(plugins.get("thirdParty", {}))
    for name, entry in plugins["entries"].items():
        if name not in builtin:
            third[name] = entry
        elif isinstance(entry, dict):
            own[name] = {_PLUGIN_KEYS.get(key, key): value for key, value in entry.items()}
        else:
            own[name] = entry
    return {**raw, "plugins": {**plugins, "entries": own, **({"thirdParty": third} if third else {})}}


def _flat(
    raw: Mapping[str, Any], known: Mapping[str, Leaf], where: str, remedy: str = "", prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        path = prefix + key
        if path in known:
            yield path, value
        elif any(name.startswith(path + ".") for name in known):
            if not isinstance(value, dict):
                raise SettingsError(f"{where}: {path} must be an object", "see: nanoclaw-memory config show")
            yield from _flat(value, known, where, remedy, path + ".")
        else:
            error = unknown_key(path, where, tuple(known))
            error.hint = "; ".join(filter(None, (error.hint, remedy.format(path))))
            raise error


def _from_text(leaf: Leaf, text: str, where: str) -> Any:
    """Parse a value passed as text (flag, environment, `config set`) into the setting's type."""
    origin = get_origin(leaf.type)
    if leaf.type is str or origin is Literal or "${" in text:
        return text
    try:
        return json.loads(text)
    except ValueError:
        if origin is tuple:
            return [part.strip() for part in text.split(",") if part.strip()]
        raise SettingsError(f"{where}: {text!r} is not a {type_name(leaf)}", allowed(leaf)) from None


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for part in parents:
        if not isinstance(tree.get(part), dict):
            tree[part] = {}  # anything else there is a mistake
        tree = tree[part]
    tree[last] = value
