// Starts the PostgreSQL server of this test run. Its databases are deleted after the run, so it need not sync to disk.
import { mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedPostgres } from "@millwright/database";

const PREFIX = "millwright-tests-";
/**
 * An in-memory file system, used if it exists: creating and dropping a database takes a fifth of the time that it takes
 * on disk.
 */
const MEMORY_DIR = "/dev/shm";
/**
 * Free space that the in-memory file system needs for the databases of a whole run and PostgreSQL's log, and free
 * memory that the machine needs.
 */
const MEMORY_DIR_FREE_BYTES_MIN = 4 * 2 ** 30;
const MEMORY_FREE_BYTES_MIN = 8 * 2 ** 30;

export default async function globalSetup() {
  for (const dir of [tmpdir(), MEMORY_DIR]) await removeOrphans(dir);
  const dataDir = await mkdtemp(join((await hasFreeMemory()) ? MEMORY_DIR : tmpdir(), `${PREFIX}${process.pid}-`));
  const settings = {
    fsync: "off",
    synchronous_commit: "off",
    full_page_writes: "off",
    max_wal_size: "1GB",
    autovacuum: "off",
    log_min_messages: "fatal",
  };
  const server = await EmbeddedPostgres.start({ dataDir, maxConnections: 400, settings });
  globalThis.millwrightTestPostgres = { server, dataDir };
  process.env.MILLWRIGHT_TEST_POSTGRES = server.url("postgres");
}

async function hasFreeMemory() {
  const { bavail, bsize } = await statfs(MEMORY_DIR).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize >= MEMORY_DIR_FREE_BYTES_MIN && process.availableMemory() >= MEMORY_FREE_BYTES_MIN;
}

/** Stops the servers of test runs that were killed, and removes their files. */
async function removeOrphans(dir) {
  for (const name of await readdir(dir).catch(() => [])) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split("-")[0]) : NaN;
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    const dataDir = join(dir, name);
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
