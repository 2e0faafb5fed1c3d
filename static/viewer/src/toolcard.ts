/** One tool call: what was asked, what came back, and how it ended. */

import { ansi } from "./ansi";
import { changesOf, fileDiff, linesOf } from "./diffview";
import { counts } from "./diff";
import { copy, h, icon } from "./dom";
import { markdown } from "./markdown";
import { asList, asObject, asText } from "./model";
import type { JsonObject, MessageRow } from "./protocol";
import { firstLine, shownPath, span, withoutTokens } from "./text";

const HEAD_LINES = 14;
const MAX_SHOWN = 200_000; // characters
const RUNNING = new Set(["", "running", "pending", "streaming", "in_progress", "started"]);

/** The card of a tool call. `child` is the place of the child session that the call started, where there is one. */
export function toolCard(row: MessageRow, open: boolean | null, child: HTMLElement | null): HTMLElement {
  const payload = row.payload;
  const status = statusOf(row);
  const changes = changesOf(payload);
  const sums = changes.map((change) => counts(linesOf(change)));
  const added = sums.reduce((sum, one) => sum + one.added, 0);
  const removed = sums.reduce((sum, one) => sum + one.removed, 0);
  const card = h("details", { class: `tool tool-${status.kind}`, "data-kind": asText(payload["kind"]) });
  card.open = open ?? true;
  card.append(
    h(
      "summary",
      {},
      icon(iconOf(payload)),
      h("span", { class: "tool-name" }, nameOf(payload)),
      h("span", { class: "tool-subject" }, subjectOf(payload)),
      added + removed > 0 && h("span", { class: "tool-sums" }, h("span", { class: "added" }, `+${added}`), " ", h("span", { class: "removed" }, `−${removed}`)),
      h("span", { class: `status status-${status.kind}` }, status.kind === "running" ? h("span", { class: "spinner" }) : null, status.text),
      status.kind !== "running" && row.updatedAtMs > row.createdAtMs
        ? h("span", { class: "tool-time" }, span(row.updatedAtMs - row.createdAtMs))
        : null,
    ),
  );
  const body = h("div", { class: "tool-body" });
  for (const part of inputParts(payload, changes.length > 0)) body.append(part);
  for (const change of changes) body.append(fileDiff(change));
  for (const part of outputParts(payload, changes.length > 0)) body.append(part);
  if (child !== null) body.append(child);
  if (body.childElementCount > 0) card.append(body);
  else card.classList.add("bare");
  return card;
}

function statusOf(row: MessageRow): { kind: "running" | "ok" | "failed" | "stopped"; text: string } {
  const exit = asObject(row.payload["output"])["exitCode"];
  if (row.status === "failed" || row.status === "error") {
    return { kind: "failed", text: typeof exit === "number" ? `exit ${exit}` : "failed" };
  }
  if (RUNNING.has(row.status)) return { kind: "running", text: "running" };
  if (/cancel|interrupt|abort/.test(row.status)) return { kind: "stopped", text: "stopped" };
  if (typeof exit === "number") return { kind: exit === 0 ? "ok" : "failed", text: `exit ${exit}` };
  return { kind: "ok", text: "done" };
}

function iconOf(payload: JsonObject): string {
  if (asText(payload["callType"]) === "subagent") return "agent";
  const kind = asText(payload["kind"]);
  return ["execute", "edit", "read", "fetch", "search"].includes(kind) ? kind : "other";
}

const NAMES: Record<string, string> = {
  shell: "Shell", apply_patch: "Edit", AskUserQuestion: "Question", ExitPlanMode: "Plan", TodoWrite: "Tasks", update_todo: "Tasks", view_image: "Image",
  WebSearch: "Web search", WebFetch: "Fetch", update_plan: "Plan",
};

function nameOf(payload: JsonObject): string {
  const name = asText(payload["name"]) || asText(payload["toolName"]) || "Tool";
  return NAMES[name] ?? name.replace(/^mcp__/, "").replace(/__/g, " · ");
}

/** The one value of the input that says most. */
function subjectOf(payload: JsonObject): string {
  const input = asObject(payload["input"]);
  const changes = changesOf(payload);
  if (changes.length > 0) return changes.map((change) => shownPath(change.path)).join(", ");
  for (const name of ["command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "title"]) {
    const value = asText(input[name]);
    if (value) return firstLine(withoutTokens(shownPath(value)), 160);
  }
  return firstLine(withoutTokens(asText(payload["title"])), 160);
}

function inputParts(payload: JsonObject, hasDiff: boolean): HTMLElement[] {
  const input = asObject(payload["input"]);
  const parts: HTMLElement[] = [];
  const command = Array.isArray(input["command"]) ? input["command"].join(" ") : asText(input["command"]);
  if (command) {
    const shown = withoutTokens(command);
    const note = asText(input["description"]);
    parts.push(block("command", h("code", {}, `$ ${shown}`), shown, note));
    return parts;
  }
  if (asText(input["plan"])) return [h("div", { class: "prose plan" }, markdown(asText(input["plan"])))];
  const questions = asList(input["questions"]);
  if (questions.length > 0) return questions.map((question) => questionPart(question, payload));
  const todos = asList(input["todos"]);
  if (todos.length > 0) return [todoPart(todos)];
  if (asText(input["prompt"])) return [h("div", { class: "prose" }, markdown(withoutTokens(asText(input["prompt"]))))];
  const hidden = new Set(hasDiff ? ["old_string", "new_string", "content", "changes", "replace_all", "file_path"] : ["file_path", "path"]);
  const rest = Object.entries(input).filter(([name]) => !hidden.has(name));
  if (rest.length > 0) parts.push(members(Object.fromEntries(rest)));
  return parts;
}

function questionPart(question: JsonObject, payload: JsonObject): HTMLElement {
  const asked = asText(question["question"]);
  const answers = asObject(asObject(asObject(payload["output"])["result"])["answers"]);
  const answer = answers[asked];
  const chosen = new Set(Array.isArray(answer) ? answer.map(String) : String(answer ?? "").split(", "));
  const options = asList(question["options"]).map((option) => {
    const label = asText(option["label"]);
    return h(
      "li",
      { class: chosen.has(label) ? "chosen" : "" },
      h("strong", {}, label),
      " ",
      asText(option["description"]),
      chosen.has(label) && h("span", { class: "tag" }, "chosen"),
    );
  });
  return h("div", { class: "question" }, h("p", {}, asked), h("ul", {}, ...options));
}

function todoPart(todos: JsonObject[]): HTMLElement {
  const items = todos.map((todo) => {
    const state = asText(todo["status"]);
    const mark = state === "completed" ? "✓" : state === "in_progress" ? "▸" : "·";
    return h("li", { class: `todo-${state}` }, h("span", { class: "todo-mark" }, mark), asText(todo["content"]) || asText(todo["step"]));
  });
  return h("ul", { class: "todos" }, ...items);
}

function members(value: JsonObject): HTMLElement {
  const list = h("dl", { class: "members" });
  for (const [name, member] of Object.entries(value)) {
    const text = typeof member === "string" ? member : JSON.stringify(member, null, 1);
    list.append(h("dt", {}, name), h("dd", {}, h("pre", {}, withoutTokens(text.slice(0, 4000)))));
  }
  return list;
}

function outputParts(payload: JsonObject, hasDiff: boolean): HTMLElement[] {
  const output = asObject(payload["output"]);
  const error = asText(asObject(payload["error"])["message"]) || asText(payload["error"]);
  const streams = [asText(output["stdout"]), asText(output["stderr"])].filter(Boolean).join("\n");
  const text = streams || asText(output["text"]) || contentText(payload["content"]) || contentText(output["content"]);
  const parts: HTMLElement[] = [];
  const isAnswered = asList(asObject(payload["input"])["questions"]).length > 0;
  if (text && !isAnswered && !(hasDiff && !error)) parts.push(outputBlock(withoutTokens(text)));
  const says = typeof output["exitCode"] === "number" && text !== "" && error.endsWith(" failed"); // the output says more
  if (error && !says && !text.includes(error)) parts.push(h("p", { class: "tool-error" }, withoutTokens(error)));
  return parts;
}

function contentText(content: unknown): string {
  return asList(content).map((block) => asText(block["text"]) || asText(asObject(block["content"])["text"])).filter(Boolean).join("\n");
}

/** Output with its first lines, and the rest on demand. */
export function outputBlock(text: string): HTMLElement {
  const shown = text.replace(/\s+$/, "").slice(0, MAX_SHOWN);
  const lines = shown.split("\n");
  const code = h("code");
  const fill = (part: string): void => {
    code.replaceChildren(...ansi(part).map((piece) => (piece.classes ? h("span", { class: piece.classes }, piece.text) : piece.text)));
  };
  const cut = lines.length > HEAD_LINES + 4;
  fill(cut ? lines.slice(0, HEAD_LINES).join("\n") : shown);
  const element = block("output", code, text);
  if (cut) {
    const more = h("button", { type: "button", class: "more" }, `Show ${lines.length - HEAD_LINES} more lines`);
    more.addEventListener("click", () => {
      fill(shown);
      more.remove();
    });
    element.append(more);
  }
  return element;
}

function block(kind: string, code: HTMLElement, copied: string, note = ""): HTMLElement {
  const button = h("button", { type: "button", class: "copy", title: "Copy", "aria-label": "Copy" }, icon("copy"));
  button.addEventListener("click", () => {
    void copy(copied).then((done) => button.classList.toggle("copied", done));
  });
  return h("div", { class: `block ${kind}` }, note ? h("p", { class: "note" }, note) : null, h("pre", { tabindex: 0 }, code), button);
}
