import { readFile } from "node:fs/promises";
import { table } from "@millwright/terminal";
import { EXIT, UsageError, type Cli, type Command } from "../command.ts";

/** Services whose addresses a service's environment names. */
const SERVICES = ["GATEWAY", "ORCHESTRATOR", "FACTORIES", "SCHEDULER", "SCORING", "METRICS", "WEBHOOK_INGRESS"];

type Check = { readonly check: string; readonly address: string; readonly problem: string | null };

/** Checks of an installation from where it runs. */
export const doctorCommand: Command = {
  words: "doctor",
  args: [],
  ignoresTeam: true,
  summary:
    "Check every service that the environment names (GATEWAY_URL, …) through gRPC health; exit code 1 if one does not serve.",
  run: async (cli) => {
    const checks = await Promise.all(addressesIn(cli.env).map((address) => checked(cli, address)));
    if (checks.length === 0)
      throw new UsageError(`Set ${SERVICES.map((name) => `${name}_URL`).join(", ")}, or some of them.`);
    cli.show(checks, () =>
      table(
        ["SERVICE", "ADDRESS", "RESULT"],
        checks.map(({ check, address, problem }) => [check, address, problem ?? "serving"]),
      ),
    );
    return checks.some(({ problem }) => problem !== null) ? EXIT.failed : EXIT.done;
  },
};

type Address = { readonly service: string; readonly url: string };

/** Returns each address of each service, as its configuration separates them. */
const addressesIn = (env: NodeJS.ProcessEnv): Address[] =>
  SERVICES.flatMap((name) =>
    (env[`${name}_URL`] ?? "")
      .split(",")
      .map((url) => url.trim())
      .filter(Boolean)
      .map((url) => ({ service: name.toLowerCase().replaceAll("_", "-"), url })),
  );

async function checked({ env }: Cli, { service, url }: Address): Promise<Check> {
  if (!URL.canParse(url)) return { check: service, address: url, problem: "it is not an absolute URL" };
  const { probeHealth } = await import("@millwright/rpc"); // only this command needs it
  const { TLS_CA_FILE: file } = env;
  const problem = await probeHealth(url, file ? { ca: await readFile(file, "utf8") } : {});
  return { check: service, address: url, problem: problem ?? null };
}
