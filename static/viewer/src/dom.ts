/** Elements without markup in strings: text never becomes HTML here. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

/** An element; attributes named `on…` with a function are listeners, `false` and null leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Outlines on a grid of 16 by 16. */
const ICONS: Record<string, string> = {
  play: "M4.5 2.8v10.4l8.5-5.2z",
  pause: "M5 3v10M11 3v10",
  restart: "M3 3v4h4M3.6 7A5 5 0 1 1 3 9.6",
  next: "M4 3l6 5-6 5zM12.5 3v10",
  skip: "M2.5 3.5 7 8l-4.5 4.5zM8.5 3.5 13 8l-4.5 4.5z",
  execute: "M2.5 4 6 8l-3.5 4M7.5 12.5h6",
  edit: "M3 13l.6-3L11 2.6 13.4 5 6 12.4zM9.5 4.2l2.3 2.3",
  read: "M4 2h5l3 3v9H4zM9 2v3h3M6 8h4M6 11h4",
  fetch: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c4 4 4 8 0 12M8 2c-4 4-4 8 0 12",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14",
  agent: "M8 2a2.6 2.6 0 1 0 0 5.2A2.6 2.6 0 0 0 8 2zM2.8 14c.4-3.4 2.4-5 5.2-5s4.800 1.600 5.200 5",
  other: "M8 2l5 3v6l-5 3-5-3V5zM8 8v6M8 8 3 5M8 8l5-3",
  think: "M5 11.500a4.500 4.500 0 1 1 6 0V13H5zM6 15h4",
  ask: "M2.500 3h11v8H8l-3 3v-3H2.500z",
  check: "M3 8.500 6.500 12 13 4.500",
  cross: "M4 4l8 8M12 4l-8 8",
  warn: "M8 2.500 14.500 13.500h-13zM8 6.500v3.500M8 12v.2",
  list: "M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.2M2.500 8h.2M2.500 12h.2",
  panel: "M2.500 3h11v10h-11zM10 3v10",
  link: "M6.500 9.500l3-3M7 4.500l1-1a3 3 0 0 1 4.500 4.500l-1 1M9 11.500l-1 1A3 3 0 0 1 3.500 8l1-1",
  copy: "M5.500 5.500V3H13v7.500h-2.500M3 5.500h7.500V13H3z",
  down: "M8 3v10M4 9l4 4 4-4",
  help: "M6 6a2 2 0 1 1 3 1.800c-.7.4-1 .8-1 1.700M8 12v.2",
};

export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name] ?? ICONS["other"] ?? "");
  svg.append(path);
  return svg;
}

/** Copy to the clipboard; false where the browser does not let us. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
