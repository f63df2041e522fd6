import { join } from "node:path";
import { ensureDatabase, freePort, migrate } from "@millwright/database";
import { startProgram, untilReady, type Platform, type Program } from "../platform.ts";

const DATABASE = "bench_baseline";
const MIGRATIONS = join(import.meta.dirname, "../../../apps/orchestrator/prisma/migrations");

export type Baseline = { readonly url: string; readonly databaseUrl: string; stop(): Promise<void> };

/**
 * Starts the reference implementation and the compared job queues, in a separate process and in a separate database on
 * the platform's PostgreSQL.
 */
export async function startBaseline(dir: string, platform: Platform): Promise<Baseline> {
  const databaseUrl = platform.databaseUrl(DATABASE);
  await ensureDatabase(platform.databaseUrl("postgres"), DATABASE);
  await migrate(databaseUrl, MIGRATIONS);
  const url = `http://127.0.0.1:${await freePort()}`;
  const program: Program = startProgram("tools/bench/baseline/server.ts", dir, {
    BASELINE_DATABASE_URL: databaseUrl,
    PORT: new URL(url).port,
  });
  try {
    await untilReady(program, `${url}/ready`);
  } catch (error) {
    await program.stop();
    throw error;
  }
  return { url, databaseUrl, stop: () => program.stop() };
}
