import { resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { describeSettings } from "@millwright/config";
import { settings } from "@millwright/worker/config";
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

/** Every variable that the worker reads, except those that have names outside the platform. */
const WORKER_VARIABLES = describeSettings(settings)
  .map(({ name }) => name)
  .filter((name) => name.startsWith("MILLWRIGHT_"));

test("workers inherit every setting that an operator makes for them", () => {
  const inherited = workerEnvironment(Object.fromEntries(WORKER_VARIABLES.map((name) => [name, "set"])));
  expect(WORKER_VARIABLES.filter((name) => !(name in inherited) && !NOT_INHERITED.includes(name))).toEqual([]);
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
