// Stops what global-setup.mjs started and platforms that a failed test left running, and removes the cgroups of workers
// that tests killed.
import { rm } from "node:fs/promises";
import { removeLeftovers } from "../../libs/test-platform/src/directory.ts";
import { Cgroups } from "../../apps/worker/src/sandbox/cgroups.ts";

export default async function globalTeardown() {
  const { server, dataDir } = globalThis.millwrightTestPostgres ?? {};
  await removeLeftovers(true);
  await server?.stop();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
  const cgroups = await Cgroups.open("auto");
  if (cgroups instanceof Cgroups) cgroups.close();
}
