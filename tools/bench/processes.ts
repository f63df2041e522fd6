import { join } from "node:path";
import { Cluster, processesWith } from "@millwright/test-platform";
import { preparePostgres } from "./cost.ts";
import { API_KEY, type Platform } from "./platform.ts";

/**
 * Starts the platform as the images do: each service as one process of compiled code, NATS (if installed) and a PostgreSQL with fsync. Requests are
 * sent to the gateway and the webhook ingress directly, because the load balancers of the cluster run in the measuring
 * process and would use its CPU time.
 */
export async function startProcesses(
  dir: string,
  { workers, flags = [] }: { workers: number; flags?: readonly string[] },
): Promise<Platform> {
  const env = { DATABASE_POOL: "10", ...(flags.length > 0 && { NODE_OPTIONS: flags.join(" ") }) };
  const home = join(dir, "processes");
  await preparePostgres(join(home, "data", "postgres"));
  const cluster = await Cluster.start({
    dir: home,
    replicas: 1,
    workers,
    isDurable: true,
    isCompiled: true,
    ownerKey: API_KEY,
    env,
  });
  const nats = processesWith(home).find(({ command }) => command.startsWith("nats-server"));
  return {
    setup: "processes",
    url: cluster.gatewayUrls()[0]!,
    webhookUrl: cluster.ingressUrls()[0]!,
    ...(cluster.nats && nats ? { nats: { url: cluster.nats.url, pid: nats.pid } } : {}),
    processes: () => cluster.members.map(({ name, pid }) => ({ name, pid })),
    databaseUrl: (name) => cluster.serverUrl(name),
    stop: async () => void (await cluster.stop()),
  };
}
