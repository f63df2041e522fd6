import { expect, test } from "@jest/globals";
import { loadConfig } from "./config.ts";

const REQUIRED = { MILLWRIGHT_URL: "http://localhost:8080/", MILLWRIGHT_WORKER_KEY: "mww_secret" };

test("a worker needs only a URL and a key", () => {
  expect(loadConfig(REQUIRED)).toMatchObject({
    url: "http://localhost:8080",
    slots: 4,
    sandbox: "auto",
    drainMs: 60_000,
    supervised: false,
    logLevel: "info",
  });
  expect(() => loadConfig({})).toThrow(/MILLWRIGHT_URL[^]*MILLWRIGHT_WORKER_KEY/);
});

test.each([
  ["MILLWRIGHT_SANDBOX", "docker"],
  ["MILLWRIGHT_WORKER_SLOTS", "0"],
  ["MILLWRIGHT_WORKER_SLOTS", "many"],
  ["LOG_LEVEL", "chatty"],
  ["MILLWRIGHT_WORKER_DRAIN", "-1s"],
  ["MILLWRIGHT_WORKER_SKILLS", "acme/shop"],
])("%s=%s is rejected with its name, without showing the key", (name, value) => {
  const read = () => loadConfig({ ...REQUIRED, [name]: value });
  expect(read).toThrow(name);
  expect(read).not.toThrow("mww_secret");
});
