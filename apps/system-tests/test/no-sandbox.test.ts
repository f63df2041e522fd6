/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { existsSync } from "node:fs";
import { afterEach, expect } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { Platform } from "@millwright/test-platform";
import { connect } from "./support/client.ts";
import { ended, script, startRun, succeeded } from "./support/runs.ts";

/** Starts a command in an environment in which bubblewrap cannot be executed. */
const WITHOUT_BUBBLEWRAP = [
  "bwrap",
  "--dev-bind",
  "/",
  "/",
  "--cap-add",
  "ALL",
  ...["/usr/bin/bwrap", "/bin/bwrap"].filter(existsSync).flatMap((path) => ["--ro-bind", "/dev/null", path]),
  "--",
];

let platform: Platform | undefined;
afterEach(async () => {
  await platform?.remove();
  platform = undefined;
});

needs(
  "bwrap",
  "a platform without bubblewrap executes no command of a run and names both remedies on the console and in the run",
  async () => {
    platform = await Platform.start({ wrapper: WITHOUT_BUBBLEWRAP, env: { MILLWRIGHT_SANDBOX: "auto" } });
    const api = await connect(platform);
    const executed = platform.path("executed");
    const run = await ended(api, await startRun(api, script(`shell: touch ${executed}`)));
    expect([run.state, existsSync(executed)]).toEqual(["BLOCKED", false]);
    for (const text of [run.status_message.message, platform.output()])
      expect(text).toMatch(/apt-get install bubblewrap[^]*MILLWRIGHT_SANDBOX=none/);
  },
);

needs("bwrap", "a platform with MILLWRIGHT_SANDBOX=none executes runs and warns on the console", async () => {
  platform = await Platform.start({
    wrapper: WITHOUT_BUBBLEWRAP,
    env: { MILLWRIGHT_SANDBOX: "none", MILLWRIGHT_WORKER_USER: "root" },
  });
  const api = await connect(platform);
  const executed = platform.path("executed");
  await succeeded(api, await startRun(api, script(`shell: touch ${executed}`)));
  expect(existsSync(executed)).toBe(true);
  await eventually(() =>
    expect(platform!.output()).toContain("worker: Runs are not sandboxed (MILLWRIGHT_SANDBOX=none)."),
  );
});
