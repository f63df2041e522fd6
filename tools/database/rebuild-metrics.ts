// npm run rebuild:metrics: makes the read models of the metrics service again from its facts, while the platform serves, and has it read all facts again.
// With DATABASE_URL: the database of the metrics service; otherwise that on the platform's server.
import { systemClock } from "@millwright/clock";
import { rebuildReadModels } from "../../apps/metrics/src/usecases/rebuild-read-models.ts";
import { withServer } from "./servers.ts";

async function rebuild(url: string): Promise<void> {
  for (const { factoryUid, changed } of await rebuildReadModels(url, systemClock)) {
    process.stdout.write(
      `factory ${factoryUid}: ${changed.length === 0 ? "equal" : `repaired ${changed.join(", ")}`}\n`,
    );
  }
}

try {
  const { DATABASE_URL: url } = process.env;
  await (url
    ? rebuild(url)
    : withServer(process.env, (server) => rebuild(new URL("/millwright_metrics", server).href)));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
