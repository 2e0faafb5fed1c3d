import { describe, expect, it } from "vitest";
import { Model, messageKey } from "../src/model";
import type { MessageRow } from "../src/protocol";

const row = (text: string, version: number): MessageRow => ({
  sessionId: "s",
  id: "m",
  turnId: "t",
  role: "assistant",
  kind: "text",
  status: "streaming",
  payload: { text },
  version,
  createdSeq: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
});

describe("the model", () => {
  it("adds appended text to a message once, whatever is told twice", () => {
    const model = new Model();
    model.apply({ type: "message", row: row("Hel", 1) });
    const append = { type: "append", sessionId: "s", messageId: "m", text: "lo", target: "text", version: 2 } as const;
    model.apply(append);
    model.apply(append);
    expect(model.messages.get(messageKey("s", "m"))?.payload["text"]).toBe("Hello");
  });

  it("keeps output that is appended to a tool call", () => {
    const model = new Model();
    model.apply({ type: "message", row: { ...row("", 1), kind: "tool_call", payload: {} } });
    model.apply({ type: "append", sessionId: "s", messageId: "m", text: "1\n", target: "output", version: 2 });
    model.apply({ type: "append", sessionId: "s", messageId: "m", text: "2\n", target: "output", version: 3 });
    expect(model.messages.get(messageKey("s", "m"))?.payload["output"]).toEqual({ stdout: "1\n2\n" });
  });

  it("tells what changed once", () => {
    const model = new Model();
    model.apply({ type: "message", row: row("Hi", 1) });
    model.apply({ type: "checkpoint", index: 0, kind: "session.ready", atMs: 5 });
    const changes = model.take();
    expect([...changes.messages]).toEqual([messageKey("s", "m")]);
    expect(changes.checkpoints).toBe(true);
    expect(model.take().messages.size).toBe(0);
    expect(model.reached.get(0)).toBe(5);
  });
});
