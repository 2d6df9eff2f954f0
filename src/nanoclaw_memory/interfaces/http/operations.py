"""The operations of the JSON API: one row per method and path."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from nanoclaw_memory.errors import Refused
from nanoclaw_memory.interfaces.http.operation import Operation, plain
from nanoclaw_memory.memory.parts import (
    AdminPart,
    ConversationsPart,
    Corpora,
    EntriesPart,
    Host,
    KnowledgeGraph,
    LessonService,
    Memory,
    Tasks,
    UpkeepPart,
    WorkspacePart,
)
from nanoclaw_memory.types import Forgotten, GraphAnswer, LogLine
from nanoclaw_memory.types.arguments import Query

_get, _post, _put, _delete = (partial(Operation, method) for method in ("GET", "POST", "PUT", "DELETE"))


# ---- operations that differ from their methods ----


def _graph_search(
    memory: Memory,
    query: Query,
    top_k: Annotated[int, Meta(ge=1, le=50)] = 6,
    as_of: str | None = None,
    reinforce: bool = False,
) -> GraphAnswer:
    """Return facts and relations that answer a question; `reinforce` warms them, as for an agent."""
    answer = memory.graph.search(query, top_k, as_of)
    if reinforce:
        memory.graph.reinforce(answer.hits)
    return answer


def _log(memory: Memory, day: date | None = None) -> list[LogLine]:
    """Return the entries of one day's log, by default today's."""
    return memory.log(day)[1]


def _groups(memory: Memory) -> list[dict[str, Any]]:
    """Return the chats that have an agent of their own."""
    return [{"chat": chat, "group": group} for chat, group in memory.host.state.groups.items()]


def _forget(
    memory: Memory,
    id: str = "",
    entity: str = "",
    session: str = "",
    text: str = "",
    dry_run: bool = False,
    yes: bool = False,
    keep_pages: bool = False,
    checkpoints: bool = False,
    keep_out: bool = False,
) -> Forgotten:
    """Remove something permanently, from Markdown pages too unless `keep_pages`; `yes` agrees to what `dry_run`
    shows.
    """
    if not dry_run and not yes:
        raise Refused("forgetting cannot be undone; nothing was removed", "look with dry_run, agree with yes")
    return memory.forget(
        id=id,
        entity=entity,
        session=session,
        text=text,
        dry_run=dry_run,
        agreed=lambda shown: not keep_pages,
        checkpoints=checkpoints,
        keep_out=keep_out,
    )


def _with_text(turn: Any, given: Mapping[str, Any]) -> Any:
    return {**plain(turn), "text": turn.text}


# What an agent's token allows: the MCP tools' operations, and those of its program around a model call.
AGENT_OPERATIONS = frozenset(
    """search recall shared_recall lines boot brief index_status log write projects project project_note runbooks
    runbook policies policy_check entries entry store delete reinforce graph_search graph_query graph_ingest
    fact_upsert top_facts entities history drawn relate alias
    lessons before_turn after_turn report_tools session_start session_end flush_needed sessions session_search session
    note audit""".split()
)

OPERATIONS = (
    # ---- reading ----
    _get("/search", "search", Memory.search),
    _get("/recall", "recall", Memory.recall, omitted=("noted",)),
    _get("/shared-recall", "shared_recall", EntriesPart.shared_recall),
    _get("/lines", "lines", Memory.get),
    _get("/boot", "boot", Memory.boot),
    _get("/brief", "brief", Memory.brief),
    _post("/index", "index", Memory.index, lasting=True),
    _get("/index/status", "index_status", Memory.index_status, lasting=True),
    _post("/index/bench", "bench_embed", AdminPart.compare_embedders, lasting=True, key="compared"),
    _get("/index/cost", "embedding_cost", AdminPart.embedding_cost, lasting=True),
    _get("/corpora", "corpora", Corpora.all, lasting=True, paged=True),
    # ---- the files a person edits ----
    _post("/init", "init", Memory.init),
    _get("/log", "log", _log, paged=True),
    _post("/log", "write", Memory.write),
    _get("/files", "files", WorkspacePart.files, paged=True),
    _get("/page", "page", WorkspacePart.page),
    _put("/page", "save_page", WorkspacePart.save_page, lasting=True),
    _get("/page/versions", "versions", WorkspacePart.versions, paged=True),
    _get("/page/version", "version", WorkspacePart.version),
    _get("/page/origins", "line_origins", WorkspacePart.line_origins, paged=True),
    _get("/projects", "projects", WorkspacePart.projects, paged=True),
    _post("/projects", "project_new", WorkspacePart.new_project),
    _get("/projects/{slug}", "project", WorkspacePart.project, key="files"),
    _post("/projects/{slug}/notes", "project_note", WorkspacePart.note_project),
    _post("/projects/{slug}/share", "project_share", WorkspacePart.share_project),
    _post("/projects/{slug}/close", "project_close", WorkspacePart.close_phase, key="proposals"),
    _get("/agents", "agents", WorkspacePart.agents, paged=True),
    _post("/agents", "put_agent", WorkspacePart.put_agent),
    _get("/runbooks", "runbooks", WorkspacePart.runbooks, paged=True),
    _get("/runbooks/{name}", "runbook", WorkspacePart.runbook),
    _get("/policies", "policies", WorkspacePart.policies, paged=True),
    _post("/policies", "policy_add", WorkspacePart.add_policy),
    _get("/policies/check", "policy_check", WorkspacePart.check_policies, paged=True),
    _get("/checkpoints", "checkpoints", WorkspacePart.checkpoints, paged=True),
    _post("/checkpoints", "checkpoint", WorkspacePart.checkpoint, lasting=True),
    _get(
        "/checkpoints/{name}/diff",
        "checkpoint_diff",
        WorkspacePart.compare_checkpoint,
        lasting=True,
        paged=True,
    ),
    _post(
        "/checkpoints/{name}/restore", "checkpoint_restore", WorkspacePart.restore_checkpoint, lasting=True
    ),
    _post("/active-context", "refresh_active_context", WorkspacePart.refresh_active_context, lasting=True),
    # ---- entries ----
    _get("/entries", "entries", EntriesPart.all, paged=True),
    _post("/entries", "store", Memory.store, omitted=("reason",)),
    _get(
        "/entries/{id}",
        "entry",
        EntriesPart.history,
        shape=lambda found, given: {"entry": found[0], "replaced": found[1:]},
    ),
    _delete("/entries/{id}", "delete", Memory.delete),
    _post("/entries/{id}/reinforce", "reinforce", EntriesPart.reinforce),
    _post("/entries/{id}/approve", "approve", EntriesPart.approve),
    _post("/entries/{id}/reject", "reject", EntriesPart.reject),
    _post("/entries/{id}/archive", "archive_entry", EntriesPart.archive),
    _get("/entries/{id}/trace", "audit_trace", EntriesPart.trace),
    _post(
        "/entries/render",
        "render",
        EntriesPart.render,
        lasting=True,
        shape=lambda found, given: {"written": found[0], "left": found[1]},
    ),
    _post("/entries/migrate", "entries_migrate", UpkeepPart.migrate_files, lasting=True),
    _post("/entries/import", "import_export", UpkeepPart.import_export, lasting=True),
    # ---- graph ----
    _get("/graph/search", "graph_search", _graph_search),
    _get("/graph/query", "graph_query", KnowledgeGraph.query),
    _post("/graph/ingest", "graph_ingest", KnowledgeGraph.ingest_rows),
    _post("/graph/facts", "fact_upsert", KnowledgeGraph.upsert),
    _post("/graph/facts/remove", "remove_facts", KnowledgeGraph.remove, key="removed"),
    _post("/graph/facts/reject", "reject_fact", KnowledgeGraph.reject, key="removed"),
    _get("/graph/entities", "entities", KnowledgeGraph.entities, key="entities"),
    _get("/graph/facts", "top_facts", KnowledgeGraph.top, paged=True),
    _get("/graph/history", "history", KnowledgeGraph.history, paged=True),
    _get("/graph/changes", "changes", KnowledgeGraph.changes, paged=True),
    _get("/graph/view", "drawn", KnowledgeGraph.drawn),
    _post("/graph/relations", "relate", KnowledgeGraph.relate),
    _post("/graph/relations/remove", "unrelate", KnowledgeGraph.unrelate, key="removed"),
    _post("/graph/aliases", "alias", KnowledgeGraph.alias, key="created"),
    # ---- lessons ----
    _get("/lessons", "lessons", LessonService.lessons, paged=True),
    _post("/lessons", "add_lesson", LessonService.add),
    _get("/lessons/outcomes", "outcomes", LessonService.outcomes, paged=True, most=1000),
    _get("/lessons/{id}", "lesson_detail", LessonService.detail),
    _post("/lessons/{id}/retire", "retire_lesson", LessonService.retire),
    _post("/lessons/{id}/feedback", "lesson_feedback", LessonService.feedback),
    # ---- around a model call ----
    _post("/turns/before", "before_turn", Memory.before_turn, shape=_with_text),
    _post("/turns/after", "after_turn", Memory.after_turn),
    _post(
        "/turns/tools",
        "report_tools",
        Memory.report_tools,
        shape=lambda found, given: {"noted": len(given["calls"])},
    ),
    _post("/sessions/start", "session_start", Memory.session_start, shape=_with_text),
    _post("/sessions/end", "session_end", Memory.session_end, key="failed"),
    _post(
        "/sessions/compaction", "before_compaction", Memory.before_compaction, lasting=True, key="archived"
    ),
    _post("/sessions/flush", "flush_needed", ConversationsPart.flush_needed),
    _get("/injections", "injections", ConversationsPart.injections),
    _get("/sessions", "sessions", ConversationsPart.sessions, paged=True),
    _get("/sessions/search", "session_search", ConversationsPart.search, paged=True, most=50),
    _get("/sessions/{id}", "session", ConversationsPart.session, paged=True),
    _post("/sessions/embed", "embed_exchanges", ConversationsPart.embed, lasting=True, key="embedded"),
    _post("/spool", "note", ConversationsPart.note, shape=lambda found, given: {"noted": given["kind"]}),
    _post("/spool/drain", "drain", ConversationsPart.drain, lasting=True, key="exchanges"),
    _get("/conversations", "archives", ConversationsPart.archives, paged=True),
    _post("/conversations", "archive", ConversationsPart.archive, lasting=True, key="archived"),
    _get("/transcripts", "transcripts", ConversationsPart.transcripts, paged=True),
    # ---- the host ----
    _get("/groups", "groups", _groups, paged=True),
    _post(
        "/groups",
        "register_group",
        Host.register_group,
        renamed={"jid": "chat", "trigger_pattern": "trigger"},
    ),
    _get("/tasks", "tasks", Tasks.all, paged=True),
    _post("/tasks", "add_task", Tasks.add, renamed={"chat_jid": "chat"}, omitted=("identity",)),
    _delete("/tasks/{id}", "remove_task", Tasks.remove),
    _post("/tasks/{id}", "update_task", Tasks.update),
    _post("/tasks/{id}/pause", "pause_task", Tasks.pause),
    _post("/tasks/{id}/resume", "resume_task", Tasks.resume),
    _get("/tasks/{id}/runs", "task_runs", Tasks.logs, paged=True, most=1000),
    # ---- upkeep and administration ----
    _get("/status", "status", Memory.status),
    _get("/counts", "counts", Memory.counts),
    _get("/doctor", "doctor", Memory.doctor, lasting=True, paged=True, omitted=("fix",)),
    _get("/databases", "db_check", AdminPart.check_databases, lasting=True, paged=True),
    _get("/audit", "audit", Memory.audit, lasting=True, renamed={"scope": "part"}, omitted=("fix",)),
    _post(
        "/audit/fix",
        "audit_fix",
        Memory.audit,
        lasting=True,
        renamed={"scope": "part"},
        fixed={"fix": True},
        omitted=("recommend",),
    ),
    _get("/audit/log", "audit_verify", EntriesPart.verify, lasting=True),
    _get("/audit/records", "audit_records", EntriesPart.audit_records, key="records"),
    _get("/review", "review", UpkeepPart.review, lasting=True, paged=True),
    _post("/review/{id}", "review_decide", UpkeepPart.decide, lasting=True),
    _post("/review/{id}/undo", "review_undo", UpkeepPart.undo, lasting=True),
    _get("/upkeep", "upkeep_status", UpkeepPart.status, paged=True),
    _post("/upkeep", "upkeep", UpkeepPart.run, lasting=True, key="jobs"),
    _get("/heartbeat", "heartbeat", UpkeepPart.heartbeat, lasting=True, paged=True),
    _get("/models", "models", AdminPart.models, lasting=True, paged=True),
    _post(
        "/models", "models_install", AdminPart.install_models, lasting=True, key="models", omitted=("force",)
    ),
    _get("/config", "config_rows", AdminPart.config_rows, paged=True),
    _get(
        "/config/{key}",
        "config_get",
        AdminPart.config_get,
        shape=lambda found, given: {"key": given["key"], "value": found[0], "from": found[1]},
    ),
    _put(
        "/config/{key}",
        "config_set",
        AdminPart.config_set,
        shape=lambda found, given: {"key": given["key"], "value": found},
    ),
    _post("/forget", "forget", _forget, lasting=True),
    _get("/forget", "kept_out", AdminPart.kept_out, lasting=True, paged=True),
    _post("/forget/allow", "forget_allow", AdminPart.allow_forgotten, lasting=True, key="lifted"),
    _post("/forget/check", "forgets", AdminPart.is_forgotten, key="forgotten"),
)
