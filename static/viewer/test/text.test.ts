import { describe, expect, it } from "vitest";
import { ansi } from "../src/ansi";
import { counts, parseDiff, wholeText } from "../src/diff";
import { checkpointLabel, clock, parseTime, shownPath, span, taskText, withoutTokens } from "../src/text";

describe("paths and times", () => {
  it("shows paths as the person knew them", () => {
    expect(shownPath("${REPLAY_CWD}/src/a.py")).toBe("src/a.py");
    expect(shownPath("${REPLAY_OUTSIDE}/etc/hosts")).toBe("/etc/hosts");
    expect(withoutTokens("cat ${REPLAY_CWD}/a ${REPLAY_CWD}")).toBe("cat a .");
  });

  it("says of a background task what matters to people", () => {
    const told = "<task-notification> <task-id>a</task-id> <summary>Check finished</summary> <result>All is well.</result></task-notification>";
    expect(taskText(told)).toBe("Check finished: All is well.");
    expect(taskText("plain")).toBe("plain");
  });

  it("writes and reads times", () => {
    expect(clock(64_000)).toBe("1:04");
    expect(clock(3_723_000)).toBe("1:02:03");
    expect(span(340)).toBe("340 ms");
    expect(span(185_000)).toBe("3 min 05 s");
    expect(parseTime("1:04")).toBe(64_000);
    expect(parseTime("90")).toBe(90_000);
    expect(parseTime("soon")).toBeNull();
  });

  it("names checkpoints", () => {
    expect(checkpointLabel("tool.started")).toBe("Tool started");
  });
});

describe("diffs", () => {
  const lines = parseDiff("--- a/x\n+++ b/x\n@@ -4,3 +4,3 @@ def add\n def add(a, b):\n-    return a - b\n+    return a + b\n");

  it("numbers the lines of both sides", () => {
    expect(lines.map((line) => [line.kind, line.before, line.after])).toEqual([
      ["hunk", null, null],
      ["same", 4, 4],
      ["remove", 5, null],
      ["add", null, 5],
    ]);
    expect(counts(lines)).toEqual({ added: 1, removed: 1 });
  });

  it("marks what changed inside of a line", () => {
    const [start, end] = lines[3]?.mark ?? [0, 0];
    expect(lines[3]?.text.slice(start, end)).toBe("+");
  });

  it("keeps removed lines that look like a header", () => {
    expect(parseDiff("@@ -1,1 +1,1 @@\n--- old\n+++ new")[1]).toMatchObject({ kind: "remove", text: "-- old" });
  });

  it("shows a whole new file as added", () => {
    expect(wholeText("a\nb\n", "add").map((line) => line.after)).toEqual([1, 2]);
  });
});

describe("terminal output", () => {
  it("turns colours into classes and drops other sequences", () => {
    expect(ansi("\u001b[1;31mred\u001b[0m plain\u001b[2K")).toEqual([
      { text: "red", classes: "a-bold a-1" },
      { text: " plain", classes: "" },
    ]);
  });

  it("shows the last state of a line that was written over", () => {
    expect(ansi("10%\r50%\r100%\ndone\r\n")[0]?.text).toBe("100%\ndone\n");
  });
});
