/** What a page shows: one Cassette, or several side by side. */

import { Connection } from "./connection";
import { readPreferences, startFrom } from "./start";
import { Viewer } from "./viewer";
import { WorkspaceView } from "./workspace";

const token = document.querySelector<HTMLMetaElement>("meta[name=csrf-token]")?.content ?? "";
const start = startFrom(location.search, readPreferences());
const workspace = document.querySelector<HTMLElement>(".workspace");
const single = document.querySelector<HTMLElement>(".viewer");

if (workspace !== null) {
  const view = new WorkspaceView(workspace);
  view.open(new Connection(workspace.dataset["openUrl"] ?? "", token, start, view));
} else if (single !== null) {
  let connection: Connection | null = null;
  const viewer = new Viewer(single, { send: (control) => connection?.send(control), hasKeys: () => true, ownsAddress: true });
  connection = new Connection(single.dataset["openUrl"] ?? "", token, start, viewer);
  void connection.open();
}
