// Connects OpenClaw to nanoclaw-memory. `ncm install openclaw` writes this file and `ncm uninstall openclaw` removes it.
// Whatever fails here, the agent goes on without memory.
import { spawn } from "node:child_process";

const PATIENCE = 8000; // milliseconds; OpenClaw allows fifteen
const MOST_SESSIONS = 200;
const INTERNAL = /:(subagent|acp|cron|hook|heartbeat):/; // no person speaks there
const SHARED = /:(group|channel|room|space|thread|topic):/; // several people do

function isPersons(ctx) {
  const origin = ctx.inputProvenance?.kind ?? "external_user";
  return (ctx.trigger ?? "user") === "user" && origin === "external_user" && !INTERNAL.test(ctx.sessionKey ?? "");
}

// What a hook of ours answers; empty when it has nothing to say, fails or takes too long.
function ask(command, name, ctx, fields) {
  const [program, ...options] = command;
  const shared = !ctx.sessionKey || SHARED.test(ctx.sessionKey) ? ["--shared"] : [];
  const session = ctx.sessionId ?? ctx.sessionKey ?? "";
  const payload = { session_id: session, hook_event_name: name, client: "openclaw", cwd: "/", ...fields };
  return new Promise((resolve) => {
    const child = spawn(program, [...options, ...shared, "hook", name], { stdio: ["pipe", "pipe", "ignore"] });
    const timer = setTimeout(() => child.kill(), PATIENCE);
    let answer = "";
    child.stdout.on("data", (part) => (answer += part));
    child.stdin.on("error", () => {});
    child.on("error", () => resolve(""));
    child.on("close", () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(answer).hookSpecificOutput.additionalContext ?? "");
      } catch {
        resolve("");
      }
    });
    child.stdin.end(JSON.stringify(payload));
  });
}

function lastAnswer(messages) {
  const answer = messages.findLast((message) => message?.role === "assistant");
  const parts = Array.isArray(answer?.content) ? answer.content : [{ type: "text", text: answer?.content ?? "" }];
  return parts.filter((part) => part.type === "text").map((part) => part.text).join("\n\n");
}

export default {
  id: "nanoclaw-memory",
  name: "NanoClaw Memory",
  description: "Long-term memory: what matters before every prompt, what was said after every answer.",
  register(api) {
    const command = api.pluginConfig?.command ?? [];
    if (!command.length) return;
    const starts = new Map(); // a session's start is the same at every turn, so that the prompt's cache holds

    function startOf(ctx) {
      const session = ctx.sessionId ?? ctx.sessionKey;
      if (!starts.has(session)) {
        if (starts.size >= MOST_SESSIONS) starts.delete(starts.keys().next().value);
        starts.set(session, ask(command, "SessionStart", ctx, { source: "startup" }));
      }
      return starts.get(session);
    }

    api.on("before_prompt_build", async (event, ctx) => {
      const prompt = event.currentUserMessage ?? event.prompt;
      if (!prompt || !isPersons(ctx)) return;
      const start = await startOf(ctx);
      const blocks = await ask(command, "UserPromptSubmit", ctx, { prompt });
      return { ...(start && { appendSystemContext: start }), ...(blocks && { prependContext: blocks }) };
    });
    api.on("agent_end", async (event, ctx) => {
      const answer = event.success ? lastAnswer(event.messages) : "";
      if (answer && isPersons(ctx)) await ask(command, "Stop", ctx, { last_assistant_message: answer });
    });
    api.on("before_compaction", async (event, ctx) => {
      starts.delete(ctx.sessionId ?? ctx.sessionKey);
      await ask(command, "PreCompact", ctx, { transcript_path: event.sessionFile ?? "" });
    });
    api.on("session_end", async (event, ctx) => {
      starts.delete(event.sessionId);
      await ask(command, "SessionEnd", { ...ctx, sessionId: event.sessionId, sessionKey: event.sessionKey }, {});
    });
  },
};
