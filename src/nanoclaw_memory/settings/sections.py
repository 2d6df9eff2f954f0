"""The keys of nanoclaw.json, their types, defaults and descriptions."""

# No `from __future__ import annotations`: msgspec would evaluate each of these twice in every process.

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


class Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A group of settings; keys are camelCase in the file."""


Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]


def doc(text: str) -> Meta:
    """Attach the description of a setting for `config show` and the docs."""
    return Meta(description=text)


class SearchWeights(Section, frozen=True):
    vector: Annotated[Share, doc("weight of vector similarity; unset: the embedder's own weight")] = 0.7
    bm25: Annotated[Share, doc("weight of the keyword score; unset: the embedder's own weight")] = 0.3


class MemorySettings(Section, frozen=True):
    search_weights: SearchWeights = SearchWeights()
    chunk_size: Annotated[Positive, doc("tokens a chunk")] = 400
    chunk_overlap: Annotated[NotNegative, doc("tokens shared by neighbouring chunks")] = 80
    temporal_decay_half_life: Annotated[Positive, doc("days until a dated file's relevance halves")] = 30
    cache_bytes: Annotated[
        NotNegative,
        doc("most bytes of vectors that a process keeps in memory between questions; 0 keeps none"),
    ] = 512 * 1024 * 1024
    max_bootstrap_chars_per_file: Annotated[Positive, doc("most characters of one file at boot")] = 20_000
    max_bootstrap_chars_total: Annotated[Positive, doc("most characters of all files at boot")] = 150_000
    boot: Annotated[
        Literal["both", "full", "brief", "auto"],
        doc(
            "at boot: MEMORY.md up to 200 lines and 8 KB and the brief beneath it (both; auto is its older name),"
            " MEMORY.md whole, or the brief instead"
        ),
    ] = "both"


class UserSettings(Section, frozen=True):
    timezone: Annotated[str, doc("IANA zone for dates and logs; empty means the machine's")] = ""
    entity: Annotated[str, doc("the person's entity in the graph, for 'my …' and 'who am I'")] = "User"
    agent_entity: Annotated[str, doc("the agent's entity in the graph, for 'your …'")] = "Agent"


class PrivacySettings(Section, frozen=True):
    shared_files: Annotated[
        tuple[str, ...],
        doc(
            "globs of workspace files that a shared (non-private) scope may see, all else is private; `*` stays"
            " within a folder, `/**` at the end means all below; `shared/entries` are the entries published to its"
            " group"
        ),
    ] = ("SOUL.md", "IDENTITY.md", "AGENTS.md", "shared/CLAUDE.md", "shared/entries")
    redact_secrets: Annotated[bool, doc("mask credentials before anything is written by an agent")] = True


class ProjectsSettings(Section, frozen=True):
    enabled: Annotated[
        bool, doc("tell projects apart by the working directory: label what is stored, prefer the own one")
    ] = True
    off: Annotated[
        tuple[str, ...], doc("directories in which hooks capture and inject nothing; `ncm off` adds one")
    ] = ()


class EmbeddingsSettings(Section, frozen=True):
    provider: Annotated[
        Literal["local", "azure-openai", "openai", "none"],
        doc("the embedder: the embedded model, Azure OpenAI, any OpenAI-compatible server, or none"),
    ] = "local"
    endpoint: Annotated[str, doc("base address of the Azure resource or OpenAI-compatible server")] = (
        "${AZURE_OPENAI_ENDPOINT:-}"
    )
    api_key: Annotated[str, doc("key for the endpoint; write ${VAR}, never the key itself")] = (
        "${AZURE_OPENAI_API_KEY:-}"
    )
    deployment: Annotated[str, doc("Azure deployment")] = "text-embedding-3-large"
    api_version: Annotated[str, doc("Azure API version")] = "2024-06-01"
    dimensions: Annotated[Positive, doc("vector length requested from Azure")] = 3072
    fallback_deployment: Annotated[
        str, doc("Azure deployment used when the first is down; empty for none")
    ] = "text-embedding-3-small"
    fallback_dimensions: Annotated[Positive, doc("vector length of the fallback")] = 1536
    model: Annotated[
        str, doc("model of an OpenAI-compatible server, or the local one by name; empty: the one installed")
    ] = ""
    model_path: Annotated[str, doc("directory of the local model's files; empty: models/ in the home")] = ""
    query_prefix: Annotated[str, doc("put before queries, as nomic models need")] = ""
    document_prefix: Annotated[str, doc("put before documents, as nomic models need")] = ""
    timeout_ms: Annotated[Positive, doc("limit for one embedding request with its retries and fallbacks")] = (
        10_000
    )
    prices: Annotated[dict[str, float], doc("dollars per million tokens, by model")] = msgspec.field(
        default_factory=lambda: {"text-embedding-3-large": 0.13, "text-embedding-3-small": 0.02}
    )


class JudgeSettings(Section, frozen=True):
    enabled: Annotated[
        bool, doc("let the small local model classify messages; when off, rules and a small scorer do")
    ] = True


class RerankSettings(Section, frozen=True):
    provider: Annotated[
        Literal["none", "local", "llm"],
        doc("the reranker of the best hits: none, the local cross-encoder, or the writer's model"),
    ] = "none"
    model: Annotated[str, doc("model of the writer's server that reranks; empty: the writer's own")] = ""
    candidates: Annotated[int, Meta(ge=1, le=50), doc("most hits that are reranked")] = 24
    timeout_ms: Annotated[Positive, doc("time limit of reranking; hits beyond it keep their place")] = 2000


class WriterSettings(Section, frozen=True):
    provider: Annotated[
        Literal["none", "openai", "azure-openai", "anthropic"],
        doc(
            "the language model for upkeep: none, any OpenAI-compatible chat server, Azure OpenAI, or Anthropic"
        ),
    ] = "none"
    tasks: Annotated[
        tuple[Literal["reword", "consolidate", "settle", "merge"], ...],
        doc(
            "what upkeep may ask it: reword log lines that are proposed, consolidate what was said into facts and"
            " proposals, settle which of two statements holds, merge entries that say the same"
        ),
    ] = ("reword",)
    max_tokens: Annotated[Positive, doc("most tokens that one job may send in one run")] = 20_000
    endpoint: Annotated[str, doc("base address of the chat server, Azure resource or Anthropic")] = ""
    api_key: Annotated[str, doc("key for the endpoint; write ${VAR}, never the key itself")] = ""
    model: Annotated[str, doc("model name, or the Azure deployment")] = ""
    api_version: Annotated[str, doc("Azure API version")] = "2024-06-01"
    timeout_ms: Annotated[Positive, doc("limit for one text with its retries")] = 60_000
    price_in: Annotated[float, Meta(ge=0), doc("dollars per million tokens sent")] = 0.0
    price_out: Annotated[float, Meta(ge=0), doc("dollars per million tokens written")] = 0.0


_CATEGORIES = (
    "fact person family contact user agent identity organization team place project product service system "
    "infrastructure tool technology config decision convention preference policy lesson milestone correction "
    "event date schedule health finance home travel hobby pet knowledge context reference general note other"
).split()
_MULTI_VALUED = (
    "hobby hobbies interest interests skill skills language languages tag tags note notes child children "
    "sibling siblings friend friends pet pets member members likes dislikes allergy allergies decision "
    "milestone lesson context insight preference correction reference"
).split()


class GraphSettings(Section, frozen=True):
    categories: Annotated[tuple[str, ...], doc("categories a fact may have; an empty list allows any")] = (
        tuple(_CATEGORIES)
    )
    multi_valued_keys: Annotated[
        tuple[str, ...], doc("keys that keep several values at once; any other key has one current value")
    ] = tuple(_MULTI_VALUED)
    single_valued_predicates: Annotated[
        tuple[str, ...], doc("predicates of which a subject has one current object; any other keeps several")
    ] = ("lives_in", "works_at", "works_for", "reports_to", "married_to")
    linked_bump: Annotated[float, doc("activation added to a linked fact")] = 0.15
    cooling: Annotated[Share, doc("share of a fact's activation that is left after a day")] = 0.95


class GraphMemorySettings(Section, frozen=True):
    enabled: Annotated[bool, doc("inject graph facts before a model call")] = True
    order: Annotated[int, doc("place in the pipeline; lower runs first (`priority` is accepted)")] = 5
    max_results: Annotated[Positive, doc("most facts and relations in the block")] = 8
    min_score: Annotated[NotNegative, doc("facts below this score are left out")] = 50
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 500
    activation_bump: Annotated[float, doc("activation added to a retrieved fact")] = 0.5
    activation_weight: Annotated[Share, doc("share of activation in the combined score")] = 0.3
    relevance_weight: Annotated[Share, doc("share of relevance in the combined score")] = 0.7
    co_occurrence_limit: Annotated[NotNegative, doc("most linked facts that are added")] = 4
    co_occurrence_min_weight: Annotated[float, doc("minimal weight of a link between facts")] = 2
    cache_size: Annotated[NotNegative, doc("answers kept")] = 10
    cache_ttl: Annotated[NotNegative, doc("milliseconds an answer is kept")] = 60_000


class PolicyGateSettings(Section, frozen=True):
    enabled: Annotated[bool, doc("inject gating policies when a message plans a risky action")] = True
    order: Annotated[int, doc("place in the pipeline")] = 3
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 500


class RecallPluginSettings(Section, frozen=True):
    enabled: Annotated[bool, doc("inject lines of pages and logs, and entries, that help with a message")] = (
        True
    )
    order: Annotated[int, doc("place in the pipeline")] = 7
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 1000
    corpora: Annotated[tuple[str, ...], doc("domain documents whose passages are injected too, by name")] = ()


class ContinuitySettings(Section, frozen=True):
    enabled: Annotated[bool, doc("inject what was said in earlier sessions")] = True
    order: Annotated[int, doc("place in the pipeline")] = 10
    max_exchanges: Annotated[Positive, doc("accepted and not used: no exchange leaves the archive")] = 5000
    context_budget: Annotated[Positive, doc("most tokens of the block")] = 2000
    recent_share: Annotated[Share, doc("share of the block's tokens for the last week")] = 0.5
    mid_share: Annotated[
        Share, doc("share for the two months before that; the rest is for older exchanges")
    ] = 0.3
    max_recollections: Annotated[
        Positive, doc("most exchanges recalled in one block; of plans for a day up to 10")
    ] = 6
    always: Annotated[bool, doc("recall even when the message seems to need no memory")] = False
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 1000


class StabilitySettings(Section, frozen=True):
    enabled: Annotated[bool, doc("watch for drift, loops and confabulation")] = True
    order: Annotated[int, doc("place in the pipeline")] = 15
    entropy_threshold: Annotated[float, doc("minimal entropy at which drift is reported")] = 0.7
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 300


class GrowthSettings(Section, frozen=True):
    enabled: Annotated[bool, doc("learn lessons from corrections and inject them")] = True
    order: Annotated[int, doc("place in the pipeline")] = 20
    max_lessons: Annotated[Positive, doc("most lessons in the block")] = 3
    min_similarity: Annotated[
        Share, doc("minimal cosine at which a lesson applies; 0: the embedder's own")
    ] = 0.0
    timeout_ms: Annotated[Positive, doc("time limit of the plugin")] = 500


class PluginEntries(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    graph_memory: GraphMemorySettings = GraphMemorySettings()
    policies: PolicyGateSettings = PolicyGateSettings()
    recall: RecallPluginSettings = RecallPluginSettings()
    continuity: ContinuitySettings = ContinuitySettings()
    stability: StabilitySettings = StabilitySettings()
    growth_vectors: GrowthSettings = GrowthSettings()


class PluginsSettings(Section, frozen=True):
    allow: Annotated[
        tuple[str, ...], doc("plugins that may run, by name; third-party ones must be named here")
    ] = (
        "policies",
        "graph-memory",
        "recall",
        "continuity",
        "stability",
        "growth-vectors",
    )
    budget: Annotated[Positive, doc("most tokens of all blocks of a turn; plugins get theirs in order")] = (
        3000
    )
    timeout_ms: Annotated[Positive, doc("time limit of all plugins of a turn together")] = 2000
    entries: PluginEntries = PluginEntries()
    third_party: Annotated[dict[str, dict[str, Any]], doc("settings of third-party plugins, by name")] = {}


class CronSettings(Section, frozen=True):
    decay: Annotated[str, doc("when activation cools")] = "0 3 * * *"
    rag_reindex: Annotated[str, doc("when domain corpora are indexed again")] = "30 3 * * 0"
    intake: Annotated[
        str, doc("when exchanges and files are processed: archive, facts, index; empty for never")
    ] = "0 * * * *"
    nightly: Annotated[
        str, doc("when expired lines move, proposals are made and entries expire; empty for never")
    ] = "0 3 * * *"


class UpkeepSettings(Section, frozen=True):
    observation_days: Annotated[
        NotNegative, doc("days that log lines of importance 0.4 to 0.8 stay before they are archived")
    ] = 30
    routine_days: Annotated[
        NotNegative, doc("days that log lines of importance under 0.4 stay before they are archived")
    ] = 7
    promote_score: Annotated[Share, doc("minimal score of a log line that is proposed for MEMORY.md")] = 0.8
    max_proposals: Annotated[Positive, doc("most promotions that wait for review at a time")] = 20
    active_context_bytes: Annotated[Positive, doc("most bytes of active-context.md after a refresh")] = 2_000


class FlushSettings(Section, frozen=True):
    enabled: Annotated[bool, doc("ask the agent to write down what matters before a compaction")] = True
    context_window: Annotated[Positive, doc("tokens that the model's window holds")] = 200_000
    reserve_tokens_floor: Annotated[NotNegative, doc("tokens that the host keeps free")] = 20_000
    soft_threshold_tokens: Annotated[NotNegative, doc("tokens before that at which the flush fires")] = 4_000
    transcript_bytes: Annotated[NotNegative, doc("transcript size at which it fires too; 0 for never")] = (
        2_097_152
    )


class TelemetrySettings(Section, frozen=True):
    enabled: Annotated[
        bool, doc("write one JSON line per event to logs/telemetry.jsonl; nothing leaves the machine")
    ] = True
    max_bytes: Annotated[Positive, doc("size at which the file is rotated (one old file is kept)")] = (
        5_000_000
    )


class EntriesSettings(Section, frozen=True):
    max_brief_entries: Annotated[Positive, doc("most entries in the brief")] = 50
    max_brief_chars: Annotated[Positive, doc("most characters of the brief")] = 10_000
    max_brief_tokens: Annotated[Positive, doc("most tokens of the brief")] = 1_500
    brief_timeout_ms: Annotated[
        Positive, doc("time limit of the brief; a session then starts without it")
    ] = 5_000
    recall_budget: Annotated[Positive, doc("most tokens that recall gives when none are named")] = 3_000
    stores_per_session: Annotated[NotNegative, doc("entries that one session may store")] = 20
    supersedes_per_session: Annotated[NotNegative, doc("entries that one session may replace")] = 5
    deletes_per_session: Annotated[NotNegative, doc("entries that one session may delete")] = 5
    purge_superseded_days: Annotated[
        NotNegative, doc("days after which a replaced entry may be purged; 0 keeps all")
    ] = 90


class ServerSettings(Section, frozen=True):
    autostart: Annotated[
        bool, doc("a client's session starts a server if none runs; `ncm install` switches it on")
    ] = False
    idle_minutes: Annotated[
        int,
        Meta(ge=1, le=100_000),
        doc("minutes without a client after which a server that a session started ends"),
    ] = 30


class StoreSettings(Section, frozen=True):
    url: Annotated[
        str, doc("postgresql://… of a database that several servers share; empty: files of this home")
    ] = ""


class Settings(Section, frozen=True):
    """The whole of nanoclaw.json."""

    memory: MemorySettings = MemorySettings()
    store: StoreSettings = StoreSettings()
    server: ServerSettings = ServerSettings()
    user: UserSettings = UserSettings()
    privacy: PrivacySettings = PrivacySettings()
    projects: ProjectsSettings = ProjectsSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    judge: JudgeSettings = JudgeSettings()
    rerank: RerankSettings = RerankSettings()
    writer: WriterSettings = WriterSettings()
    graph: GraphSettings = GraphSettings()
    entries: EntriesSettings = EntriesSettings()
    plugins: PluginsSettings = PluginsSettings()
    cron: CronSettings = CronSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    flush: FlushSettings = FlushSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
