/** Light or dark as this person chose, or as their system says; runs before anything is drawn. */

const STORE = "reprise.theme";
const order = ["auto", "light", "dark"];
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function chosen(): string {
  try {
    return localStorage.getItem(STORE) ?? "auto";
  } catch {
    return "auto";
  }
}

function set(theme: string): void {
  const meant = theme === "auto" ? (systemIsDark.matches ? "dark" : "light") : theme;
  document.documentElement.setAttribute("data-theme", meant);
}

set(chosen());
systemIsDark.addEventListener("change", () => set(chosen()));
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
