/** Reads unified diffs, and marks what changed inside of a line. */

export interface DiffLine {
  kind: "add" | "remove" | "same" | "hunk";
  text: string;
  before: number | null;
  after: number | null;
  /** The changed part of the line, as a range of characters. */
  mark?: [number, number];
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/;
const HEADER = /^(?:\*\*\* |@@$|diff --git |index |--- |\+\+\+ |new file |deleted file |old mode |new mode |similarity |rename )/;

export function parseDiff(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let [before, after] = [1, 1];
  let inHunk = false;
  for (const raw of diff.replace(/\r\n/g, "\n").replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(raw);
    if (hunk !== null) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      inHunk = true;
      lines.push({ kind: "hunk", text: (hunk[3] ?? "").trim(), before: null, after: null });
    } else if (!inHunk && HEADER.test(raw)) {
      continue;
    } else if (raw.startsWith("\\ ")) {
      continue; // "No newline at end of file"
    } else if (raw.startsWith("+")) {
      lines.push({ kind: "add", text: raw.slice(1), before: null, after: after++ });
    } else if (raw.startsWith("-")) {
      lines.push({ kind: "remove", text: raw.slice(1), before: before++, after: null });
    } else {
      lines.push({ kind: "same", text: raw.replace(/^ /, ""), before: before++, after: after++ });
    }
  }
  markPairs(lines);
  return lines;
}

/** A whole new or deleted text as a diff. */
export function wholeText(text: string, kind: "add" | "remove"): DiffLine[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line, index) => ({
      kind,
      text: line,
      before: kind === "remove" ? index + 1 : null,
      after: kind === "add" ? index + 1 : null,
    }));
}

export function counts(lines: DiffLine[]): { added: number; removed: number } {
  const count = (kind: string): number => lines.filter((line) => line.kind === kind).length;
  return { added: count("add"), removed: count("remove") };
}

/** Runs of removed lines followed by as many added ones are pairs: mark where the two sides of a pair differ. */
function markPairs(lines: DiffLine[]): void {
  for (let start = 0; start < lines.length; start += 1) {
    if (lines[start]?.kind !== "remove") continue;
    let middle = start;
    while (lines[middle]?.kind === "remove") middle += 1;
    let end = middle;
    while (lines[end]?.kind === "add") end += 1;
    if (end - middle === middle - start) {
      for (let offset = 0; offset < middle - start; offset += 1) markPair(lines[start + offset], lines[middle + offset]);
    }
    start = end - 1;
  }
}

function markPair(removed: DiffLine | undefined, added: DiffLine | undefined): void {
  if (removed === undefined || added === undefined) return;
  const [a, b] = [removed.text, added.text];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  if (head + tail < shorter / 3) return; // they have little in common: no mark helps
  removed.mark = [head, a.length - tail];
  added.mark = [head, b.length - tail];
}
