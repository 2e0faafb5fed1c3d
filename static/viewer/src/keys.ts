/** Keys of the viewer. Single keys stay silent while somebody types, chooses or holds a modifier. */

import { h } from "./dom";

export type Actions = Record<string, () => void>;

/** Key as the browser names it, with `Shift+` where that matters → name of the action and what help says of it. */
const KEYS: [keys: string[], action: string, help: string][] = [
  [[" ", "k"], "toggle", "Play or pause"],
  [["ArrowLeft"], "back5", "Back 5 seconds"],
  [["ArrowRight"], "forward5", "Forward 5 seconds"],
  [["j"], "back10", "Back 10 seconds"],
  [["l"], "forward10", "Forward 10 seconds"],
  [[","], "previousEvent", "One event back"],
  [["."], "nextEvent", "One event on"],
  [["["], "previousCheckpoint", "Previous checkpoint"],
  [["]"], "nextCheckpoint", "Next checkpoint"],
  [["Shift+ArrowLeft", "{"], "previousTurn", "Previous Turn"],
  [["Shift+ArrowRight", "}"], "nextTurn", "Next Turn"],
  [["Home"], "restart", "Start again"],
  [["End"], "end", "Go to the end"],
  [["<"], "slower", "Slower"],
  [[">"], "faster", "Faster"],
  [["t"], "nextTool", "Next tool call in view"],
  [["T"], "previousTool", "Previous tool call in view"],
  [["a"], "nextApproval", "Next approval or question in view"],
  [["A"], "previousApproval", "Previous approval or question in view"],
  [["e"], "nextError", "Next error in view"],
  [["E"], "previousError", "Previous error in view"],
  [["d"], "diff", "The last change to a file"],
  [["/"], "find", "Find in the transcript"],
  [["m"], "fold", "Fold or unfold everything"],
  [["y"], "copyLink", "Copy link to this moment"],
  [["w"], "theatre", "Transcript alone, or with both sides"],
  [["f"], "fullScreen", "Full screen"],
  [["?"], "help", "These shortcuts"],
];

const NAMES: Record<string, string> = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", "Shift+ArrowLeft": "Shift ←", "Shift+ArrowRight": "Shift →" };

/** The action of a key press, or "" where the key is not ours. `0`–`9` are `percent0`–`percent9`. */
export function actionOf(event: { key: string; shiftKey: boolean; ctrlKey: boolean; metaKey: boolean; altKey: boolean }): string {
  if (event.ctrlKey || event.metaKey || event.altKey) return "";
  if (/^[0-9]$/.test(event.key)) return `percent${event.key}`;
  const isArrow = event.key.startsWith("Arrow");
  const key = isArrow && event.shiftKey ? `Shift+${event.key}` : event.key;
  const found = KEYS.find(([keys]) => keys.includes(key)) ?? KEYS.find(([keys]) => !event.shiftKey && keys.includes(key.toLowerCase()));
  return found?.[1] ?? "";
}

/** Act on keys while `isOurs` says that they are for these actions. */
export function listen(actions: Actions, isOurs: () => boolean): void {
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (!isOurs()) return;
    if (event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
    if (target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select"))) return;
    const acts = target instanceof HTMLElement && target.matches("button, summary, a, input");
    if (acts && (event.key === " " || event.key === "Enter")) return; // it belongs to what has the focus
    const action = actions[actionOf(event)];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}

export function helpDialog(): HTMLDialogElement {
  const rows = KEYS.map(([keys, , help]) =>
    h("div", { class: "key-row" }, h("dt", {}, ...keys.map((key) => h("kbd", {}, NAMES[key] ?? key))), h("dd", {}, help)),
  );
  rows.push(h("div", { class: "key-row" }, h("dt", {}, h("kbd", {}, "0"), "–", h("kbd", {}, "9")), h("dd", {}, "Go to 0 % … 90 %")));
  const close = h("button", { type: "button", class: "button" }, "Close");
  const dialog = h("dialog", { class: "dialog", "aria-label": "Keyboard shortcuts" }, h("h2", {}, "Keyboard shortcuts"), h("dl", { class: "keys" }, ...rows), close);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
