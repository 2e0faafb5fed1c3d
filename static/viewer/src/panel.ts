/** The details: verification, checkpoints and lanes, as the replay tells them. */

import { h, icon } from "./dom";
import type { Model } from "./model";
import type { CheckpointMark, Layer, Playback, ReplayError, Verification } from "./protocol";
import { checkpointLabel, clock, plural } from "./text";

const PHASES: Record<string, string> = {
  complete: "Finished", failed: "Stopped", running: "Replaying", playing: "Replaying", starting: "Starting",
};

export class Panel {
  readonly element = h("div", { class: "panel" });
  private readonly verdict = h("section", { class: "verdict", "aria-live": "polite", "data-verdict": "open" });
  private readonly lanes = h("section", { class: "lanes" });
  private readonly list = h("ol", { class: "checkpoints" });
  private readonly sum = h("span", { class: "count" });
  private marks: HTMLElement[] = [];
  private told = ""; // what the verification part shows; it is a live region, so it changes only with its content

  constructor(private readonly jump: (index: number) => void) {
    this.element.append(
      this.verdict,
      h("section", { class: "checkpoint-section" }, h("h2", {}, "Checkpoints ", this.sum), this.list),
      this.lanes,
    );
  }

  /** A new generation: nothing is reached yet. */
  reset(): void {
    this.drawVerification(null, null, null);
  }

  open(checkpoints: CheckpointMark[]): void {
    this.marks = checkpoints.map((mark) => {
      const button = h(
        "button",
        { type: "button", "aria-label": `Checkpoint ${mark.index + 1}: ${checkpointLabel(mark.kind)} at ${clock(mark.atMs)}` },
        h("span", { class: "mark" }),
        h("span", { class: "label" }, checkpointLabel(mark.kind)),
        h("span", { class: "at" }, clock(mark.atMs)),
      );
      button.addEventListener("click", () => this.jump(mark.index));
      return h("li", {}, button);
    });
    this.list.replaceChildren(...this.marks);
  }

  drawCheckpoints(model: Model): void {
    const current = model.playback?.currentCheckpoint ?? -1;
    this.marks.forEach((mark, index) => {
      mark.classList.toggle("reached", model.reached.has(index));
      mark.classList.toggle("current", index === current);
    });
    this.sum.textContent = `${model.reached.size} of ${this.marks.length}`;
    const shown = this.marks[current];
    if (shown !== undefined) keepVisible(this.list, shown);
  }

  drawLanes(playback: Playback): void {
    const rows = playback.connections.map((lane) =>
      laneRow(lane.connectionId, lane.chunkSeq, lane.totalChunks, `frame ${lane.chunkSeq} of ${lane.totalChunks}`),
    );
    const activity = playback.activity;
    this.lanes.replaceChildren(
      h("h2", {}, "Lanes"),
      laneRow("activity", activity.sequence, activity.total, `event ${activity.sequence} of ${activity.total}`),
      ...rows,
      playback.skippedMs >= 1000 ? h("p", { class: "hint" }, `${clock(playback.skippedMs)} of waiting skipped`) : h("span"),
      playback.waitingFor.length > 0 ? h("p", { class: "hint" }, `Waiting for: ${playback.waitingFor.join(", ")}`) : h("span"),
    );
  }

  drawVerification(result: Verification | null, failure: ReplayError | null, playback: Playback | null): void {
    const kind = failure !== null ? "failed" : (result?.verdict ?? "open");
    const paused = playback?.paused === true && playback.phase !== "complete";
    const phase = playback === null ? "Starting" : (PHASES[playback.phase] ?? playback.phase);
    const told = kind === "open" ? (paused ? "Paused" : phase) : kind;
    if (told === this.told) return;
    this.told = told;
    this.verdict.dataset["verdict"] = kind;
    if (result === null && failure === null) {
      this.verdict.replaceChildren(
        h("h2", {}, "Verification"),
        h("p", { class: "verdict-word" }, h("span", { class: "status status-running" }, told)),
        h("p", { class: "hint" }, "Every step is checked against the Cassette; the verdict comes at the end."),
      );
      return;
    }
    this.verdict.replaceChildren(h("h2", {}, "Verification"), ...verdictParts(result, failure));
  }
}

/** The verdict with its layers and, where there is one, the first difference with both sides. */
export function verdictParts(result: Verification | null, failure: ReplayError | null): HTMLElement[] {
  const equal = failure === null && result?.verdict === "equal";
  const parts: HTMLElement[] = [
    h("p", { class: `verdict-word ${equal ? "good" : "bad"}` }, icon(equal ? "check" : "cross"), equal ? "Equal" : "Not equal"),
  ];
  if (failure !== null) parts.push(failurePart(failure));
  if (result !== null) parts.push(h("ul", { class: "layers" }, ...result.layers.map(layerRow)));
  const open = result?.notAsserted ?? [];
  if (open.length > 0) {
    const names = open.map((name) => h("li", {}, h("code", {}, name)));
    parts.push(h("details", { class: "not-asserted" }, h("summary", {}, `${plural(open.length, "value")} taken as recorded`), h("ul", {}, ...names)));
  }
  return parts;
}

function failurePart(failure: ReplayError): HTMLElement {
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("p", {}, failure.message),
    h("p", { class: "hint" }, h("code", {}, failure.code), failure.place ? ` ${failure.place}` : ""),
    failure.expected !== undefined ? h("div", { class: "side" }, h("span", {}, "recorded"), h("pre", {}, failure.expected)) : null,
    failure.found !== undefined ? h("div", { class: "side" }, h("span", {}, "replayed"), h("pre", {}, failure.found)) : null,
    failure.hint ? h("p", { class: "hint" }, failure.hint) : null,
  );
}

function layerRow(layer: Layer): HTMLElement {
  const good = layer.verdict === "verified";
  const bad = layer.verdict === "failed" || layer.verdict === "different";
  return h(
    "li",
    { class: good ? "good" : bad ? "bad" : "" },
    icon(good ? "check" : bad ? "cross" : "other"),
    h("span", {}, layer.name.charAt(0).toUpperCase() + layer.name.slice(1)),
    h("span", { class: "count" }, layer.total === null ? String(layer.count) : `${layer.count} / ${layer.total}`),
  );
}

function laneRow(name: string, done: number, total: number, text: string): HTMLElement {
  const bar = h("progress", { max: Math.max(1, total), value: done, "aria-label": `${name}: ${text}` });
  return h("div", { class: "lane" }, h("span", { class: "lane-name" }, name), h("span", { class: "count" }, `${done} / ${total}`), bar);
}

/** Scroll only the list itself, never the page. */
function keepVisible(list: HTMLElement, element: HTMLElement): void {
  const [top, bottom] = [element.offsetTop - list.offsetTop, element.offsetTop - list.offsetTop + element.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top - 8;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight + 8;
}
