// Builds static/dist: the viewer, the site's behaviour and the theme switch. `--watch` builds again at every change.
import { context } from "esbuild";

const options = {
  entryPoints: { viewer: "static/viewer/src/main.ts", site: "static/viewer/src/site.ts", theme: "static/viewer/src/theme.ts" },
  outdir: "static/dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "linked",
  logLevel: "warning",
};

const build = await context(options);
if (process.argv.includes("--watch")) {
  await build.watch();
} else {
  await build.rebuild();
  await build.dispose();
}
