import { defaultClientConditions, defineConfig } from "vite";

/** The platform that the development server forwards requests to. */
const PLATFORM = process.env.MILLWRIGHT_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  root: import.meta.dirname,
  clearScreen: false,
  resolve: { conditions: ["@millwright/source", ...defaultClientConditions] },
  oxc: { jsx: { runtime: "automatic" } },
  server: {
    port: 5173,
    proxy: Object.fromEntries(["/api", "/session", "/docs", "/blobs", "/errors"].map((path) => [path, PLATFORM])),
  },
  build: {
    outDir: "dist",
    // chunks of earlier builds stay for pages that are open; build.mjs removes them later
    emptyOutDir: false,
    // the content security policy permits no inline data in scripts and styles
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    manifest: "manifest.json",
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // "use client" in packages means nothing without server rendering
      onwarn: (warning, warn) => void (warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning)),
    },
  },
});
