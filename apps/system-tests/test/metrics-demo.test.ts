import { afterEach, expect, test } from "@jest/globals";
import { SLOW_MS } from "./support/deployment.ts";
import { killDemos, startDemo } from "./support/demo-process.ts";

afterEach(killDemos);

test(
  "the metrics demo stores a month of a team's work and prints its activity and costs",
  async () => {
    const { output, ended } = startDemo({ name: "metrics", onTerminal: false }, "--exit", "--seed", "7");
    const [code] = await ended;
    expect([code, code === 0 ? "" : output()]).toEqual([0, ""]);
    const [, runs, calls, pullRequests] =
      /seed 7: (\d+) runs, (\d+) model calls, (\d+) pull requests/.exec(output()) ?? [];
    expect(output()).toMatch(new RegExp(`^runs +${runs}$`, "m"));
    expect(output()).toMatch(new RegExp(`^pull requests +${pullRequests}$`, "m"));
    expect(output()).toContain(`Known prices: ${calls} of ${calls} model calls`);
    expect(output()).toMatch(/^claude-opus-5-5 +\$[\d.]+/m);
    expect(output()).toMatch(/ https:\/\/github\.example\/acme\/\S+ +Simulated change \d+$/m);
  },
  SLOW_MS,
);
