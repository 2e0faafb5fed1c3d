/** The player's buttons. They only ask; what they show is what the replay tells. */

import { h, icon } from "./dom";
import type { Playback } from "./protocol";
import { clock } from "./text";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 0]; // 0: as fast as the machine can
export const IDLE_LIMIT_MS = 1500;

export interface Wishes {
  togglePlay(): void;
  restart(): void;
  nextCheckpoint(): void;
  speed(value: number): void;
  idle(limitMs: number | null): void;
  mode(value: "automatic" | "manual"): void;
  copyLink(): void;
  help(): void;
}

export class Controls {
  readonly element: HTMLElement;
  private readonly play: HTMLButtonElement;
  private readonly time = h("span", { class: "time", "aria-hidden": "true" });
  private readonly speed: HTMLSelectElement;
  private readonly idle: HTMLInputElement;
  private readonly manual: HTMLInputElement;

  constructor(wishes: Wishes) {
    this.play = button("play", "Play (Space)", () => wishes.togglePlay());
    this.play.classList.add("primary");
    this.speed = h("select", { "aria-label": "Speed (< and >)", title: "Speed (< and >)" });
    for (const value of SPEEDS) this.speed.append(h("option", { value }, speedText(value)));
    this.speed.addEventListener("change", () => wishes.speed(Number(this.speed.value)));
    this.idle = h("input", { type: "checkbox" });
    this.idle.addEventListener("change", () => wishes.idle(this.idle.checked ? IDLE_LIMIT_MS : null));
    this.manual = h("input", { type: "checkbox" });
    this.manual.addEventListener("change", () => wishes.mode(this.manual.checked ? "manual" : "automatic"));
    this.element = h(
      "div",
      { class: "controls" },
      this.play,
      button("restart", "Restart (Home)", () => wishes.restart()),
      button("next", "Next checkpoint (])", () => wishes.nextCheckpoint()),
      this.time,
      h("span", { class: "grow" }),
      this.speed,
      h("label", { class: "toggle", title: "Shorten waits to 1.5 s" }, this.idle, h("span", {}, "Skip idle")),
      h("label", { class: "toggle", title: "Stop at every checkpoint" }, this.manual, h("span", {}, "Step")),
      button("link", "Copy link to this moment (Y)", () => wishes.copyLink()),
      button("help", "Keyboard shortcuts (?)", () => wishes.help()),
    );
  }

  set(playback: Playback, elapsedMs: number): void {
    const ended = playback.phase === "complete" || playback.phase === "failed";
    const running = !playback.paused && !ended;
    const name = running ? "Pause (Space)" : ended ? "Play again (Space)" : "Play (Space)";
    if (this.play.getAttribute("aria-label") !== name) {
      this.play.replaceChildren(icon(running ? "pause" : ended ? "restart" : "play"));
      this.play.setAttribute("aria-label", name);
      this.play.title = name;
    }
    const text = `${clock(elapsedMs)} / ${clock(playback.durationMs)}`;
    if (this.time.textContent !== text) this.time.textContent = text;
    if (document.activeElement !== this.speed) this.speed.value = String(playback.speed);
    this.speed.classList.toggle("unusual", playback.speed !== 1);
    this.idle.checked = playback.idleLimitMs !== null;
    this.manual.checked = playback.mode === "manual";
  }
}

export function speedText(value: number): string {
  return value === 0 ? "Max" : `${value}×`;
}

function button(name: string, label: string, action: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "icon-button", title: label, "aria-label": label }, icon(name));
  element.addEventListener("click", action);
  return element;
}
