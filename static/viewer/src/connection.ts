/** The socket of one viewing: opens it, stays with it, and hands on what it tells in order. */

import type { Control, ReplayError, ServerMessage, ViewingEvent, ViewingState } from "./protocol";

export type Start = Record<string, string | number | boolean>;

export interface Listener {
  /** A new generation begins: forget everything that was told before. */
  reset(): void;
  events(events: ViewingEvent[]): void;
  state(state: ViewingState, viewers: number, reason: string): void;
  /** `lost`: trying again. */
  linkState(state: "connecting" | "open" | "lost"): void;
  /** The right to watch is gone, for good. */
  denied(code: string, message: string): void;
  refused(error: ReplayError): void;
}

const FIRST_RETRY_MS = 400;
const LAST_RETRY_MS = 5000;
const DENIED = 4403;

export class Connection {
  private socket: WebSocket | null = null;
  private address = "";
  private generation = 0;
  private last = 0;
  private retryMs = FIRST_RETRY_MS;
  private ended = false;
  private waiting: Control[] = [];

  constructor(
    private readonly openUrl: string,
    private readonly csrfToken: string,
    private readonly start: Start,
    private readonly listener: Listener,
  ) {}

  /** Ask for a viewing, then connect. */
  async open(): Promise<void> {
    this.listener.linkState("connecting");
    try {
      const answer = await fetch(this.openUrl, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": this.csrfToken },
        body: JSON.stringify({ start: this.start }),
      });
      const body = (await answer.json()) as { socket?: string; code?: string; message?: string };
      if (!answer.ok || body.socket === undefined) {
        this.ended = true;
        this.listener.denied(body.code ?? `http_${answer.status}`, body.message ?? "This viewing could not be opened.");
        return;
      }
      this.address = body.socket;
    } catch {
      this.listener.linkState("lost");
      this.later(() => void this.open());
      return;
    }
    this.connect();
  }

  send(control: Control): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ kind: "control", ...control }));
    else if (!this.ended) this.waiting = [...this.waiting.slice(-8), control];
  }

  private connect(): void {
    if (this.ended) return;
    const url = new URL(this.address, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.retryMs = FIRST_RETRY_MS;
      socket.send(JSON.stringify({ kind: "hello", generation: this.generation, after: this.last }));
      this.listener.linkState("open");
      const waiting = this.waiting;
      this.waiting = [];
      for (const control of waiting) this.send(control);
    });
    socket.addEventListener("message", (message) => this.receive(JSON.parse(String(message.data)) as ServerMessage));
    socket.addEventListener("close", (closed) => {
      if (this.ended || this.socket !== socket) return;
      if (closed.code === DENIED) {
        this.ended = true;
        return;
      }
      this.listener.linkState("lost");
      this.later(() => this.connect());
    });
  }

  private later(action: () => void): void {
    setTimeout(action, this.retryMs);
    this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
  }

  private receive(message: ServerMessage): void {
    switch (message.kind) {
      case "batch":
        if (message.generation < this.generation) return;
        if (message.generation > this.generation) {
          this.generation = message.generation;
          this.last = 0;
          this.listener.reset();
        }
        this.last = Math.max(this.last, message.seq);
        this.listener.events(message.events);
        break;
      case "viewing":
        this.listener.state(message.state, message.viewers, message.reason ?? "");
        break;
      case "denied":
        this.ended = true;
        this.listener.denied(message.code, message.message);
        break;
      case "refused":
        this.listener.refused(message.error);
        break;
    }
  }
}
