/** Behaviour of the other pages: uploads with progress, copying, questions before something is destroyed. */

import { copy, h } from "./dom";

const POLL_MS = 300;

interface Job {
  id: string;
  state: "queued" | "running" | "done" | "failed" | "held";
  progress: number;
  message: string;
  error: { code: string; message: string; place: string; hint?: string } | null;
  result: { cassettes: { cassetteId: string; replay: string; created: boolean; unrecognised: number }[] } | null;
}

const token = (): string => document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content ?? "";

class Uploads {
  private readonly list: HTMLElement;
  private open = 0;

  constructor(form: HTMLFormElement) {
    this.list = form.parentElement?.querySelector(".upload-list") ?? form;
    const input = form.querySelector<HTMLInputElement>("input[type=file]");
    form.querySelector("[type=submit]")?.setAttribute("hidden", "");
    input?.addEventListener("change", () => {
      this.take(input.files);
      input.value = "";
    });
    for (const kind of ["dragover", "dragenter"]) {
      document.addEventListener(kind, (event) => {
        event.preventDefault();
        form.classList.add("over");
      });
    }
    for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, () => form.classList.remove("over"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.take(event.dataTransfer?.files ?? null);
    });
  }

  private take(files: FileList | null): void {
    for (const file of files ?? []) void this.one(file);
  }

  private async one(file: File): Promise<void> {
    this.open += 1;
    const bar = h("progress", { max: 100, value: 0, "aria-label": `Upload of ${file.name}` });
    const word = h("span", { class: "hint" }, "Uploading");
    const row = h("li", { class: "upload", "aria-live": "polite" }, h("strong", {}, file.name), word, bar);
    this.list.prepend(row);
    try {
      const job = await send(file, (share) => (bar.value = share * 60));
      await follow(job.id, (now) => {
        bar.value = 60 + now.progress * 0.4;
        word.textContent = now.message;
      }).then((done) => this.show(row, file.name, done));
    } catch (failure) {
      const error = failure as NonNullable<Job["error"]>;
      this.show(row, file.name, { state: "failed", error, result: null } as Job);
    } finally {
      this.open -= 1;
    }
  }

  private show(row: HTMLElement, name: string, job: Job): void {
    row.classList.add(job.state);
    if (job.error !== null) {
      const { code, message, place, hint } = job.error;
      row.replaceChildren(
        h("strong", {}, name),
        h("p", {}, message, hint ? ` ${hint}` : ""),
        h("p", { class: "hint" }, h("code", {}, code), place ? ` ${place}` : ""),
      );
      return;
    }
    if (job.state === "held") {
      const decide = h("a", { class: "button quiet", href: `/uploads/${job.id}/` }, "Look and decide");
      row.replaceChildren(h("strong", {}, name), h("p", {}, "Secrets were found in it, so it is not published yet."), decide);
      return;
    }
    const made = (job.result?.cassettes ?? []).map((one) =>
      h(
        "p",
        {},
        h("a", { href: `/cassettes/${one.cassetteId}/` }, one.created ? "Open the Cassette" : "This Cassette was here already"),
        h("span", { class: one.replay === "equal" ? "good" : "bad" }, one.replay === "equal" ? " Replay equal" : ` ${one.replay}`),
        one.unrecognised > 0 ? h("span", { class: "hint" }, ` ${one.unrecognised} records not recognised`) : null,
        h("a", { class: "hint", href: `/uploads/${job.id}/` }, " Report"),
      ),
    );
    row.replaceChildren(h("strong", {}, name), ...made);
    if (this.open <= 1) void refresh();
  }
}

function send(file: File, progress: (share: number) => void): Promise<Job> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads?filename=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("X-CSRFToken", token());
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => event.lengthComputable && progress(event.loaded / event.total));
    request.addEventListener("load", () => {
      if (request.status === 202) resolve(request.response as Job);
      else reject(request.response ?? { code: `http_${request.status}`, message: "The server refused the file.", place: "" });
    });
    request.addEventListener("error", () => reject({ code: "upload_lost", message: "The upload was cut off. Try again.", place: "" }));
    request.send(file);
  });
}

async function follow(id: string, tell: (job: Job) => void): Promise<Job> {
  for (;;) {
    const answer = await fetch(`/api/uploads/${id}`);
    const job = (await answer.json()) as Job;
    if (!answer.ok || ["done", "failed", "held"].includes(job.state)) return job;
    tell(job);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Bring the list up to date without losing what the page shows. */
async function refresh(): Promise<void> {
  const answer = await fetch(location.href);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [fresh, shown] = [page.querySelector("#cassettes"), document.querySelector("#cassettes")];
  if (fresh !== null && shown !== null) shown.replaceWith(fresh);
}

for (const form of document.querySelectorAll<HTMLFormElement>("form.uploader")) new Uploads(form);

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>("[data-copy]") : null;
  if (button === null) return;
  void copy(button.dataset["copy"] ?? "").then((done) => {
    button.textContent = done ? "Copied" : "Select and copy it";
  });
});

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  const question = form.dataset["question"];
  if (question !== undefined && !confirm(question)) event.preventDefault();
});

/** The bar for comparing is there while Cassettes are chosen, and its button works when it can. */
function countChosen(): void {
  const bar = document.querySelector<HTMLElement>(".compare-bar");
  const button = bar?.querySelector<HTMLButtonElement>("[data-compare]");
  if (bar == null || button == null) return;
  const chosen = document.querySelectorAll("td.col-choose input:checked").length;
  bar.hidden = chosen === 0;
  button.disabled = chosen < 2 || chosen > 8;
  button.textContent = chosen < 2 ? "Compare" : `Compare ${chosen}`;
}

document.addEventListener("change", countChosen);
countChosen();

// Times in the reader's own zone.
for (const time of document.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
  const moment = new Date(time.dateTime);
  if (!Number.isNaN(moment.getTime())) {
    time.title = moment.toLocaleString();
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}

document.addEventListener("keydown", (event) => {
  const search = document.querySelector<HTMLInputElement>(".search input[type=search]");
  if (event.key === "/" && search !== null && !(event.target instanceof HTMLInputElement)) {
    event.preventDefault();
    search.focus();
  }
});
