import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["static/viewer/test/**/*.test.ts"] } });
