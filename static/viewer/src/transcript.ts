/** The transcript: grows as the session did. Draws at most once a frame, and never moves the reader's scroll. */

import { h, icon } from "./dom";
import { interactionElement, messageElement, textOf } from "./messages";
import { asObject, asText, messageKey, turnKey, type Changes, type Model } from "./model";
import type { InteractionRow, MessageRow, TurnRow } from "./protocol";
import { clock, plural, shownPath, span } from "./text";

const FRAME_BUDGET_MS = 10;
const NEAR_END_PX = 90;

interface TurnView {
  element: HTMLElement;
  head: HTMLElement;
  body: HTMLElement;
  foot: HTMLElement;
}

export class Transcript {
  following = true;
  private content: HTMLElement;
  private stale: HTMLElement | null = null;
  private turns = new Map<string, TurnView>();
  private items = new Map<string, HTMLElement>();
  private children = new Map<string, HTMLElement>(); // place of a child session's Turns, by session id
  private due = new Set<string>();
  private lastTop = 0;
  private readonly chip: HTMLButtonElement;
  private readonly growth = new ResizeObserver(() => this.following && this.toEnd());

  constructor(
    private readonly scroller: HTMLElement,
    private model: Model,
    private readonly jump: (atMs: number) => void,
  ) {
    this.content = h("div", { class: "transcript" });
    this.chip = h("button", { type: "button", class: "follow", hidden: true }, icon("down"), "Back to playback");
    this.chip.addEventListener("click", () => this.follow());
    scroller.append(this.content, this.chip);
    this.growth.observe(this.content);
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
  }

  /** Another generation: what is shown stays, dimmed, until the new one has something to show. */
  reset(model: Model): void {
    this.model = model;
    this.stale?.remove();
    this.stale = this.content;
    this.stale.classList.add("stale");
    this.content = h("div", { class: "transcript", hidden: true });
    this.stale.after(this.content);
    this.growth.disconnect();
    this.growth.observe(this.content);
    this.turns.clear();
    this.items.clear();
    this.children.clear();
    this.due.clear();
  }

  /** Show the new generation in place of the old one. */
  reveal(): void {
    if (this.stale === null) return;
    this.stale.remove();
    this.stale = null;
    this.content.hidden = false;
    if (this.following) this.toEnd();
  }

  note(changes: Changes): void {
    for (const key of changes.turns) this.due.add(`turn\n${key}`);
    for (const key of changes.messages) this.due.add(`message\n${key}`);
    for (const key of changes.interactions) this.due.add(`interaction\n${key}`);
  }

  /** Draw what is due, as much as fits into a frame. True when everything is drawn. */
  draw(): boolean {
    const until = performance.now() + FRAME_BUDGET_MS;
    const before = this.due.size;
    for (const due of this.due) {
      this.due.delete(due);
      const [kind, ...parts] = due.split("\n");
      const key = parts.join("\n");
      if (kind === "turn") this.drawTurn(key);
      else if (kind === "message") this.drawMessage(key);
      else this.drawInteraction(key);
      if (performance.now() > until) break;
    }
    if (before > 0 && this.following) this.toEnd();
    return this.due.size === 0;
  }

  follow(): void {
    this.following = true;
    this.chip.hidden = true;
    this.toEnd();
  }

  /** Unfold or fold every tool call and thought. */
  fold(open: boolean): void {
    for (const details of this.content.querySelectorAll<HTMLDetailsElement>("details.tool, details.reasoning")) details.open = open;
  }

  /** Scroll to the next (or previous) element that matches, seen from the middle of what is visible. */
  step(selector: string, forward: boolean): boolean {
    const middle = this.scroller.getBoundingClientRect().top + this.scroller.clientHeight / 3;
    const found = [...this.content.querySelectorAll<HTMLElement>(selector)].map((element) => ({ element, top: element.getBoundingClientRect().top }));
    const next = forward ? found.find((one) => one.top > middle + 4) : found.reverse().find((one) => one.top < middle - 4);
    if (next === undefined) return false;
    this.show(next.element);
    return true;
  }

  /** Show the last element that matches, unfolded. */
  showLast(selector: string): void {
    const found = [...this.content.querySelectorAll<HTMLElement>(selector)].at(-1);
    if (found !== undefined) this.show(found);
  }

  showTurn(seq: number): void {
    const view = this.content.querySelector<HTMLElement>(`[data-turn="${seq}"]`);
    if (view !== null) this.show(view);
  }

  clear(): void {
    this.content.replaceChildren();
    this.stale?.remove();
    this.chip.hidden = true;
  }

  /** Unfold what hides an element, and scroll to it. */
  show(element: HTMLElement): void {
    for (let fold = element.closest("details"); fold !== null; fold = fold.parentElement?.closest("details") ?? null) fold.open = true;
    this.following = false;
    this.chip.hidden = false;
    const offset = element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    this.scroller.scrollTo({ top: this.scroller.scrollTop + offset - this.scroller.clientHeight / 3 });
    element.classList.remove("flash");
    void element.offsetWidth; // restart the animation
    element.classList.add("flash");
  }

  /** Only a move upwards ends following: what grows below, or turns out taller than expected, is no wish. */
  private scrolled(): void {
    const top = this.scroller.scrollTop;
    const left = this.scroller.scrollHeight - top - this.scroller.clientHeight;
    if (left < NEAR_END_PX) this.following = true;
    else if (top < this.lastTop - 3) this.following = false;
    this.lastTop = top;
    this.chip.hidden = this.following;
  }

  private toEnd(): void {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
  }

  // ---------------------------------------------------------------- Turns

  private turnView(session: string, turn: string): TurnView {
    const key = turnKey(session, turn);
    const known = this.turns.get(key);
    if (known !== undefined) return known;
    const head = h("header", { class: "turn-head" });
    const body = h("div", { class: "turn-body" });
    const foot = h("div", { class: "turn-foot" });
    const element = h("section", { class: "turn" }, head, body, foot);
    const view = { element, head, body, foot };
    this.turns.set(key, view);
    const row = this.model.turns.get(key);
    insertInOrder(this.placeOf(session), element, row?.seq ?? Number.MAX_SAFE_INTEGER);
    if (row !== undefined) this.fillTurn(view, row);
    return view;
  }

  /** Where the Turns of a session stand: a child session stands in the tool call that started it. */
  private placeOf(session: string): HTMLElement {
    const row = this.model.sessions.get(session);
    if (row === undefined || row.kind !== "child") return this.content;
    let place = this.children.get(session);
    if (place === undefined) {
      const title = row.title || "Subagent";
      place = h("div", { class: "child-session" }, h("div", { class: "child-title" }, icon("agent"), title));
      this.children.set(session, place);
      const call = this.callOf(row.parentSessionId, row.parentTurnId, row.parentToolCallId);
      if (call === null) this.turnView(row.parentSessionId, row.parentTurnId).body.append(place);
      else (call.querySelector(".tool-body") ?? call).append(place);
    }
    return place;
  }

  private callOf(session: string, turn: string, call: string): HTMLElement | null {
    for (const row of this.model.messages.values()) {
      if (row.sessionId === session && row.turnId === turn && row.kind === "tool_call" && asText(row.payload["callId"]) === call) {
        const key = messageKey(session, row.id);
        if (!this.items.has(key)) this.drawMessage(key);
        return this.items.get(key) ?? null;
      }
    }
    return null;
  }

  private childOf(row: MessageRow): HTMLElement | null {
    for (const session of this.model.sessions.values()) {
      if (session.parentSessionId === row.sessionId && session.parentToolCallId === asText(row.payload["callId"])) {
        return this.children.get(session.id) ?? null;
      }
    }
    return null;
  }

  private drawTurn(key: string): void {
    const row = this.model.turns.get(key);
    if (row === undefined) return;
    const view = this.turnView(row.sessionId, row.id);
    view.element.dataset["order"] = String(row.seq);
    this.fillTurn(view, row);
  }

  private fillTurn(view: TurnView, row: TurnRow): void {
    const isRoot = this.model.sessions.get(row.sessionId)?.kind !== "child";
    if (isRoot) view.element.dataset["turn"] = String(row.seq);
    view.element.dataset["outcome"] = row.outcome || row.phase;
    const started = row.startedAtMs - (this.model.opened?.cassette.startedAtUnixMs ?? row.startedAtMs);
    const time = h("button", { type: "button", class: "turn-time", title: "Go to this moment" }, clock(started));
    time.addEventListener("click", () => this.jump(Math.max(0, started)));
    view.head.replaceChildren(h("h2", {}, `Turn ${row.seq}`), time, turnStatus(row));
    view.head.hidden = !isRoot && row.seq === 1;
    view.foot.replaceChildren();
    if (row.error !== null) {
      const message = asText(asObject(row.error)["message"]) || "The Turn failed.";
      view.foot.append(h("p", { class: "turn-error" }, icon("warn"), message));
    }
    const files = row.fileChanges?.files ?? [];
    if (files.length > 0 && row.phase === "settled") {
      const names = files.map((file) => h("li", {}, shownPath(file.path)));
      view.foot.append(h("details", { class: "turn-files" }, h("summary", {}, `${plural(files.length, "file")} changed`), h("ul", {}, ...names)));
    }
  }

  // ---------------------------------------------------------------- what stands in a Turn

  private drawMessage(key: string): void {
    const row = this.model.messages.get(key);
    if (row === undefined) return;
    if (row.kind !== "tool_call" && !textOf(row.payload) && asText(row.payload["kind"]) === "" && !Array.isArray(row.payload["content"])) return;
    const known = this.items.get(key);
    const open = known instanceof HTMLDetailsElement ? known.open : null;
    const element = messageElement(row, open, this.childOf(row));
    this.place(key, row, element, row.createdSeq);
  }

  private drawInteraction(key: string): void {
    const row = this.model.interactions.get(key);
    if (row !== undefined) this.place(`interaction\n${key}`, row, interactionElement(row), 0);
  }

  private place(key: string, row: MessageRow | InteractionRow, element: HTMLElement, sequence: number): void {
    element.classList.add("item");
    const known = this.items.get(key);
    this.items.set(key, element);
    const order = row.createdAtMs * 4096 + (sequence % 4096);
    element.dataset["order"] = String(order);
    if (known !== undefined) known.replaceWith(element);
    else insertInOrder(this.turnView(row.sessionId, row.turnId).body, element, order);
  }
}

function turnStatus(row: TurnRow): HTMLElement {
  if (row.phase !== "settled") {
    const words: Record<string, string> = { waiting: "waiting for an answer", submitted: "starting" };
    return h("span", { class: "status status-running" }, h("span", { class: "spinner" }), words[row.phase] ?? "working");
  }
  const words: Record<string, [string, string]> = {
    completed: ["ok", "completed"],
    canceled: ["stopped", "interrupted"],
    interrupted: ["stopped", "interrupted"],
    failed: ["failed", "failed"],
  };
  const [kind, word] = words[row.outcome] ?? ["ok", row.outcome];
  const took = row.settledAtMs > row.startedAtMs ? ` in ${span(row.settledAtMs - row.startedAtMs)}` : "";
  return h("span", { class: `status status-${kind}` }, `${word}${took}`);
}

/** Append, or put before what comes later; new things nearly always come last. */
function insertInOrder(parent: HTMLElement, element: HTMLElement, order: number): void {
  element.dataset["order"] = String(order);
  let next: Element | null = null;
  let last = parent.lastElementChild;
  while (last instanceof HTMLElement && Number(last.dataset["order"] ?? -1) > order) {
    next = last;
    last = last.previousElementSibling;
  }
  parent.insertBefore(element, next);
}
