/** What a viewing has told so far. Applying the same events gives the same model, whenever a viewer joined. */

import type {
  GoalRow,
  InteractionRow,
  JsonObject,
  MessageRow,
  Opened,
  Playback,
  ReplayError,
  SessionRow,
  TurnRow,
  Verification,
  ViewingEvent,
} from "./protocol";

/** What has to be drawn again. Keys are those of `messageKey`, `turnKey` and `interactionKey`. */
export interface Changes {
  messages: Set<string>;
  turns: Set<string>;
  interactions: Set<string>;
  sessions: Set<string>;
  opened: boolean;
  playback: boolean;
  checkpoints: boolean;
  verification: boolean;
  queue: boolean;
}

export const messageKey = (session: string, message: string): string => `${session}\n${message}`;
export const turnKey = (session: string, turn: string): string => `${session}\n${turn}`;
export const interactionKey = (row: InteractionRow): string => `${row.sessionId}\n${row.turnId}\n${row.requestId}`;

export function noChanges(): Changes {
  return {
    messages: new Set(),
    turns: new Set(),
    interactions: new Set(),
    sessions: new Set(),
    opened: false,
    playback: false,
    checkpoints: false,
    verification: false,
    queue: false,
  };
}

export class Model {
  opened: Opened | null = null;
  sessions = new Map<string, SessionRow>();
  turns = new Map<string, TurnRow>();
  messages = new Map<string, MessageRow>();
  interactions = new Map<string, InteractionRow>();
  goals = new Map<string, GoalRow>();
  queues = new Map<string, JsonObject[]>();
  reached = new Map<number, number>(); // checkpoint index → time it was reached
  playback: Playback | null = null;
  verification: Verification | null = null;
  failure: ReplayError | null = null;
  private changes = noChanges();

  /** Hand out what changed since the last call. */
  take(): Changes {
    const taken = this.changes;
    this.changes = noChanges();
    return taken;
  }

  apply(event: ViewingEvent): void {
    const changes = this.changes;
    switch (event.type) {
      case "opened":
        this.opened = event;
        changes.opened = true;
        break;
      case "session":
        this.sessions.set(event.row.id, event.row);
        changes.sessions.add(event.row.id);
        break;
      case "turn": {
        const key = turnKey(event.row.sessionId, event.row.id);
        this.turns.set(key, event.row);
        changes.turns.add(key);
        break;
      }
      case "message": {
        const key = messageKey(event.row.sessionId, event.row.id);
        this.messages.set(key, event.row);
        changes.messages.add(key);
        break;
      }
      case "append":
        this.append(event.sessionId, event.messageId, event.text, event.target, event.version);
        break;
      case "interaction": {
        const key = interactionKey(event.row);
        this.interactions.set(key, event.row);
        changes.interactions.add(key);
        break;
      }
      case "goal":
        this.goals.set(event.row.sessionId, event.row);
        changes.queue = true;
        break;
      case "queue":
        this.queues.set(event.sessionId, event.prompts);
        changes.queue = true;
        break;
      case "checkpoint":
        this.reached.set(event.index, event.atMs);
        changes.checkpoints = true;
        break;
      case "playback":
        this.playback = event;
        changes.playback = true;
        break;
      case "verification":
        this.verification = event;
        changes.verification = true;
        break;
      case "failed":
        this.failure = event.error;
        changes.verification = true;
        break;
    }
  }

  private append(session: string, message: string, text: string, target: "text" | "output", version: number): void {
    const key = messageKey(session, message);
    const row = this.messages.get(key);
    if (row === undefined || row.version >= version) return;
    const payload = { ...row.payload };
    if (target === "text") {
      payload["text"] = `${asText(payload["text"])}${text}`;
    } else {
      const output = asObject(payload["output"]);
      payload["output"] = { ...output, stdout: `${asText(output["stdout"])}${text}` };
    }
    this.messages.set(key, { ...row, payload, version });
    this.changes.messages.add(key);
  }
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function asList(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(asObject) : [];
}
