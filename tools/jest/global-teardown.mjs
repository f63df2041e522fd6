// Ends what global-setup.mjs started.
import { rm } from 'node:fs/promises';

export default async function globalTeardown() {
  const { server, dataDir } = globalThis.millwrightTestPostgres ?? {};
  await server?.stop();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
}
