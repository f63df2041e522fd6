import { join } from "node:path";
import { Cluster } from "../../apps/system-tests/src/index.ts";
import { API_KEY, type Platform } from "./platform.ts";

/**
 * The platform with each service as one process, NATS (where it is installed) and a PostgreSQL with fsync. The load goes to the gateway and the
 * webhook ingress themselves: the front doors of the cluster would take time of the process that measures.
 */
export async function startProcesses(
  dir: string,
  { workers, flags = [] }: { workers: number; flags?: readonly string[] },
): Promise<Platform> {
  const env = { DATABASE_POOL: "10", ...(flags.length > 0 && { NODE_OPTIONS: flags.join(" ") }) };
  const cluster = await Cluster.start({
    dir: join(dir, "processes"),
    replicas: 1,
    workers,
    isDurable: true,
    ownerKey: API_KEY,
    env,
  });
  return {
    setup: "processes",
    url: cluster.gatewayUrls()[0]!,
    webhookUrl: cluster.ingressUrls()[0]!,
    ...(cluster.nats && { natsUrl: cluster.nats.url }),
    processes: () => cluster.members.map(({ name, pid }) => ({ name, pid })),
    databaseUrl: (name) => cluster.serverUrl(name),
    stop: async () => void (await cluster.stop()),
  };
}
