/** Texts as people read them. */

const PROJECT = "${REPLAY_CWD}";
const OUTSIDE = "${REPLAY_OUTSIDE}";

/** A path without the tokens that stand for places on the recorded machine. */
export function shownPath(path: string): string {
  if (path === PROJECT) return ".";
  if (path.startsWith(`${PROJECT}/`)) return path.slice(PROJECT.length + 1);
  return path.startsWith(OUTSIDE) ? path.slice(OUTSIDE.length) : path;
}

/** Free text without those tokens. */
export function withoutTokens(text: string): string {
  return text.replaceAll(`${PROJECT}/`, "").replaceAll(PROJECT, ".").replaceAll(OUTSIDE, "");
}

/** `0:04`, `12:30`, `1:02:03`. */
export function clock(ms: number): string {
  const total = Math.floor(Math.max(0, ms) / 1000);
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const tail = `${String(seconds).padStart(2, "0")}`;
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** A span of time: `340 ms`, `4.2 s`, `3 min 05 s`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(ms / 1000) % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Milliseconds of `90`, `1:30` or `1:02:03`; null for anything else. */
export function parseTime(text: string): number | null {
  if (!/^\d+(?:\.\d+)?$|^\d+(?::[0-5]?\d){1,2}$/.test(text)) return null;
  return text.split(":").reduce((sum, part) => sum * 60 + Number(part), 0) * 1000;
}

export function firstLine(text: string, limit = 140): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** A checkpoint kind in words: `tool.started` → `Tool started`. */
export function checkpointLabel(kind: string): string {
  const words = kind.replace(/[._-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The notification of a background task is made for a model; people get its summary and its result. */
export function taskText(text: string): string {
  if (!text.startsWith("<task-notification>")) return text;
  const parts = ["summary", "result"].map((name) => new RegExp(`<${name}>([^]*?)</${name}>`).exec(text)?.[1]?.trim() ?? "");
  return parts.filter(Boolean).join(": ") || text;
}
