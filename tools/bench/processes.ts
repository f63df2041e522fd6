import { join } from "node:path";
import { Cluster } from "@millwright/test-platform";
import { API_KEY, type Platform } from "./platform.ts";

/**
 * Starts the platform with each service as one process, NATS (if installed) and a PostgreSQL with fsync. Requests are
 * sent to the gateway and the webhook ingress directly, because the load balancers of the cluster run in the measuring
 * process and would use its CPU time.
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
    natsUrl: cluster.nats?.url,
    processes: () => cluster.members.map(({ name, pid }) => ({ name, pid })),
    databaseUrl: (name) => cluster.serverUrl(name),
    stop: async () => void (await cluster.stop()),
  };
}
