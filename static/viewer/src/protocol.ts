/** The viewing protocol: what the socket carries. Rows have the names and values of the canonical state. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface SessionRow {
  id: string;
  kind: "root" | "child";
  parentSessionId: string;
  parentTurnId: string;
  parentToolCallId: string;
  provider: string;
  model: string;
  title: string;
  activeTurnId: string;
  settings: JsonObject;
  createdAtMs: number;
}

export interface TurnRow {
  sessionId: string;
  id: string;
  seq: number;
  phase: string;
  outcome: string;
  error: JsonObject | null;
  fileChanges: { files?: FileChange[] } | null;
  startedAtMs: number;
  settledAtMs: number;
}

export interface MessageRow {
  sessionId: string;
  id: string;
  turnId: string;
  role: string;
  kind: string;
  status: string;
  payload: JsonObject;
  version: number;
  createdSeq: number;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface InteractionRow {
  sessionId: string;
  turnId: string;
  requestId: string;
  kind: "approval" | "question" | "plan";
  status: string;
  toolName: string;
  input: JsonObject;
  output: JsonObject;
  createdAtMs: number;
}

export interface GoalRow {
  sessionId: string;
  desired: JsonObject;
  observed: JsonObject;
  tombstoned: boolean;
}

export interface FileChange {
  path: string;
  change: string;
  diff?: string;
  unifiedDiff?: string;
  content?: string;
  oldString?: string;
  newString?: string;
}

export interface CheckpointMark {
  index: number;
  id: string;
  kind: string;
  tags: string[];
  atMs: number;
}

export interface Opened {
  type: "opened";
  cassette: {
    id: string;
    name: string;
    provider: string;
    agentTargetId: string;
    mode: string;
    rootSessionId: string;
    createdAtUnixMs: number;
    startedAtUnixMs: number;
  };
  durationMs: number;
  activityTotal: number;
  checkpoints: CheckpointMark[];
  connections: { connectionId: string; provider: string; totalChunks: number; durationMs: number }[];
  outline: {
    prompts: { atMs: number; text: string }[];
    density: number[];
    idle: { fromMs: number; toMs: number }[];
  };
}

export interface Playback {
  type: "playback";
  phase: string;
  paused: boolean;
  speed: number;
  elapsedMs: number;
  durationMs: number;
  timing: "realtime" | "fast-forward";
  mode: string;
  idleLimitMs: number | null;
  skippedMs: number;
  currentCheckpoint: number | null;
  targetCheckpoint: number | null;
  activity: { sequence: number; total: number };
  connections: { connectionId: string; chunkSeq: number; unitIndex: number; totalChunks: number }[];
  waitingFor: string[];
}

export interface Layer {
  name: string;
  count: number;
  total: number | null;
  verdict: string;
}

export interface Verification {
  type: "verification";
  verdict: "equal" | "different" | "failed";
  layers: Layer[];
  notAsserted: string[];
  path?: string;
  code?: string;
  expected?: Json;
  found?: Json;
}

export interface ReplayError {
  code: string;
  message: string;
  place: string;
  expected?: string;
  found?: string;
  hint?: string;
}

/** In a viewing of several Cassettes each event names its Surface; `reset` begins that one anew. */
export type ViewingEvent = Told & { surface?: number };

type Told =
  | { type: "reset" }
  | Opened
  | { type: "session"; row: SessionRow }
  | { type: "turn"; row: TurnRow }
  | { type: "message"; row: MessageRow }
  | { type: "interaction"; row: InteractionRow }
  | { type: "goal"; row: GoalRow }
  | { type: "append"; sessionId: string; messageId: string; text: string; target: "text" | "output"; version: number }
  | { type: "queue"; sessionId: string; prompts: JsonObject[]; suspended: boolean }
  | { type: "checkpoint"; index: number; kind: string; atMs: number }
  | Playback
  | Verification
  | { type: "failed"; error: ReplayError };

export type ViewingState = "starting" | "restarting" | "running" | "died";

export type ServerMessage =
  | { kind: "viewing"; state: ViewingState; generation: number; viewers: number; reason?: string }
  | { kind: "batch"; generation: number; seq: number; from?: number; events: ViewingEvent[] }
  | { kind: "denied"; code: string; message: string }
  | { kind: "refused"; error: ReplayError };

/** In a viewing of several Cassettes a control is for one Surface, or for all. */
export type Control = Wish & { surface?: number };

type Wish =
  | { command: "play" | "pause" | "next-checkpoint" | "restart" }
  | { command: "speed"; value: number }
  | { command: "idle-limit"; ms: number | null }
  | { command: "mode"; value: "automatic" | "manual" }
  | { command: "step"; to: "next" | "previous" }
  | { command: "seek"; atMs: number }
  | { command: "seek"; checkpoint: number };
