import { spawn } from "node:child_process";
import { once } from "node:events";
import { nodeArguments, table } from "@millwright/terminal";
import { EXIT, textOption, UsageError, type Command } from "../command.ts";

const WORKER_MAIN = new URL("../../../worker/src/main.ts", import.meta.url);

/** Workers: see them, start one. */
export const workerCommands: Command[] = [
  {
    words: "worker list",
    args: [],
    summary: "List the team's connected workers.",
    run: async (cli) => {
      const { workers } = await cli.api().get<{
        workers: {
          worker_host: string;
          connection_count: number;
          last_seen_at: string;
          sandbox: string;
          sandbox_features: string[];
        }[];
      }>("/agent/connected-self-hosted-workers");
      cli.show(workers, () =>
        table(
          ["WORKER", "CONNECTIONS", "LAST SEEN", "SANDBOX", "LIMITS"],
          workers.map((worker) => [
            worker.worker_host,
            String(worker.connection_count),
            worker.last_seen_at,
            worker.sandbox,
            limitsOf(worker.sandbox_features),
          ]),
        ),
      );
    },
  },
  {
    words: "worker start",
    args: [],
    summary: "Start a worker on this machine; needs only MILLWRIGHT_URL and MILLWRIGHT_WORKER_KEY (or an offer).",
    ignoresTeam: true,
    run: async (cli, _args, values) => {
      const url = textOption(values, "url") ?? cli.env["MILLWRIGHT_URL"];
      const isNamed = ["MILLWRIGHT_WORKER_KEY", "MILLWRIGHT_WORKER_OFFER", "MILLWRIGHT_WORKER_OFFER_FILE"].some(
        (name) => cli.env[name],
      );
      if (!url || !isNamed) throw new UsageError("Set MILLWRIGHT_URL and MILLWRIGHT_WORKER_KEY.");
      const child = spawn(process.execPath, nodeArguments(WORKER_MAIN), {
        stdio: "inherit",
        env: { ...cli.env, MILLWRIGHT_URL: url },
      });
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
      const [code] = (await once(child, "exit")) as [number | null];
      return code ?? EXIT.failed; // its codes are the client's, and more
    },
  },
];

/** Returns what enforces the limits of runs: `memory cgroup-v2, disk watch`. */
const limitsOf = (features: readonly string[]): string =>
  features.flatMap((feature) => (/^[a-z-]+-limit=/.test(feature) ? [feature.replace("-limit=", " ")] : [])).join(", ");
