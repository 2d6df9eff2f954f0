"""Learnt maps of the embedder's vectors find the rule that applies and the policy that is met, in other words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nanoclaw_memory.lessons import matching
from nanoclaw_memory.lessons.matching import Reach
from nanoclaw_memory.providers.affinity import affinity_of
from nanoclaw_memory.providers.embedder import Chain
from nanoclaw_memory.providers.judge import shared_judge
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval.policy_matching import triggered
from nanoclaw_memory.types import Lesson, Policy

POLICIES = [
    Policy("GP-1", "", "Moving money out of the club account", "Ask the treasurer"),
    Policy("GP-2", "", "Changing the production database", "Make a backup first"),
    Policy("GP-3", "", "Telling anybody outside about a customer", "Get written consent"),
    Policy("GP-4", "", "Throwing away things of the archive", "Ask Ingrid"),
]
RULES = (
    "The newsletter never goes out on a Friday",
    "Invoices are written in whole cents, never with decimals",
    "Read a recipe's amounts aloud in cups, not in grams",
    "Trains are booked with a seat by the window",
    "A pull request needs a screenshot of the old and the new page",
    "Never touch the vendored folder by hand",
    "Answers to the landlord are polite and short",
    "Use the blue theme for slides",
    "The dog must not get chocolate",
    "Ask before the heating is turned on",
)


@pytest.fixture
def chain(models_dir: Path) -> Chain:
    return Chain((LocalEmbedder(*embedder(models_dir)),))


@pytest.mark.parametrize(
    ("action", "met"),
    [
        ("Überweis dem Segelmacher die 840 Euro für das neue Vorsegel", ["GP-1"]),
        ("psql -h prod -c 'alter table invoices drop column vat'", ["GP-2"]),
        ("Send the journalist the figures of the bakery we work for", ["GP-3"]),
        ("What is the balance of the club account?", []),
        ("Explain how foreign keys work", []),
        ("Write the minutes of yesterday's meeting", []),
    ],
)
def test_an_action_meets_the_policy_that_is_meant_though_they_share_no_word(
    chain: Chain, action: str, met: list[str]
):
    judge, _ = shared_judge()
    assert [hit.policy.id for hit in triggered(POLICIES, action, chain, judge)] == met


TASKS = (
    ("send this month's news to all members tomorrow", 1),
    ("compute the VAT of the order from Oslo", 2),
    ("what do we need for two trays of cinnamon buns?", 3),
    ("ich muss nächste Woche nach Köln, such mir eine Verbindung raus", 4),
    ("open a PR for the new checkout form", 5),
    ("patch the bug in third_party/zlib", 6),
    ("der Abfluss im Bad ist verstopft, sag Herrn Nowak Bescheid", 7),
    ("make a presentation about our quarter", 8),
    ("what can Bello have for his birthday?", 9),
    ("it's cold in here", 10),
    ("es ist kalt im Wohnzimmer", 10),
    ("write to Mrs Weber that the rent is paid on the 3rd", 7),
)


def test_of_many_rules_the_one_that_applies_is_mostly_among_the_two_that_the_judge_reads(chain: Chain):
    lessons = [
        Lesson(number, "", rule, "", effectiveness=0, injections=0, state="active")
        for number, rule in enumerate(RULES, 1)
    ]
    maps = affinity_of(chain.identity.key)
    assert maps is not None
    told = chain.embed_documents(list(RULES)).vectors

    def are_read(task: str, right: int, near: np.ndarray) -> bool:
        known = {lesson.id: float(one) for lesson, one in zip(lessons, near, strict=True)}
        return right in [lesson.id for lesson in matching._nearest(task, lessons, known)]

    asked = [(task, right, chain.embed_query(task).vectors[0]) for task, right in TASKS]
    by_map = sum(are_read(task, right, maps.likeness(one, told)) for task, right, one in asked)
    by_cosine = sum(are_read(task, right, told @ one) for task, right, one in asked)
    assert by_map >= 10 > by_cosine + 1


def test_a_lesson_that_is_near_in_the_map_needs_less_of_the_judge():
    reach = Reach(near=0.9, far=0.8, unrelated=0.75, likenesses={1: 0.4, 2: -0.1})
    assert reach.closeness(1, 0.8) > reach.closeness(3, 0.8) > reach.closeness(2, 0.99)


def test_the_maps_belong_to_one_embedder_and_keep_likeness_within_bounds():
    assert affinity_of("local/another@384") is None
    maps = affinity_of("local/multilingual-e5-small-int4-1571fc98@384")
    assert maps is not None
    some = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    found = maps.likeness(some[0], some)
    assert found.shape == (50,) and np.all(np.abs(found) <= 1.0001) and np.isfinite(maps.risk(some[0]))
    assert np.isfinite(maps.likeness(maps.asked_mean, some)).all()
