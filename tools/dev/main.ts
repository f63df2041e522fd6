/**
 * Starts the platform with restart on change, and the console's development server, which reloads the page on change and
 * forwards requests of the API to the platform.
 *
 *   npm run dev
 */
import { spawn } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const { PORT: port = "8080", HOST: host = "127.0.0.1" } = process.env;

const children = [
  ["--watch", "--conditions=@millwright/source", "--no-warnings", "apps/standalone/src/main.ts"],
  ["node_modules/vite/bin/vite.js", "--config", "apps/console/vite.config.mjs"],
].map((args) =>
  spawn(process.execPath, args, {
    cwd: ROOT,
    stdio: "inherit",
    env: { ...process.env, MILLWRIGHT_URL: `http://${host}:${port}` },
  }),
);

const stop = (): void => children.forEach((child) => child.kill("SIGTERM"));
process.on("SIGINT", stop);
process.on("SIGTERM", stop);
for (const child of children) child.on("exit", stop);
