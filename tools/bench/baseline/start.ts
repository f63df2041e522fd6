import { join } from "node:path";
import { ensureDatabase, freePort, migrate } from "@millwright/database";
import { startProgram, untilReady, type Platform, type Program } from "../platform.ts";
import type { NamedProcess } from "../process-stat.ts";

const DATABASE = "bench_baseline";
const MIGRATIONS = join(import.meta.dirname, "../../../apps/orchestrator/prisma/migrations");

/** A reference implementation: its name in the results, its address, and the processes that serve it. */
export type Floor = { readonly who: string; readonly url: string; readonly processes: readonly NamedProcess[] };

export type Baseline = {
  /** One process, which also serves the compared job queues. */
  readonly single: Floor;
  /** A gateway and a service. Only beside a platform of separate processes. */
  readonly split: Floor | undefined;
  readonly databaseUrl: string;
  stop(): Promise<void>;
};

/** Returns the reference implementations of the runs API. */
export const floorsOf = ({ single, split }: Baseline): Floor[] => (split ? [split, single] : [single]);

/**
 * Starts the reference implementations and the compared job queues, as processes of their own and in a separate
 * database on the platform's PostgreSQL.
 */
export async function startBaseline(dir: string, platform: Platform): Promise<Baseline> {
  const databaseUrl = platform.databaseUrl(DATABASE);
  await ensureDatabase(platform.databaseUrl("postgres"), DATABASE);
  await migrate(databaseUrl, MIGRATIONS);
  const programs: Program[] = [];
  const start = async (name: string, env: Record<string, string>) => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const program = startProgram(`tools/bench/baseline/${name}.ts`, dir, { ...env, PORT: new URL(url).port });
    programs.push(program);
    return { program, url };
  };
  const stop = async (): Promise<void> => void (await Promise.all(programs.map((program) => program.stop())));
  try {
    const server = await start("server", { BASELINE_DATABASE_URL: databaseUrl });
    await untilReady(server.program, `${server.url}/ready`);
    const single = {
      who: "floor",
      url: server.url,
      processes: [{ name: "floor", pid: server.program.child.pid ?? 0 }],
    };
    if (platform.setup === "standalone") return { single, split: undefined, databaseUrl, stop };
    const service = await start("run-service", { BASELINE_DATABASE_URL: databaseUrl });
    const gateway = await start("gateway", { RUN_SERVICE_URL: service.url });
    await untilReady(gateway.program, `${gateway.url}/ready`);
    const split = {
      who: "two-process floor",
      url: gateway.url,
      processes: [
        { name: "gateway", pid: gateway.program.child.pid ?? 0 },
        { name: "service", pid: service.program.child.pid ?? 0 },
      ],
    };
    return { single, split, databaseUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
