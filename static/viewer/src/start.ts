/** Where and how a viewing begins: the address, then what this person chose last time. */

import type { Start } from "./connection";
import { IDLE_LIMIT_MS, SPEEDS } from "./controls";
import { parseTime } from "./text";

const STORE = "reprise.viewer";

interface Preferences {
  speed?: number;
  skipIdle?: boolean;
}

export function readPreferences(): Preferences {
  try {
    return JSON.parse(localStorage.getItem(STORE) ?? "{}") as Preferences;
  } catch {
    return {};
  }
}

export function remember(preference: Preferences): void {
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...readPreferences(), ...preference }));
  } catch {
    // a browser that keeps nothing: the next viewing begins as ever
  }
}

/** `?t=` (seconds, `m:ss`, `h:mm:ss`), `?checkpoint=` (from 1), `&speed=`, `&idle=` (milliseconds or `off`). */
export function startFrom(search: string, preferences: Preferences): Start {
  const query = new URLSearchParams(search);
  const start: Start = {};
  const speed = Number(query.get("speed") ?? preferences.speed ?? 1);
  if (SPEEDS.includes(speed)) start["speed"] = speed;
  const idle = query.get("idle");
  if (idle !== null && /^\d{1,9}$/.test(idle)) start["idleLimitMs"] = Number(idle);
  else if (idle !== "off" && preferences.skipIdle !== false) start["idleLimitMs"] = IDLE_LIMIT_MS;
  const at = parseTime(query.get("t") ?? "");
  const checkpoint = Number(query.get("checkpoint"));
  if (Number.isInteger(checkpoint) && checkpoint > 0) start["checkpoint"] = checkpoint - 1;
  else if (at !== null) start["atMs"] = at;
  if ("checkpoint" in start || "atMs" in start) start["paused"] = true; // who comes to a moment wants to see it
  return start;
}
