/** Several Cassettes side by side: one connection, a viewer for each, controls for one or for all. */

import type { Connection, Listener } from "./connection";
import type { Control, ReplayError, ViewingEvent, ViewingState } from "./protocol";
import { Viewer } from "./viewer";

/** What linked viewers do together. A checkpoint has another number in another session, so going to one is not among them. */
const TOGETHER = new Set(["play", "pause", "restart", "speed", "idle-limit", "mode", "next-checkpoint"]);

export class WorkspaceView implements Listener {
  private readonly panes: Viewer[];
  private readonly link: HTMLInputElement | null;
  private connection: Connection | null = null;
  private active = 0;

  constructor(root: HTMLElement) {
    this.link = document.querySelector<HTMLInputElement>("[data-link-panes]");
    this.panes = [...root.querySelectorAll<HTMLElement>(".viewer")].map((element, number) => {
      for (const kind of ["pointerdown", "focusin"]) element.addEventListener(kind, () => (this.active = number));
      return new Viewer(element, {
        send: (control) => this.send(number, control),
        hasKeys: () => this.active === number,
        ownsAddress: false,
      });
    });
  }

  open(connection: Connection): void {
    this.connection = connection;
    void connection.open();
  }

  reset(): void {
    for (const pane of this.panes) pane.reset();
  }

  events(events: ViewingEvent[]): void {
    const told = new Map<number, ViewingEvent[]>();
    for (const event of events) {
      const number = event.surface ?? 0;
      if (event.type === "reset") {
        this.panes[number]?.reset();
        told.set(number, []);
      } else {
        const list = told.get(number) ?? [];
        list.push(event);
        told.set(number, list);
      }
    }
    for (const [number, list] of told) this.panes[number]?.events(list);
  }

  state(state: ViewingState, viewers: number, reason: string): void {
    for (const pane of this.panes) pane.state(state, viewers, reason);
  }

  linkState(state: "connecting" | "open" | "lost"): void {
    for (const pane of this.panes) pane.linkState(state);
  }

  denied(code: string, message: string): void {
    for (const pane of this.panes) pane.denied(code, message);
  }

  refused(error: ReplayError): void {
    this.panes[this.active]?.refused(error);
  }

  private send(number: number, control: Control): void {
    const shared = TOGETHER.has(control.command) || (control.command === "seek" && "atMs" in control);
    const together = shared && this.link?.checked !== false;
    this.connection?.send(together ? control : { ...control, surface: number });
  }
}
