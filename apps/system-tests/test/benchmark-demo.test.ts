import { afterEach, expect, test } from "@jest/globals";
import { SLOW_MS } from "./support/deployment.ts";
import { killDemos, startDemo } from "./support/demo-process.ts";

afterEach(killDemos);

test(
  "the benchmark demo ends with a table that names the worse configuration and its confidence interval",
  async () => {
    const { output, ended } = startDemo({ name: "benchmark", onTerminal: false }, "--exit");
    const [code] = await ended;
    expect([code, code === 0 ? "" : output()]).toEqual([0, ""]);
    expect(output()).toContain("24 of 24 trials completed, 24 of 24 scores");
    expect(output()).toMatch(/^with tests +baseline +12\/12 +100\.0 % +75\.8 % to 100\.0 % +12\/12 /m);
    expect(output()).toMatch(
      /^without tests +candidate +4\/12 +33\.3 % +13\.8 % to 60\.9 % +12\/12 +-66\.7 points \(-\S+ to -\S+\): worse /m,
    );
    expect(output()).toMatch(/^Coverage {2}24 of 24 expected outcomes$/m);
    expect(output()).toMatch(/^Manifest {2}sha256 [0-9a-f]{64}$/m);
    expect(output()).toContain("Links (they open while the platform runs: npm run demo:benchmark -- --keep)");
  },
  SLOW_MS,
);
