/** Terminal output: colours become classes, every other control sequence vanishes. */

export interface Styled {
  text: string;
  classes: string;
}

// CSI … final byte, OSC … BEL or ST, and two-character escapes.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\u001b\[([0-9;:?]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\-_]/g;
const FLAGS: Record<number, string> = { 1: "a-bold", 2: "a-dim", 3: "a-italic", 4: "a-underline", 9: "a-struck" };
const OFF: Record<number, string[]> = { 22: ["a-bold", "a-dim"], 23: ["a-italic"], 24: ["a-underline"], 29: ["a-struck"] };

export function ansi(text: string): Styled[] {
  const parts: Styled[] = [];
  const style = { flags: new Set<string>(), colour: "" };
  let at = 0;
  const push = (until: number): void => {
    const piece = carriage(text.slice(at, until));
    if (piece) parts.push({ text: piece, classes: [...style.flags, style.colour].filter(Boolean).join(" ") });
  };
  for (const match of text.matchAll(ESCAPE)) {
    push(match.index);
    at = match.index + match[0].length;
    if (match[2] === "m") setStyle(style, match[1] ?? "");
  }
  push(text.length);
  return parts;
}

function setStyle(style: { flags: Set<string>; colour: string }, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) {
      style.flags.clear();
      style.colour = "";
    } else if (FLAGS[code] !== undefined) {
      style.flags.add(FLAGS[code]);
    } else if (OFF[code] !== undefined) {
      for (const flag of OFF[code]) style.flags.delete(flag);
    } else if (code === 38 || code === 48) {
      index += codes[index + 1] === 5 ? 2 : 4; // palette and direct colours have no class
    } else if (code >= 30 && code <= 37) {
      style.colour = `a-${code - 30}`;
    } else if (code >= 90 && code <= 97) {
      style.colour = `a-${code - 90}`;
    } else if (code === 39) {
      style.colour = "";
    }
  }
}

/** What a terminal shows of lines that were written over: the text after the last carriage return. */
function carriage(text: string): string {
  return text.includes("\r") ? text.replace(/\r+\n/g, "\n").replace(/[^\n]*\r/g, "") : text;
}
