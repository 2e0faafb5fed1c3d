/** Light or dark as this person chose; runs before anything is drawn. */

const STORE = "reprise.theme";
const order = ["auto", "light", "dark"];

function chosen(): string {
  try {
    return localStorage.getItem(STORE) ?? "auto";
  } catch {
    return "auto";
  }
}

function set(theme: string): void {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
}

set(chosen());
document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector<HTMLButtonElement>("[data-theme-switch]");
  if (button === null) return;
  const name = (theme: string): void => {
    button.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme] ?? "◐";
    button.title = `Theme: ${theme}`;
    button.setAttribute("aria-label", `Theme: ${theme}. Change it`);
  };
  name(chosen());
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(chosen()) + 1) % order.length] ?? "auto";
    try {
      localStorage.setItem(STORE, next);
    } catch {
      // it lasts as long as this page then
    }
    set(next);
    name(next);
  });
});
