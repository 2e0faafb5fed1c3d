/** The bar: what was played, where things happened, where nothing did. Drag or arrow keys move in it. */

import { h } from "./dom";
import type { Opened } from "./protocol";
import { checkpointLabel, clock } from "./text";

const STEP_MS = 5000;
const PAGE_MS = 30_000;

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly played = h("div", { class: "played" });
  private readonly knob = h("div", { class: "knob" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private opened: Opened | null = null;
  private reached = new Set<number>();
  private dragging: number | null = null;
  private elapsed = 0;

  constructor(private readonly seek: (atMs: number) => void) {
    this.element = h(
      "div",
      { class: "timeline", role: "slider", tabindex: 0, "aria-label": "Playback position", "aria-valuemin": 0 },
      this.canvas,
      this.played,
      this.knob,
      this.tip,
    );
    this.element.addEventListener("pointerdown", (event) => this.down(event));
    this.element.addEventListener("pointermove", (event) => this.move(event));
    this.element.addEventListener("pointerup", (event) => this.up(event));
    this.element.addEventListener("pointercancel", () => this.release());
    this.element.addEventListener("pointerleave", () => (this.tip.hidden = this.dragging === null));
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.element);
    new MutationObserver(() => this.paint()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  open(opened: Opened): void {
    this.opened = opened;
    this.element.setAttribute("aria-valuemax", String(Math.round(opened.durationMs / 1000)));
    this.paint();
  }

  reach(reached: Iterable<number>): void {
    this.reached = new Set(reached);
    this.paint();
  }

  /** Move the knob; `text` is what a screen reader says. */
  set(elapsedMs: number, text: string): void {
    this.elapsed = elapsedMs;
    if (this.dragging === null) this.place(elapsedMs);
    this.element.setAttribute("aria-valuenow", String(Math.round(elapsedMs / 1000)));
    this.element.setAttribute("aria-valuetext", text);
  }

  private get duration(): number {
    return Math.max(1, this.opened?.durationMs ?? 1);
  }

  private place(ms: number): void {
    const share = `${Math.min(100, (100 * ms) / this.duration)}%`;
    this.played.style.width = share;
    this.knob.style.left = share;
  }

  // ---------------------------------------------------------------- drawing

  private paint(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const pen = this.canvas.getContext("2d");
    if (pen === null || this.opened === null) return;
    pen.scale(scale, scale);
    const style = getComputedStyle(this.element);
    const colour = (name: string): string => style.getPropertyValue(name).trim();
    const x = (ms: number): number => (width * ms) / this.duration;
    const middle = Math.round(height / 2);
    this.paintDensity(pen, width, middle, colour("--density"));
    pen.fillStyle = colour("--bar");
    pen.fillRect(0, middle - 2, width, 4);
    pen.fillStyle = colour("--idle");
    for (const idle of this.opened.outline.idle) {
      for (let at = x(idle.fromMs); at < x(idle.toMs); at += 6) pen.fillRect(at, middle - 2, 3, 4);
    }
    pen.fillStyle = colour("--prompt");
    for (const prompt of this.opened.outline.prompts) pen.fillRect(Math.round(x(prompt.atMs)) - 1, middle - 9, 2, 18);
    const columns = new Map<number, boolean>(); // one tick a pixel: dense ones melt together, none is dropped
    for (const mark of this.opened.checkpoints) {
      const at = Math.round(x(mark.atMs));
      columns.set(at, (columns.get(at) ?? true) && this.reached.has(mark.index));
    }
    for (const [at, done] of columns) {
      pen.fillStyle = colour(done ? "--tick-done" : "--tick");
      pen.fillRect(at - 0.75, middle + 4, 1.5, 5);
    }
  }

  private paintDensity(pen: CanvasRenderingContext2D, width: number, middle: number, colour: string): void {
    const density = this.opened?.outline.density ?? [];
    const most = Math.max(1, ...density);
    pen.fillStyle = colour;
    density.forEach((count, index) => {
      if (count === 0) return;
      const tall = 2 + (middle - 5) * Math.sqrt(count / most);
      pen.fillRect((index * width) / density.length, middle - 2 - tall, Math.max(1, width / density.length - 0.5), tall);
    });
  }

  // ---------------------------------------------------------------- pointer and keys

  private at(event: PointerEvent): number {
    const box = this.element.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * this.duration;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || this.opened === null) return;
    this.element.setPointerCapture(event.pointerId);
    this.dragging = this.at(event);
    this.place(this.dragging);
    this.hint(this.dragging);
  }

  private move(event: PointerEvent): void {
    if (this.opened === null) return;
    const at = this.at(event);
    if (this.dragging !== null) {
      this.dragging = at;
      this.place(at);
    }
    this.hint(at);
  }

  private up(event: PointerEvent): void {
    if (this.dragging === null) return;
    const at = this.at(event);
    this.release();
    this.seek(at);
  }

  private release(): void {
    this.dragging = null;
    this.tip.hidden = true;
    this.place(this.elapsed);
  }

  private hint(ms: number): void {
    if (this.opened === null) return;
    const near = (6 * this.duration) / Math.max(1, this.element.clientWidth);
    const mark = this.opened.checkpoints.find((one) => Math.abs(one.atMs - ms) <= near);
    const prompt = [...this.opened.outline.prompts].reverse().find((one) => one.atMs <= ms + near);
    const lines = [h("strong", {}, clock(ms))];
    if (prompt) lines.push(h("span", {}, prompt.text.slice(0, 80)));
    if (mark) lines.push(h("span", { class: "tip-mark" }, `Checkpoint ${mark.index + 1}: ${checkpointLabel(mark.kind)}`));
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const width = this.element.clientWidth;
    const half = this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.min(width - half, Math.max(half, (width * ms) / this.duration))}px`;
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = { ArrowLeft: -STEP_MS, ArrowDown: -STEP_MS, ArrowRight: STEP_MS, ArrowUp: STEP_MS, PageDown: -PAGE_MS, PageUp: PAGE_MS };
    const move = moves[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.seek(Math.min(this.duration, Math.max(0, this.elapsed + move)));
  }
}
