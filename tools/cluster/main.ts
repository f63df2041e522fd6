// npm run cluster: runs the platform as separate processes on the loopback address, with two replicas of each service,
// two workers, nats-server (if installed) and PostgreSQL, until Ctrl-C. The directory is preserved if
// MILLWRIGHT_DATA_DIR is set. Model providers and roots of local repositories are configured as for npm start.
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { Cluster } from "@millwright/test-platform";
import { modelSettings } from "@millwright/orchestrator/compose";

const dataDirectory = process.env["MILLWRIGHT_DATA_DIR"];
const dir = dataDirectory ? resolve(dataDirectory) : undefined;
if (dir) mkdirSync(dir, { recursive: true });
const variables = [...Object.values(modelSettings).map(({ name }) => name), "MILLWRIGHT_LOCAL_REPOSITORY_ROOTS"];
const env = Object.fromEntries(variables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
const cluster = await Cluster.start({ env, dir });
const lines = [
  "Millwright is ready, in many processes.",
  `  API   ${cluster.url}/api/v1   (any gateway)`,
  `  docs  ${cluster.url}/docs`,
  `  key   ${cluster.ownerKey}`,
  `  NATS  ${cluster.nats ? "yes" : "no: nats-server is not installed; consumers poll every 2 s"}`,
  `  logs  ${cluster.dir}`,
];
process.stdout.write(`${lines.join("\n")}\n`);
await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
const failedStops = await (dir ? cluster.stop() : cluster.remove().then(() => []));
if (failedStops.length > 0) process.stderr.write(`did not stop gracefully: ${failedStops.join(", ")}\n`);
process.exit(failedStops.length > 0 ? 1 : 0);
