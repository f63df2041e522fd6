// Ends what global-setup.mjs started, and the cgroups of workers that tests have killed.
import { rm } from 'node:fs/promises';
import { Cgroups } from '../../apps/worker/src/sandbox/cgroups.ts';

export default async function globalTeardown() {
  const { server, dataDir } = globalThis.millwrightTestPostgres ?? {};
  await server?.stop();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
  const cgroups = await Cgroups.open('auto');
  if (cgroups instanceof Cgroups) cgroups.close();
}
