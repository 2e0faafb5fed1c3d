/** Find in the transcript: marks every hit, steps through them, and never changes what it searches. */

import { h, icon } from "./dom";
import { plural } from "./text";

const MARKED = 2000; // more hits are counted, not marked
const NAME = "find";

export class Find {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly sum = h("span", { class: "count", role: "status" });
  private hits: Range[] = [];
  private current = -1;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly show: (element: HTMLElement) => void,
  ) {
    this.input = h("input", { type: "search", placeholder: "Find in this session", "aria-label": "Find in this session", spellcheck: "false" });
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => this.key(event));
    const close = h("button", { type: "button", class: "icon-button", title: "Close (Esc)", "aria-label": "Close" }, icon("cross"));
    close.addEventListener("click", () => this.close());
    this.element = h("div", { class: "find", role: "search", hidden: true }, this.input, this.sum, close);
  }

  open(): void {
    this.element.hidden = false;
    this.input.focus();
    this.input.select();
    this.search();
  }

  private close(): void {
    this.element.hidden = true;
    CSS.highlights.delete(NAME);
    this.scroller.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The transcript grows while it plays, so every step looks again. */
  private search(): void {
    this.hits = occurrences(this.scroller, this.input.value);
    this.current = -1;
    CSS.highlights.set(NAME, new Highlight(...this.hits.slice(0, MARKED)));
    this.sum.textContent = this.input.value.trim() === "" ? "" : plural(this.hits.length, "hit");
  }

  private step(by: 1 | -1): void {
    const before = this.current;
    this.search();
    if (this.hits.length === 0) return;
    this.current = before < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (before + by + this.hits.length) % this.hits.length;
    const place = this.hits[this.current]?.startContainer.parentElement;
    if (place) this.show(place);
    this.sum.textContent = `${this.current + 1} of ${this.hits.length}`;
  }
}

const BLOCKS = "p, li, pre, td, th, h1, h2, h3, h4, h5, h6, dt, dd, blockquote, summary, .text, .prompt-text, .item";

/** Every place below `root` that reads `wanted`, whatever the case. A hit lies within one block, across its marks. */
export function occurrences(root: HTMLElement, wanted: string): Range[] {
  const needle = wanted.trim().toLowerCase();
  if (needle === "") return [];
  const found: Range[] = [];
  for (const nodes of textBlocks(root)) {
    const text = nodes.map((node) => node.data).join("").toLowerCase();
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) {
      found.push(rangeOf(nodes, at, at + needle.length));
    }
  }
  return found;
}

/** The text nodes of each block, in reading order. */
function textBlocks(root: HTMLElement): Text[][] {
  const blocks: Text[][] = [];
  let last: Element | null = null;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!(node instanceof Text) || parent === null || parent.closest("button, .status") !== null) continue;
    const block = parent.closest(BLOCKS);
    if (block !== last || blocks.length === 0) blocks.push([]);
    blocks.at(-1)?.push(node);
    last = block;
  }
  return blocks;
}

function rangeOf(nodes: Text[], from: number, to: number): Range {
  const range = document.createRange();
  let before = 0;
  for (const node of nodes) {
    const after = before + node.data.length;
    if (from >= before && from < after) range.setStart(node, from - before);
    if (to > before && to <= after) range.setEnd(node, to - before);
    before = after;
  }
  return range;
}
