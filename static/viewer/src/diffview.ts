/** Changed files of a tool call or a Turn, as diffs. */

import { counts, parseDiff, wholeText, type DiffLine } from "./diff";
import { h } from "./dom";
import { asList, asObject, asText } from "./model";
import type { FileChange, JsonObject } from "./protocol";
import { shownPath } from "./text";

const SHOWN_LINES = 60;
const MORE_LINES = 2000;
const WORDS: Record<string, string> = {
  add: "new", added: "new", update: "changed", modified: "changed", delete: "deleted", deleted: "deleted",
};

/** The files that a tool call changed, wherever its provider tells them. */
export function changesOf(payload: JsonObject): FileChange[] {
  const told = asList(asObject(payload["fileChanges"])["files"]);
  if (told.length > 0) return told as unknown as FileChange[];
  const input = asObject(payload["input"]);
  const changes = asList(input["changes"]);
  if (changes.length > 0) {
    return changes.map((change) => ({
      path: asText(change["path"]),
      change: asText(asObject(change["kind"])["type"]) || asText(change["kind"]) || "update",
      diff: asText(change["diff"]),
    }));
  }
  if (asText(payload["kind"]) !== "edit") return [];
  const path = asText(input["file_path"]) || asText(input["notebook_path"]);
  const [before, after] = [asText(input["old_string"]), asText(input["new_string"])];
  if (path && (before || after)) return [{ path, change: "update", oldString: before, newString: after }];
  return path && asText(input["content"]) ? [{ path, change: "add", content: asText(input["content"]) }] : [];
}

export function linesOf(change: FileChange): DiffLine[] {
  const diff = change.diff || change.unifiedDiff || "";
  const text = change.content ?? change.newString ?? "";
  const isHunk = (value: string): boolean => /^@@ /m.test(value);
  if (isHunk(diff)) return parseDiff(diff);
  if (isHunk(text)) return parseDiff(text);
  if (/^add/.test(change.change)) return wholeText(diff || text, "add");
  if (/^delete/.test(change.change)) return wholeText(diff || change.oldString || text, "remove");
  if (change.oldString !== undefined && change.newString !== undefined) {
    return [...wholeText(change.oldString, "remove"), ...wholeText(change.newString, "add")];
  }
  return diff ? parseDiff(diff) : [];
}

export function fileDiff(change: FileChange): HTMLElement {
  const lines = linesOf(change);
  const { added, removed } = counts(lines);
  const table = h("div", { class: "diff-lines", role: "table", "aria-label": `Diff of ${shownPath(change.path)}` });
  const show = (from: number, to: number): void => {
    for (const line of lines.slice(from, to)) table.append(diffLine(line));
    const left = lines.length - to;
    if (left <= 0) return;
    const more = h("button", { type: "button", class: "more" }, `Show ${Math.min(left, MORE_LINES)} more lines`);
    more.addEventListener("click", () => {
      more.remove();
      show(to, to + MORE_LINES);
    });
    table.append(more);
  };
  show(0, SHOWN_LINES);
  return h(
    "div",
    { class: "diff" },
    h(
      "div",
      { class: "diff-head" },
      h("span", { class: "path" }, shownPath(change.path)),
      h("span", { class: `tag tag-${WORDS[change.change] ?? "changed"}` }, WORDS[change.change] ?? change.change),
      added > 0 && h("span", { class: "added" }, `+${added}`),
      removed > 0 && h("span", { class: "removed" }, `−${removed}`),
    ),
    lines.length > 0 ? table : null,
  );
}

const SIGNS = { add: "+", remove: "−", same: " ", hunk: "" };

function diffLine(line: DiffLine): HTMLElement {
  if (line.kind === "hunk") {
    return h("div", { class: "line hunk", role: "row" }, h("span", { class: "text", role: "cell" }, `⋯ ${line.text}`));
  }
  const text = h("span", { class: "text", role: "cell" });
  if (line.mark !== undefined && line.mark[1] > line.mark[0]) {
    const [start, end] = line.mark;
    text.append(line.text.slice(0, start), h("mark", {}, line.text.slice(start, end)), line.text.slice(end));
  } else {
    text.append(line.text || " ");
  }
  return h(
    "div",
    { class: `line ${line.kind}`, role: "row" },
    h("span", { class: "number", role: "cell" }, line.before === null ? "" : String(line.before)),
    h("span", { class: "number", role: "cell" }, line.after === null ? "" : String(line.after)),
    h("span", { class: "sign", role: "cell", "aria-label": line.kind }, SIGNS[line.kind]),
    text,
  );
}
