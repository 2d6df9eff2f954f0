"""How well corrections are told from other messages, and how soon a lesson from one is injected.

    python bench/corrections.py [--half tune|held-out|both] [--errors] [--chat FILE]

The messages in bench/data/corrections.txt are our own. Odd ones are the tune half, even ones the held-out half;
patterns were tuned on the tune half only (and on the chat of LoCoMo's development conversations, in which nobody
corrects an agent: `--chat` counts false alarms there). Both halves have one author, who also wrote the patterns:
expect less on messages of other people. `--errors` lists the mistakes of the tune half.

Last comes a simulated user who makes each correction once and then asks for the same thing again in a new session:
how many turns until the lesson is injected.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from nanoclaw_memory.lessons import corrections
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

DATA = Path(__file__).parent / "data" / "corrections.txt"
CHAT = Path(__file__).parent.parent.parent / "shared" / "data" / "locomo" / "locomo_dev.json"
# What is asked first, the correction, and what is asked when the lesson is needed again.
SIMULATED = (
    (
        "Fix the login bug",
        "Don't push straight to main, open a pull request.",
        "Push the fix for the search page",
    ),
    ("Summarise the paper", "Please stop using emojis in your answers.", "Summarise the second paper"),
    ("Clean up the repository", "Never delete a branch without asking me.", "Delete the merged branches"),
    (
        "Restart the gateway",
        "Next time, ask before you restart the gateway.",
        "Please restart the gateway again",
    ),
    (
        "How warm is it?",
        "I told you already: Celsius, not Fahrenheit.",
        "How warm is it tomorrow in Celsius?",
    ),
    ("Write to Anna", "You should show me the draft before sending mails.", "Send a mail to Peter"),
    ("Format the report", "I prefer tables without a totals row.", "Make a table of the sales"),
    ("Schreib an Anna", "Bitte schreib nicht so förmlich.", "Schreib jetzt an Peter"),
    ("Räum das Repository auf", "Lösch keine Branches, ohne mich zu fragen.", "Lösch die alten Branches"),
    ("Run the migration", "You must run the tests before a migration.", "Now the second migration"),
    ("Explain TCP", "From now on keep your answers short.", "Explain UDP"),
    (
        "Book the flight",
        "Use my work address, not the private one, for invoices.",
        "Which address is on the invoice?",
    ),
)
UNRELATED = "What is the boiling point of nitrogen?"


def messages() -> list[tuple[bool, str, str]]:
    """Label, kind and text of every message."""
    found = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, kind, text = line.split("|", 2)
            found.append((label == "+", kind, text.replace("\\n", "\n")))
    return found


def score(sample: list[tuple[bool, str, str]], show: bool) -> tuple[int, int, float, float]:
    """Number, corrections, precision and recall."""
    right = wrong = missed = 0
    for label, kind, text in sample:
        said = bool(corrections.find(text))
        right += said and label
        wrong += said and not label
        missed += label and not said
        if show and said != label:
            print(f"{'missed' if label else 'false alarm'} | {kind} | {text!r}")
    return len(sample), right + missed, right / max(right + wrong, 1), right / max(right + missed, 1)


def false_alarms(chat: Path) -> None:
    """How often a friendly chat is taken for a correction."""
    turns = [
        turn["text"]
        for sample in json.loads(chat.read_text(encoding="utf-8"))
        for name, session in sample["conversation"].items()
        if name.startswith("session_") and isinstance(session, list)
        for turn in session
    ]
    wrong = sum(bool(corrections.find(text)) for text in turns)
    print(f"\nFalse alarms in {len(turns):,} turns of chat: {wrong} ({wrong / len(turns):.2%}).")


def simulate() -> None:
    """Turns until a lesson is injected, and whether it stays away from an unrelated message."""
    needed: list[int] = []
    unrelated = 0
    for asked, correction, again in SIMULATED:
        with tempfile.TemporaryDirectory() as folder:
            with Memory.open(folder, Scope(session_id="one")) as memory:
                memory.init()
                memory.after_turn(asked, "Done.")
                memory.after_turn(correction, "Understood.")
            with Memory.open(folder, Scope(session_id="two")) as memory:
                unrelated += _has_lesson(memory, UNRELATED) and not memory.lessons.lessons()[0].general
                turns = next((turn for turn in range(1, 6) if _has_lesson(memory, again)), 0)
                needed.append(turns)
    found = [turns for turns in needed if turns]
    print(
        f"\nSimulated user: {len(found)} of {len(SIMULATED)} lessons injected, "
        f"{sum(turns == 1 for turns in found)} of them at the next matching turn; "
        f"{unrelated} of {len(SIMULATED)} were injected before an unrelated message too."
    )


def _has_lesson(memory: Memory, message: str) -> bool:
    return any(block.label == "GROWTH VECTORS" for block in memory.before_turn(message).blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", choices=("tune", "held-out", "both"), default="both")
    parser.add_argument("--errors", action="store_true", help="list the mistakes of the tune half")
    parser.add_argument(
        "--chat", type=Path, default=CHAT, help="LoCoMo's conversations; left out when absent"
    )
    arguments = parser.parse_args()
    everything = messages()
    halves = {"tune": everything[0::2], "held-out": everything[1::2]}
    started = time.process_time()
    corrections.find("warm")
    load = time.process_time() - started
    rows = []
    spent = 0.0
    for name, sample in halves.items():
        if arguments.half in (name, "both"):
            started = time.process_time()
            rows.append((name, *score(sample, arguments.errors and name == "tune")))
            spent = (time.process_time() - started) / len(sample)
    print("| half | messages | corrections | precision | recall |\n|---|---|---|---|---|")
    for name, number, positive, precision, recall in rows:
        print(f"| {name} | {number} | {positive} | {precision:.3f} | {recall:.3f} |")
    if arguments.chat.exists():
        false_alarms(arguments.chat)
    simulate()
    print(f"\nLoading the patterns: {load * 1000:.1f} ms of CPU; one message: {spent * 1e6:.0f} µs.")


if __name__ == "__main__":
    main()
