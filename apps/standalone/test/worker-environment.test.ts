import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { workerEnvironment } from "../src/worker-environment.ts";

/** Variables that the supervisor sets itself, or that have no meaning for a worker that the platform starts. */
const NOT_INHERITED = [
  "MILLWRIGHT_ALLOWED_INTERNAL_HOSTS",
  "MILLWRIGHT_SANDBOX",
  "MILLWRIGHT_URL",
  "MILLWRIGHT_WORKER_DIR",
  "MILLWRIGHT_WORKER_DRAIN",
  "MILLWRIGHT_WORKER_ID",
  "MILLWRIGHT_WORKER_IMAGE",
  "MILLWRIGHT_WORKER_KEY",
  "MILLWRIGHT_WORKER_OFFER",
  "MILLWRIGHT_WORKER_OFFER_FILE",
  "MILLWRIGHT_WORKER_SLOTS",
  "MILLWRIGHT_WORKER_SUPERVISED",
];

/** Returns every variable that the worker's configuration reads. */
function workerSettings(): string[] {
  const sources = ["../../worker/src/config.ts", "../../worker/src/backends/kubernetes/settings.ts"];
  const texts = sources.map((path) => readFileSync(new URL(path, import.meta.url), "utf8"));
  const names = texts.flatMap((text) =>
    [...text.matchAll(/(?:optional|required)\.\w+\("(MILLWRIGHT_\w+)"/g)].map(([, name]) => name!),
  );
  return [...new Set(names)];
}

test("workers inherit every setting that an operator makes for them", () => {
  const names = workerSettings();
  expect(names.length).toBeGreaterThan(40);
  const inherited = workerEnvironment(Object.fromEntries(names.map((name) => [name, "set"])));
  expect(names.filter((name) => !(name in inherited) && !NOT_INHERITED.includes(name))).toEqual([]);
});

test("workers inherit nothing else", () => {
  const others = [
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "MASTER_KEY",
    "MILLWRIGHT_BOOTSTRAP_API_KEY",
    "MILLWRIGHT_DATABASE_URL",
    "MILLWRIGHT_DATA_DIR",
    "MILLWRIGHT_SANDBOX_ANYTHING",
    "NODE_OPTIONS",
    "OPENAI_API_KEY",
    "PGPASSWORD",
    "PWD",
    "SSH_AUTH_SOCK",
  ];
  expect(workerEnvironment({ ...Object.fromEntries(others.map((name) => [name, "secret"])), PATH: "/bin" })).toEqual({
    PATH: "/bin",
  });
});

test("relative file names still name the same file in a worker's own working directory", () => {
  expect(workerEnvironment({ MILLWRIGHT_HARNESS_CLAUDE: "tools/claude", KUBECONFIG: "one:/etc/two" })).toEqual({
    MILLWRIGHT_HARNESS_CLAUDE: resolve("tools/claude"),
    KUBECONFIG: `${resolve("one")}:/etc/two`,
  });
});
