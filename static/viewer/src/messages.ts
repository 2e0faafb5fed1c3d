/** Everything else that is said in a session: prompts, answers, thoughts, notices, Interactions. */

import { h, icon } from "./dom";
import { markdown } from "./markdown";
import { asList, asObject, asText } from "./model";
import type { InteractionRow, JsonObject, MessageRow } from "./protocol";
import { firstLine, taskText, withoutTokens } from "./text";
import { toolCard } from "./toolcard";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The element of a message. `open` keeps what the reader unfolded; null where nothing was drawn before. */
export function messageElement(row: MessageRow, open: boolean | null, child: HTMLElement | null): HTMLElement {
  if (row.kind === "tool_call") return toolCard(row, open, child);
  if (asText(row.payload["kind"]) === "agent_system_notice") return notice(row);
  if (row.kind === "reasoning") return reasoning(row, open ?? false);
  if (row.role === "user") return prompt(row);
  return h("div", { class: "answer prose" }, markdown(withoutTokens(textOf(row.payload))));
}

export function textOf(payload: JsonObject): string {
  const text = asText(payload["text"]);
  if (text) return text;
  const content = payload["content"];
  if (typeof content === "string") return content;
  return asList(content).map((block) => asText(block["text"])).filter(Boolean).join("\n");
}

function prompt(row: MessageRow): HTMLElement {
  const payload = row.payload;
  const shown = asText(payload["displayPrompt"]) || textOf(payload);
  const element = h("div", { class: "prompt" });
  if (payload["guidance"] === true) element.append(h("span", { class: "tag" }, "while it worked"));
  if (shown) element.append(h("div", { class: "prompt-text" }, shown));
  for (const block of asList(payload["content"])) {
    if (asText(block["type"]) === "image") element.append(image(block));
  }
  return element;
}

function image(block: JsonObject): HTMLElement {
  const [type, data] = [asText(block["mimeType"]), asText(block["data"])];
  if (IMAGE_TYPES.has(type) && /^[A-Za-z0-9+/=]+$/.test(data)) {
    return h("img", { src: `data:${type};base64,${data}`, alt: "Image of the prompt", loading: "lazy" });
  }
  return h("span", { class: "tag" }, asText(block["name"]) || "image");
}

function reasoning(row: MessageRow, open: boolean): HTMLElement {
  const text = withoutTokens(textOf(row.payload));
  const head = firstLine(text).replace(/^[#*\s]+|[*\s]+$/g, "");
  const element = h(
    "details",
    { class: "reasoning" },
    h("summary", {}, icon("think"), h("span", { class: "reasoning-word" }, "Thinking"), h("span", { class: "reasoning-head" }, head)),
    h("div", { class: "prose" }, markdown(text)),
  );
  element.open = open;
  return element;
}

function notice(row: MessageRow): HTMLElement {
  const payload = row.payload;
  const title = asText(payload["title"]) || asText(payload["noticeKind"]) || "Notice";
  const detail = taskText(asText(payload["detail"]) || asText(payload["text"]));
  const isBad = /error|fail|limit|denied/i.test(`${title} ${asText(payload["severity"])}`);
  return h(
    "div",
    { class: `notice ${isBad ? "notice-bad" : ""}`, role: "note" },
    icon(isBad ? "warn" : "other"),
    h("span", {}, title),
    detail && detail !== title ? h("span", { class: "notice-detail" }, withoutTokens(detail)) : null,
  );
}

const INTERACTIONS = { approval: "Approval", question: "Question", plan: "Plan" };

export function interactionElement(row: InteractionRow): HTMLElement {
  const answer = answerOf(row);
  const element = h(
    "div",
    { class: `interaction interaction-${row.status}`, "data-kind": row.kind },
    h(
      "div",
      { class: "interaction-head" },
      icon("ask"),
      h("strong", {}, INTERACTIONS[row.kind]),
      row.toolName ? h("span", { class: "tool-name" }, row.toolName) : null,
      h("span", { class: `status status-${row.status === "pending" ? "running" : "ok"}` }, row.status === "answered" ? answer : row.status),
    ),
  );
  const text = asText(row.input["plan"]) || asText(row.input["question"]) || asText(row.input["command"]) || asText(row.input["message"]);
  if (text) element.append(h("div", { class: "prose" }, markdown(withoutTokens(text))));
  return element;
}

function answerOf(row: InteractionRow): string {
  const output = asObject(row.output);
  return asText(output["action"]) || asText(output["optionId"]) || asText(output["decision"]) || "answered";
}
