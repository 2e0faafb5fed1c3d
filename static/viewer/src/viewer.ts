/** The viewer of one Cassette: wires what is told, the model and what shows it. */

import type { Listener } from "./connection";
import { Controls, SPEEDS } from "./controls";
import { copy, h, icon } from "./dom";
import { Find } from "./find";
import { helpDialog, listen } from "./keys";
import { Model } from "./model";
import { Outline } from "./outline";
import { Panel, verdictParts } from "./panel";
import type { Control, ReplayError, ViewingEvent, ViewingState } from "./protocol";
import { remember } from "./start";
import { clock } from "./text";
import { Timeline } from "./timeline";
import { Transcript } from "./transcript";

const REVEAL_MS = 1500; // a fast-forward that takes longer shows its progress

/** Where controls go, and what this viewer may do with the page around it. */
export interface Frame {
  send(control: Control): void;
  /** Whether keys are for this viewer now. */
  hasKeys(): boolean;
  /** Whether the address of the page is that of this viewer's moment. */
  ownsAddress: boolean;
}

export class Viewer implements Listener {
  private model = new Model();
  private readonly transcript: Transcript;
  private readonly timeline = new Timeline((atMs) => this.seek(atMs));
  private readonly outline = new Outline((atMs, turn) => this.toTurn(atMs, turn));
  private readonly panel = new Panel((index) => this.send({ command: "seek", checkpoint: index }));
  private readonly controls: Controls;
  private readonly find: Find;
  private readonly banner: HTMLElement;
  private readonly help = helpDialog();
  private readonly endCard = h("div", { class: "end-card", hidden: true });
  private readonly viewers = h("span", { class: "viewers" });
  private playbackAt = 0;
  private revealAt = 0;
  private drawing = 0;
  private unfolded = true;

  constructor(
    private readonly root: HTMLElement,
    private readonly frame: Frame,
  ) {
    const stream = part(root, ".stream");
    this.banner = part(root, ".banner");
    this.transcript = new Transcript(stream, this.model, (atMs) => this.seek(atMs));
    this.controls = new Controls({
      togglePlay: () => this.toggle(),
      restart: () => this.send({ command: "restart" }),
      nextCheckpoint: () => this.send({ command: "next-checkpoint" }),
      speed: (value) => this.setSpeed(value),
      idle: (ms) => this.setIdle(ms),
      mode: (value) => this.send({ command: "mode", value }),
      copyLink: () => void this.copyLink(),
      help: () => this.help.showModal(),
    });
    this.find = new Find(stream, (element) => this.transcript.show(element));
    part(root, ".outline").append(this.outline.element);
    part(root, ".details").append(this.panel.element, this.viewers);
    stream.append(this.endCard);
    part(root, ".player").append(this.timeline.element, this.controls.element);
    root.append(this.find.element, this.help);
    this.panel.reset();
    this.drawers();
    listen(this.actions(), () => frame.hasKeys());
    document.addEventListener("visibilitychange", () => this.schedule());
  }

  // ---------------------------------------------------------------- what the connection tells

  reset(): void {
    this.model = new Model();
    this.transcript.reset(this.model);
    this.panel.reset();
    this.endCard.hidden = true;
    this.revealAt = performance.now() + REVEAL_MS;
    this.root.dataset["phase"] = "starting";
    this.schedule();
  }

  events(events: ViewingEvent[]): void {
    for (const event of events) this.model.apply(event);
    this.schedule();
  }

  state(state: ViewingState, viewers: number, reason: string): void {
    this.root.dataset["state"] = state;
    this.viewers.textContent = viewers > 1 ? `${viewers} people are watching` : "";
    if (state === "died") {
      const again = h("button", { type: "button", class: "button" }, "Start again");
      again.addEventListener("click", () => this.send({ command: "restart" }));
      this.say("bad", `The replay ended: ${reason || "its worker is gone."}`, again);
    } else {
      this.say("", "");
    }
  }

  linkState(state: "connecting" | "open" | "lost"): void {
    this.root.dataset["link"] = state;
    if (state === "lost") this.say("warn", "The connection to the server is lost. Trying again…");
    else if (state === "open") this.say("", "");
  }

  denied(code: string, message: string): void {
    this.root.dataset["link"] = "denied";
    this.root.dataset["code"] = code;
    this.transcript.clear();
    this.endCard.hidden = true;
    this.root.classList.add("closed");
    this.say("bad", message);
  }

  refused(error: ReplayError): void {
    this.say("warn", error.message);
    setTimeout(() => this.banner.textContent === error.message && this.say("", ""), 4000);
  }

  private say(kind: "" | "warn" | "bad", text: string, action?: HTMLElement): void {
    this.banner.hidden = text === "";
    this.banner.className = `banner ${kind}`;
    this.banner.replaceChildren(...(text ? [text] : []), ...(action ? [action] : []));
  }

  // ---------------------------------------------------------------- drawing

  private schedule(): void {
    if (this.drawing === 0) this.drawing = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.drawing = 0;
    const changes = this.model.take();
    const { opened, playback } = this.model;
    if (changes.opened && opened !== null) {
      this.timeline.open(opened);
      this.outline.open(opened);
      this.panel.open(opened.checkpoints);
    }
    if (changes.playback) {
      this.playbackAt = performance.now();
      this.root.dataset["phase"] = playback?.phase ?? "";
    }
    this.transcript.note(changes);
    const done = this.transcript.draw();
    const arrived = playback !== null && playback.timing === "realtime" && done;
    if (arrived || performance.now() > this.revealAt) this.transcript.reveal();
    if (changes.checkpoints || changes.opened) this.timeline.reach(this.model.reached.keys());
    if (changes.checkpoints || changes.playback || changes.opened) this.panel.drawCheckpoints(this.model);
    if (changes.playback && playback !== null) this.panel.drawLanes(playback);
    if (changes.playback || changes.verification) this.panel.drawVerification(this.model.verification, this.model.failure, playback);
    if (changes.verification) this.drawEnd();
    this.drawTime();
    if (!done || this.isMoving()) this.schedule();
  }

  private isMoving(): boolean {
    const playback = this.model.playback;
    return playback !== null && !playback.paused && playback.phase !== "complete" && playback.phase !== "failed" && !document.hidden;
  }

  /** The playback time now: told four times a second, and carried on between. */
  private get elapsed(): number {
    const playback = this.model.playback;
    if (playback === null) return 0;
    if (!this.isMoving() || playback.speed === 0 || playback.timing !== "realtime") return playback.elapsedMs;
    const since = Math.min(400, performance.now() - this.playbackAt);
    return Math.min(playback.durationMs, playback.elapsedMs + since * playback.speed);
  }

  private drawTime(): void {
    const playback = this.model.playback;
    if (playback === null) return;
    const elapsed = this.elapsed;
    const reached = this.model.reached.size;
    const total = this.model.opened?.checkpoints.length ?? 0;
    this.timeline.set(elapsed, `${clock(elapsed)} of ${clock(playback.durationMs)}, checkpoint ${reached} of ${total}`);
    this.controls.set(playback, elapsed);
    this.outline.set(elapsed);
    if (playback.paused) this.followAddress(elapsed);
  }

  private drawEnd(): void {
    const again = h("button", { type: "button", class: "button" }, icon("restart"), "Play again");
    again.addEventListener("click", () => this.send({ command: "restart" }));
    const share = h("button", { type: "button", class: "button quiet" }, icon("link"), "Copy link");
    share.addEventListener("click", () => void this.copyLink());
    this.endCard.replaceChildren(...verdictParts(this.model.verification, this.model.failure), h("div", { class: "buttons" }, again, share));
    this.endCard.dataset["verdict"] = this.model.failure !== null ? "failed" : (this.model.verification?.verdict ?? "open");
    this.endCard.hidden = false;
    if (this.transcript.following) this.transcript.follow();
  }

  // ---------------------------------------------------------------- what the person wants

  private send(control: Control): void {
    this.frame.send(control);
  }

  private toggle(): void {
    const playback = this.model.playback;
    if (playback === null || playback.phase === "complete" || playback.phase === "failed") this.send({ command: "restart" });
    else this.send({ command: playback.paused ? "play" : "pause" });
  }

  private seek(atMs: number): void {
    const end = this.model.opened?.durationMs ?? 0;
    this.send({ command: "seek", atMs: Math.min(end, Math.max(0, atMs)) });
  }

  private by(ms: number): void {
    this.seek(this.elapsed + ms);
  }

  private toTurn(atMs: number, turn: number): void {
    if (atMs <= this.elapsed) this.transcript.showTurn(turn);
    else this.seek(atMs);
  }

  private turn(direction: 1 | -1): void {
    const prompts = this.model.opened?.outline.prompts ?? [];
    const now = this.elapsed;
    const target = direction > 0 ? prompts.find((one) => one.atMs > now + 1) : [...prompts].reverse().find((one) => one.atMs < now - 1000);
    this.seek(target?.atMs ?? (direction > 0 ? Number.MAX_SAFE_INTEGER : 0));
  }

  private previousCheckpoint(): void {
    const current = this.model.playback?.currentCheckpoint ?? 0;
    if (current > 0) this.send({ command: "seek", checkpoint: current - 1 });
  }

  private setSpeed(value: number): void {
    remember({ speed: value });
    this.send({ command: "speed", value });
  }

  private setIdle(ms: number | null): void {
    remember({ skipIdle: ms !== null });
    this.send({ command: "idle-limit", ms });
  }

  private faster(step: 1 | -1): void {
    const index = SPEEDS.indexOf(this.model.playback?.speed ?? 1);
    const next = SPEEDS[index + step];
    if (next !== undefined) this.setSpeed(next);
  }

  private async copyLink(): Promise<void> {
    const url = new URL(this.root.dataset["pageUrl"] ?? location.href, location.href);
    url.search = `?t=${(this.elapsed / 1000).toFixed(1)}`;
    url.hash = "";
    const done = await copy(url.href);
    this.say(done ? "" : "warn", done ? "" : url.href);
    if (done) this.toast("Link copied");
  }

  private toast(text: string): void {
    const toast = h("div", { class: "toast", role: "status" }, text);
    this.root.append(toast);
    setTimeout(() => toast.remove(), 1800);
  }

  private followAddress(elapsed: number): void {
    if (!this.frame.ownsAddress) return;
    const search = `?t=${(elapsed / 1000).toFixed(1)}`;
    if (location.search !== search && elapsed > 0) history.replaceState(null, "", `${location.pathname}${search}${location.hash}`);
  }

  private actions(): Record<string, () => void> {
    const actions: Record<string, () => void> = {
      toggle: () => this.toggle(),
      back5: () => this.by(-5000),
      forward5: () => this.by(5000),
      back10: () => this.by(-10_000),
      forward10: () => this.by(10_000),
      previousCheckpoint: () => this.previousCheckpoint(),
      nextCheckpoint: () => this.send({ command: "next-checkpoint" }),
      previousEvent: () => this.send({ command: "step", to: "previous" }),
      nextEvent: () => this.send({ command: "step", to: "next" }),
      previousTurn: () => this.turn(-1),
      nextTurn: () => this.turn(1),
      restart: () => this.send({ command: "restart" }),
      end: () => this.seek(Number.MAX_SAFE_INTEGER),
      slower: () => this.faster(-1),
      faster: () => this.faster(1),
      nextTool: () => void this.transcript.step(".tool", true),
      previousTool: () => void this.transcript.step(".tool", false),
      nextApproval: () => void this.transcript.step(".interaction, .question, .plan", true),
      previousApproval: () => void this.transcript.step(".interaction, .question, .plan", false),
      nextError: () => void this.transcript.step(".tool-failed, .turn-error, .notice-bad", true),
      previousError: () => void this.transcript.step(".tool-failed, .turn-error, .notice-bad", false),
      diff: () => this.transcript.showLast(".diff"),
      find: () => this.find.open(),
      theatre: () => void this.root.classList.toggle("theatre"),
      fold: () => this.transcript.fold((this.unfolded = !this.unfolded)),
      copyLink: () => void this.copyLink(),
      fullScreen: () => void (document.fullscreenElement ? document.exitFullscreen() : this.root.requestFullscreen()),
      help: () => this.help.showModal(),
    };
    for (let tenth = 0; tenth < 10; tenth += 1) {
      actions[`percent${tenth}`] = () => this.seek(((this.model.opened?.durationMs ?? 0) * tenth) / 10);
    }
    return actions;
  }

  /** On a narrow screen outline and details are drawers. */
  private drawers(): void {
    for (const button of this.root.querySelectorAll<HTMLButtonElement>("[data-drawer]")) {
      button.append(icon(button.dataset["drawer"] === "outline" ? "list" : "panel"));
      button.addEventListener("click", () => {
        const name = button.dataset["drawer"] ?? "";
        this.root.dataset["open"] = this.root.dataset["open"] === name ? "" : name;
        for (const other of this.root.querySelectorAll<HTMLButtonElement>("[data-drawer]")) {
          other.setAttribute("aria-expanded", String(other.dataset["drawer"] === this.root.dataset["open"]));
        }
      });
    }
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.root.dataset["open"] = "";
    });
  }
}

function part(root: HTMLElement, selector: string): HTMLElement {
  const found = root.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}
