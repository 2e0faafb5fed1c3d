/** The outline: every prompt of the session, those to come included. */

import { h } from "./dom";
import type { Opened } from "./protocol";
import { clock } from "./text";

export class Outline {
  readonly element = h("nav", { class: "outline-list", "aria-label": "Turns" });
  private entries: { atMs: number; button: HTMLButtonElement }[] = [];

  constructor(private readonly jump: (atMs: number, turn: number) => void) {}

  open(opened: Opened): void {
    this.entries = opened.outline.prompts.map((prompt, index) => {
      const button = h(
        "button",
        { type: "button" },
        h("span", { class: "number" }, String(index + 1)),
        h("span", { class: "words" }, prompt.text || "(no text)"),
        h("span", { class: "at" }, clock(prompt.atMs)),
      );
      button.addEventListener("click", () => this.jump(prompt.atMs, index + 1));
      return { atMs: prompt.atMs, button };
    });
    this.element.replaceChildren(h("h2", {}, "Prompts"), h("ol", {}, ...this.entries.map((one) => h("li", {}, one.button))));
  }

  set(elapsedMs: number): void {
    let current = -1;
    this.entries.forEach((entry, index) => {
      if (entry.atMs <= elapsedMs) current = index;
    });
    this.entries.forEach((entry, index) => {
      entry.button.classList.toggle("past", index < current);
      if (index === current) entry.button.setAttribute("aria-current", "true");
      else entry.button.removeAttribute("aria-current");
    });
  }
}
