// Starts the one PostgreSQL of this test run. Databases live in it only as long as the run, so it need not sync to disk.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedPostgres } from "@millwright/database";

const PREFIX = "millwright-tests-";

export default async function globalSetup() {
  await removeOrphans();
  const dataDir = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const settings = {
    fsync: "off",
    synchronous_commit: "off",
    full_page_writes: "off",
    max_wal_size: "4GB",
    autovacuum: "off",
    log_min_messages: "fatal",
  };
  const server = await EmbeddedPostgres.start({ dataDir, maxConnections: 400, settings });
  globalThis.millwrightTestPostgres = { server, dataDir };
  process.env.MILLWRIGHT_TEST_POSTGRES = server.url("postgres");
}

/** A run that was killed leaves its server behind: ends it and removes its files. */
async function removeOrphans() {
  for (const name of await readdir(tmpdir())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : NaN;
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    const dataDir = join(tmpdir(), name);
    await EmbeddedPostgres.stopLeftover(dataDir);
    await rm(dataDir, { recursive: true, force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
