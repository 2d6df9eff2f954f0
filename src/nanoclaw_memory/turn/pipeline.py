"""Run the turn plugins in order, each bounded by time and tokens; none can fail the turn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.rendering import visible_line
from nanoclaw_memory.text import plural
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.turn.received_lines import ELSEWHERE, FreshLine, ReceivedLines, fresh_lines
from nanoclaw_memory.turn.worker import PluginResult, PluginThread
from nanoclaw_memory.types import Explanation, InjectedLine, Injection, PluginNote, Turn

if TYPE_CHECKING:
    from nanoclaw_memory.types import Block, Exchange, Scope, ToolCall, Transcript

MAX_CHARS = 16_000  # characters of a message that plugins receive
RECORD_SECONDS = 0.5
LEARN_SECONDS = 5.0
NEARLY = 10  # number of rejected lines that `explain` reports


class _Progress(msgspec.Struct):
    """The blocks and notes that a turn, or the start of a session, has collected so far."""

    scope: Scope
    now: datetime
    budget: int
    event: str = "turn"
    explain: bool = False
    given: ReceivedLines | None = None
    notes: list[PluginNote] = msgspec.field(default_factory=list)
    blocks: list[Block] = msgspec.field(default_factory=list)
    skipped: list[PluginNote] = msgspec.field(default_factory=list)
    injections: list[Injection] = msgspec.field(default_factory=list)
    nearly: list[tuple[str, ...]] = msgspec.field(default_factory=list)  # the lines of each injection
    then: list[tuple[str, Callable[[], None]]] = msgspec.field(default_factory=list)
    injecting: list[str] = msgspec.field(default_factory=list)  # the plugins of the blocks

    def keep_order(self, names: Sequence[str]) -> None:
        """Sort what the plugins answered into their order."""
        place = names.index
        given = sorted(zip(self.injecting, self.blocks, strict=True), key=lambda pair: place(pair[0]))
        self.blocks = [block for _, block in given]
        self.skipped.sort(key=lambda note: place(note.plugin))
        both = sorted(zip(self.injections, self.nearly, strict=True), key=lambda pair: place(pair[0].plugin))
        self.injections, self.nearly = [injection for injection, _ in both], [nearly for _, nearly in both]


class Pipeline:
    """Run the hooks of the plugins.

    `record` stores what each plugin injected and the fingerprints of its lines; `given` reads what the session
    already received.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin],
        budget: int,
        timeout_ms: int,
        record: Callable[[Scope, Sequence[Injection], Mapping[str, str]], None],
        refused: Sequence[PluginNote] = (),
        given: Callable[[Scope], ReceivedLines] = lambda scope: ReceivedLines(),
        thread: PluginThread | None = None,
    ) -> None:
        self.plugins = sorted(plugins, key=lambda plugin: (plugin.order, plugin.name))
        self._budget = budget
        self._seconds = timeout_ms / 1000
        self._record = record
        self._refused = tuple(refused)
        self._given = given
        self._thread = thread or PluginThread()

    # ---- hooks that return blocks ----

    def before_turn(
        self, message: str, scope: Scope, now: datetime, explain: bool = False, repeat: bool = False
    ) -> Turn:
        """Return the blocks for a message; `explain` is a dry run, `repeat` injects lines the session already has."""
        text, note = visible_part(blocks.strip(message))
        if not text.strip():
            why = "the message holds only blocks of ours" if message.strip() else "the message is empty"
            return Turn((), tuple(PluginNote(plugin.name, why) for plugin in self.plugins), (*self._refused,))
        given = ReceivedLines() if repeat else None
        progress = _Progress(scope, now, self._budget, explain=explain, given=given)
        progress.notes += [PluginNote("pipeline", note)] if note else []
        return self._gather(lambda plugin, moment: plugin.before_turn(text, moment), progress)

    def session_start(self, scope: Scope, now: datetime, beside: str = "") -> Turn:
        """Return the blocks for a session's start or after a compaction, without what the boot context contains."""
        progress = _Progress(scope, now, self._budget, "start", given=ReceivedLines([beside]))
        return self._gather(lambda plugin, moment: plugin.session_start(moment), progress)

    def _gather(self, ask: Callable[[Plugin, Moment], Answer], progress: _Progress) -> Turn:
        started = time.monotonic()
        whole = started + self._seconds
        for plugin in sorted(self.plugins, key=lambda one: one.asked_at or one.order):
            began = time.monotonic()
            seconds = min(plugin.timeout_ms / 1000, whole - began)
            if seconds <= 0:
                reason = f"the turn's {self._seconds * 1000:.0f} ms were used up"
                self._skip(progress, plugin, reason, 0.0)
                continue
            moment = Moment(progress.scope, progress.now, progress.budget, began + seconds, progress.explain)
            result = self._thread.run(lambda one=plugin, at=moment: _plain(ask(one, at)), seconds)  # type: ignore[misc]
            if result.failure and moment.so_far:
                progress.notes.append(PluginNote(plugin.name, f"{result.failure}; what it had is given"))
                result = self._thread.run(lambda at=moment: _plain(at.so_far[-1]), RECORD_SECONDS)  # type: ignore[misc]
            self._accept(progress, plugin, result, (time.monotonic() - began) * 1000)
        progress.keep_order([plugin.name for plugin in self.plugins])
        if not progress.explain:
            self._finish(progress)
        took = (time.monotonic() - started) * 1000
        return Turn(
            tuple(progress.blocks),
            tuple(progress.skipped),
            (*progress.notes, *self._refused),
            round(took, 2),
            _explained(progress) if progress.explain or progress.event == "start" else (),
        )

    def _accept(self, progress: _Progress, plugin: Plugin, result: PluginResult, ms: float) -> None:
        if result.printed:
            progress.notes.append(
                PluginNote(plugin.name, f"printed {plural(result.printed, 'character')}: dropped")
            )
        if result.failure:
            self._skip(progress, plugin, result.failure, ms)
            return
        answer = Silence("had nothing to say") if result.value is None else result.value
        if isinstance(answer, Silence):
            progress.notes += [PluginNote(plugin.name, note) for note in answer.notes]
            self._skip(progress, plugin, answer.reason, ms, answer.nearly)
        elif isinstance(answer, Draft):
            self._inject(progress, plugin, answer, ms)
        else:
            self._skip(progress, plugin, f"returned a {type(answer).__name__}, not a Draft", ms)

    def _inject(self, progress: _Progress, plugin: Plugin, draft: Draft, ms: float) -> None:
        given = self._received_by(progress)
        fresh, repeated = fresh_lines(draft, given)
        nearly = (*draft.nearly, *(f"{line.text} ({line.known})" for line in repeated))
        progress.notes += [PluginNote(plugin.name, note) for note in draft.notes]
        if repeated and not fresh:
            if draft.then is not None:  # the session asks for it again and still has it
                progress.then.append((plugin.name, draft.then))
            new = all(line.known == ELSEWHERE for line in repeated)
            reason = (
                "other blocks of this turn say all of it"
                if new
                else "this session was given all of it already"
            )
            self._skip(progress, plugin, reason, ms, nearly)
            return
        label = blocks.sound_label(draft.label, plugin.name)
        block, left_out = blocks.render(label, draft.fence, [line.text for line in fresh], progress.budget)
        if block is None:
            reason = f"did not fit the {progress.budget} tokens left" if left_out else "its block was empty"
            self._skip(progress, plugin, reason, ms, nearly)
            return
        if left_out:
            progress.notes.append(PluginNote(plugin.name, f"{plural(left_out, 'line')} cut: over the limits"))
        shown = _shown(fresh, block, draft.fence)
        given.add(shown, repeated)
        lines = tuple(InjectedLine(line.text[: blocks.MAX_LINE], line.reason) for line in shown)
        injection = Injection(
            plugin.name, draft.hits, block.tokens, round(ms, 2), lines=lines, event=progress.event
        )
        progress.budget -= block.tokens
        progress.blocks.append(block)
        progress.injecting.append(plugin.name)
        progress.injections.append(injection)
        progress.nearly.append((*nearly, *(f"{line.text} (cut)" for line in fresh[len(shown) :])))
        if draft.then is not None:
            progress.then.append((plugin.name, draft.then))

    def _received_by(self, progress: _Progress) -> ReceivedLines:
        """Return what the session received; if that cannot be read, lines may be repeated."""
        if progress.given is None:
            result = self._thread.run(lambda: self._given(progress.scope), RECORD_SECONDS)
            if result.failure:
                progress.notes.append(
                    PluginNote("pipeline", f"reading what was given before {result.failure}")
                )
            progress.given = ReceivedLines() if result.value is None else result.value
        return progress.given

    @staticmethod
    def _skip(
        progress: _Progress, plugin: Plugin, reason: str, ms: float, nearly: tuple[str, ...] = ()
    ) -> None:
        progress.skipped.append(PluginNote(plugin.name, reason))
        progress.injections.append(Injection(plugin.name, 0, 0, round(ms, 2), reason, event=progress.event))
        progress.nearly.append(nearly)

    def _finish(self, progress: _Progress) -> None:
        """Run the plugins' follow-up work and record the turn; a failure costs no block."""
        for name, then in progress.then:
            result = self._thread.run(then, RECORD_SECONDS)
            if result.failure:
                progress.notes.append(PluginNote(name, f"injected, but learning {result.failure}"))
        new = progress.given.new if progress.given is not None else {}
        result = self._thread.run(
            lambda: self._record(progress.scope, progress.injections, new), RECORD_SECONDS
        )
        if result.failure:
            progress.notes.append(PluginNote("pipeline", f"recording {result.failure}"))

    # ---- hooks that return nothing ----

    def after_turn(
        self, exchange: Exchange, tool_calls: Sequence[ToolCall], scope: Scope, now: datetime
    ) -> tuple[PluginNote, ...]:
        """Let every plugin learn from an exchange; return what failed."""
        calls = tuple(tool_calls)
        return self._notify(lambda plugin, moment: plugin.after_turn(exchange, calls, moment), scope, now)

    def before_compaction(
        self, transcript: Transcript, scope: Scope, now: datetime
    ) -> tuple[PluginNote, ...]:
        """Let every plugin store what the compaction would drop."""
        return self._notify(lambda plugin, moment: plugin.before_compaction(transcript, moment), scope, now)

    def session_end(self, scope: Scope, now: datetime) -> tuple[PluginNote, ...]:
        """Notify every plugin that the session is over."""
        return self._notify(lambda plugin, moment: plugin.session_end(moment), scope, now)

    def close(self) -> None:
        """Stop every plugin; the thread, which other sessions may share, keeps running."""
        for plugin in self.plugins:
            self._thread.run(plugin.stop, RECORD_SECONDS)

    def _notify(
        self, hook: Callable[[Plugin, Moment], Any], scope: Scope, now: datetime
    ) -> tuple[PluginNote, ...]:
        notes = []
        for plugin in self.plugins:
            moment = Moment(scope, now, 0, time.monotonic() + LEARN_SECONDS)
            result = self._thread.run(lambda one=plugin, at=moment: hook(one, at), LEARN_SECONDS)  # type: ignore[misc]
            if result.failure:
                notes.append(PluginNote(plugin.name, result.failure))
        return tuple(notes)


def _explained(progress: _Progress) -> tuple[Explanation, ...]:
    return tuple(
        Explanation(
            injection.plugin,
            injection.tokens,
            injection.ms,
            injection.reason,
            injection.lines,
            nearly[:NEARLY],
        )
        for injection, nearly in zip(progress.injections, progress.nearly, strict=True)
    )


def _shown(lines: Sequence[FreshLine], block: Block, fence: str) -> list[FreshLine]:
    """Return the lines for which a block has room: the first non-empty ones."""
    number = len(block.text.splitlines()) - 2 - len(fence.splitlines())
    return [line for line in lines if visible_line(line.text)][:number]


def _plain(answer: Any) -> Any:
    """Convert an answer to plain values; a plugin's iterators are consumed here, with a bound."""
    if isinstance(answer, Silence):
        return replace(answer, nearly=_short(answer.nearly, NEARLY))
    if not isinstance(answer, Draft):
        return answer
    given: Any = answer.lines
    lines = [given] if isinstance(given, str) else list(itertools.islice(given, blocks.MAX_LINES + 1))
    return replace(
        answer,
        label=str(answer.label),
        fence=str(answer.fence),
        lines=tuple(str(line)[: blocks.MAX_LINE * 4 + 1] for line in lines),
        notes=_short(answer.notes, 5),
        hits=int(answer.hits),
        reasons=_short(answer.reasons, len(lines)),
        statements=_short(answer.statements, len(lines), blocks.MAX_LINE * 4),
        nearly=_short(answer.nearly, NEARLY),
        scores=tuple(map(float, answer.scores)),
    )


def _short(texts: Iterable[Any], most: int, chars: int = 300) -> tuple[str, ...]:
    return tuple(str(text)[:chars] for text in itertools.islice(texts, most))


def visible_part(message: str) -> tuple[str, str]:
    """Return the part of a message that plugins see, the two ends of a very long one, and a note about that."""
    if len(message) <= MAX_CHARS:
        return message, ""
    half = MAX_CHARS // 2
    head, tail = message[:half], message[-half:]
    # A line that is cut can no longer be recognised as one of a log.
    head = head.rpartition("\n")[0] if "\n" in head[half // 2 :] else head
    tail = tail.partition("\n")[2] if "\n" in tail[: half // 2] else tail
    shown = f"{head}\n{tail}"
    return shown, f"only the first and last {half:,} of {len(message):,} characters were read"
