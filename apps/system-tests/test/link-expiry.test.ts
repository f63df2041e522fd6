import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Platform } from "@millwright/test-platform";
import { s3Server, type S3Server } from "@millwright/testing";
import { connect } from "./support/client.ts";
import { script, startRun, succeeded } from "./support/runs.ts";

/** Longer than the 15 minutes for which a link to an artifact is valid. */
const SHIFT_MS = 20 * 60_000;

/** Loaded before the platform: shifts its clock by the milliseconds in a file. */
const SHIFTED_CLOCK = (file: string): string => `
import { readFileSync } from "node:fs";
const shift = Number(readFileSync(${JSON.stringify(file)}, "utf8"));
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) { super(...(args.length === 0 ? [RealDate.now() + shift] : args)); }
  static now() { return RealDate.now() + shift; }
};`;

let dir: string;
let s3: S3Server;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "millwright-clock-"));
  s3 = await s3Server();
});
afterAll(async () => {
  await s3?.close();
  rmSync(dir, { recursive: true, force: true });
});

describe.each(["directory", "bucket"])("a link to an artifact in a %s", (store) => {
  test("downloads it, and is refused after its expiry", async () => {
    const [shift, module] = [join(dir, `${store}.shift`), join(dir, `${store}.mjs`)];
    writeFileSync(module, SHIFTED_CLOCK(shift));
    writeFileSync(shift, "0");
    const platform = await Platform.start({
      env: {
        NODE_OPTIONS: `--import=${pathToFileURL(module).href}`,
        ...(store === "bucket" && { MILLWRIGHT_BLOB_URL: s3.blobUrl, ...s3.env }),
      },
    });
    try {
      const api = await connect(platform);
      const steps = ["write: {path: a.txt, content: hello}", "artifact: a.txt"];
      const run = await succeeded(api, await startRun(api, script(...steps)));
      const linkOf = async (): Promise<string> => {
        const path = `/agent/artifacts/${run.artifacts[0].data.artifact_uid}/download`;
        return (await api.call("GET", path)).headers.get("location")!;
      };
      const fresh = await fetch(await linkOf());
      expect([fresh.status, await fresh.text()]).toEqual([200, "hello"]);

      await platform.stop();
      writeFileSync(shift, String(-SHIFT_MS));
      await platform.start();
      const old = await linkOf();
      await platform.stop();
      writeFileSync(shift, "0");
      await platform.start();

      const refused = await fetch(old);
      expect([refused.status, (await refused.text()).includes("hello")]).toEqual([403, false]);
      expect((await fetch(await linkOf())).status).toBe(200);
    } finally {
      await platform.remove();
    }
  });
});
