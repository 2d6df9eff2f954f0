"""Settings: precedence, expansion, validation, and what a project's file may not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nanoclaw_memory.errors import SettingsError
from nanoclaw_memory.settings import Settings, leaves, load, read_file, with_value


def write(folder: Path, tree: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nanoclaw.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def test_an_empty_home_has_the_documents_defaults(home):
    found = load(home, environ={})
    assert found.value("memory.searchWeights") == {"vector": 0.7, "bm25": 0.3}
    assert (found.value("memory.chunkSize"), found.value("memory.chunkOverlap")) == (400, 80)
    assert found.value("memory.temporalDecayHalfLife") == 30
    assert found.value("memory.maxBootstrapCharsPerFile") == 20_000
    assert found.value("memory.maxBootstrapCharsTotal") == 150_000
    assert found.value("embeddings.deployment") == "text-embedding-3-large"
    assert found.value("embeddings.dimensions") == 3072
    assert found.value("plugins.entries.graph-memory.timeoutMs") == 500
    assert found.value("plugins.entries.continuity.maxExchanges") == 5000
    assert found.value("plugins.entries.stability.entropyThreshold") == 0.7
    assert found.value("cron.decay") == "0 3 * * *"
    assert found.value("cron.ragReindex") == "30 3 * * 0"


def test_nothing_calls_out_unless_a_provider_is_named(home):
    found = load(home, environ={"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "e"})
    assert found.value("embeddings.provider") == "local"


def test_the_whole_example_configuration_of_the_design_is_accepted(home):
    write(
        home,
        {
            "memory": {"searchWeights": {"vector": 0.7, "bm25": 0.3}, "chunkSize": 400, "chunkOverlap": 80},
            "embeddings": {
                "provider": "azure-openai",
                "endpoint": "${AZURE_OPENAI_ENDPOINT}",
                "apiKey": "${AZURE_OPENAI_API_KEY}",
                "deployment": "text-embedding-3-large",
                "apiVersion": "2024-06-01",
                "dimensions": 3072,
                "fallbackDeployment": "text-embedding-3-small",
                "fallbackDimensions": 1536,
            },
            "plugins": {
                "allow": ["graph-memory", "continuity", "stability"],
                "entries": {
                    "graph-memory": {"enabled": True, "maxResults": 8, "minScore": 50, "activationBump": 0.5},
                    "continuity": {"enabled": True, "maxExchanges": 5000, "contextBudget": 2000},
                    "stability": {"enabled": True, "entropyThreshold": 0.7},
                },
            },
            "cron": {"decay": "0 3 * * *", "ragReindex": "30 3 * * 0"},
        },
    )
    found = load(home, environ={"AZURE_OPENAI_ENDPOINT": "https://x.example", "AZURE_OPENAI_API_KEY": "key"})
    assert found.settings.embeddings.endpoint == "https://x.example"
    assert found.settings.embeddings.api_key == "key"
    assert found.problems == ()


def test_flag_beats_environment_beats_file_beats_default(home):
    key, variable = "memory.chunkSize", "NANOCLAW_MEMORY_CHUNK_SIZE"
    assert load(home, environ={}).origin(key) == "default"
    write(home, {"memory": {"chunkSize": 300}})
    assert (load(home, environ={}).value(key), load(home, environ={}).origin(key)) == (300, "file")
    by_environment = load(home, environ={variable: "200"})
    assert (by_environment.value(key), by_environment.origin(key)) == (200, f"environment {variable}")
    by_flag = load(home, {key: "100"}, environ={variable: "200"})
    assert (by_flag.value(key), by_flag.origin(key)) == (100, "flag")


def test_a_variable_with_a_default_is_expanded_and_one_without_is_reported(home):
    write(home, {"embeddings": {"endpoint": "${HERE:-http://localhost:1}/v1", "apiKey": "${MISSING}"}})
    found = load(home, environ={})
    assert found.settings.embeddings.endpoint == "http://localhost:1/v1"
    assert found.settings.embeddings.api_key == ""
    assert found.problems == ("embeddings.apiKey: the environment variable MISSING is not set",)


@pytest.mark.parametrize(
    ("tree", "message", "hint"),
    [
        ({"memory": {"chunksize": 1}}, "'memory.chunksize'", "memory.chunkSize"),
        (
            {"memory": {"chunkSize": "big"}},
            "memory.chunkSize: expected `int`, got `str`",
            "whole number, at least 1",
        ),
        ({"memory": {"chunkSize": 0}}, "memory.chunkSize", "at least 1"),
        ({"embeddings": {"provider": "cohere"}}, "embeddings.provider", "local, azure-openai, openai, none"),
        ({"memory": 3}, "memory must be an object", "config show"),
        (
            {"plugins": {"entries": {"stability": {"entropyThreshold": "x"}}}},
            "stability.entropyThreshold",
            "number",
        ),
        ({"plugins": {"entries": {}, "thirdParty": 5}}, "plugins.thirdParty: expected `object`", "object"),
        ({"server": {"idleMinutes": 100_001}}, "server.idleMinutes", "at most 100000"),
        ([1], "must hold a JSON object", "timezone"),
    ],
)
def test_a_wrong_key_or_type_is_rejected_with_its_path_and_what_is_allowed(home, tree, message, hint):
    write(home, tree)
    with pytest.raises(SettingsError) as refused:
        load(home, environ={})
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_broken_json_names_the_line(home):
    home.mkdir()
    (home / "nanoclaw.json").write_text('{"memory": {\n  "chunkSize": 1,,\n}}')
    with pytest.raises(SettingsError, match="line 2"):
        load(home, environ={})


def test_json_that_is_nested_too_deeply_is_a_mistake_like_any_other(home):
    home.mkdir()
    (home / "nanoclaw.json").write_text("[" * 100_000)
    with pytest.raises(SettingsError, match="not valid JSON"):
        load(home, environ={})


def test_priority_is_accepted_for_a_plugins_order(home):
    write(home, {"plugins": {"entries": {"graph-memory": {"priority": 7}}}})
    assert load(home, environ={}).settings.plugins.entries.graph_memory.order == 7


def test_settings_of_a_third_party_plugin_are_kept_as_they_are(home):
    write(home, {"plugins": {"entries": {"weather": {"city": "Bonn", "priority": 3}}}})
    assert load(home, environ={}).settings.plugins.third_party == {"weather": {"city": "Bonn", "priority": 3}}


@pytest.mark.parametrize(
    ("tree", "key"),
    [
        ({"embeddings": {"endpoint": "http://evil.example"}}, "embeddings.endpoint"),
        ({"embeddings": {"apiKey": "x"}}, "embeddings.apiKey"),
        ({"embeddings": {"provider": "openai"}}, "embeddings.provider"),
        ({"embeddings": {"modelPath": "/etc"}}, "embeddings.modelPath"),
        ({"privacy": {"sharedFiles": ["*"]}}, "privacy.sharedFiles"),
        ({"plugins": {"allow": ["evil"]}}, "plugins.allow"),
        ({"plugins": {"entries": {"evil": {}}}}, "plugins.thirdParty"),
        ({"writer": {"endpoint": "http://evil.example"}}, "writer.endpoint"),
        ({"user": {"timezone": "UTC"}}, "user.timezone"),
    ],
)
def test_a_project_file_cannot_redirect_data_or_widen_privacy(home, tmp_path, tree, key):
    project = tmp_path / "repo"
    write(project, tree)
    found = load(home, environ={}, directory=project)
    assert found.settings == load(home, environ={}).settings
    assert any(key in problem for problem in found.problems)


def test_a_project_file_may_tune_search_and_beats_the_home_file(home, tmp_path):
    write(home, {"memory": {"chunkSize": 300}})
    project = write(tmp_path / "repo", {"memory": {"chunkSize": 200}})
    below = tmp_path / "repo" / "src"
    below.mkdir()
    found = load(home, environ={}, directory=below)
    assert found.value("memory.chunkSize") == 200
    assert found.origin("memory.chunkSize") == f"project {project}"


def test_the_search_for_a_project_file_ends_at_the_repository(home, tmp_path):
    write(tmp_path, {"memory": {"chunkSize": 200}})
    repository = tmp_path / "repo"
    (repository / ".git").mkdir(parents=True)
    assert load(home, environ={}, directory=repository).value("memory.chunkSize") == 400


def test_every_setting_has_its_own_environment_variable():
    variables = [leaf.variable for leaf in leaves()]
    assert len(set(variables)) == len(variables)


def test_setting_one_value_keeps_the_rest_of_the_file(home):
    write(home, {"memory": {"chunkSize": 300}, "embeddings": {"apiKey": "${KEY}"}})
    tree = with_value(read_file(home / "nanoclaw.json"), "user.timezone", "Europe/Berlin")
    assert tree == {
        "memory": {"chunkSize": 300},
        "embeddings": {"apiKey": "${KEY}"},
        "user": {"timezone": "Europe/Berlin"},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["memory", "chunkSize"]), inner)
    ),
    max_leaves=8,
)


@given(tree=JSON)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_json_gives_settings_or_a_clear_error(tmp_path, tree):
    write(tmp_path, tree)
    try:
        assert isinstance(load(tmp_path, environ={}).settings, Settings)
    except SettingsError as error:
        assert error.message
