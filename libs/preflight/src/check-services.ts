import { readFile } from "node:fs/promises";
import { probeHealth } from "@millwright/rpc";
import { findingsAt, messageOf, type Finding } from "./finding.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Services whose addresses a service's environment names. */
const SERVICES = ["GATEWAY", "ORCHESTRATOR", "FACTORIES", "SCHEDULER", "SCORING", "METRICS", "WEBHOOK_INGRESS"];

/** The variables with addresses of services. */
export const SERVICE_VARIABLES: readonly string[] = SERVICES.map((name) => `${name}_URL`);

/** Checks each address of each service that the environment names through plain gRPC health. Never rejects. */
export async function checkServices(env: Env): Promise<Finding[]> {
  const addresses = SERVICES.flatMap((name) => addressesOf(env, name));
  let ca: string | undefined;
  try {
    const { TLS_CA_FILE: file } = env;
    if (file && addresses.length > 0) ca = await readFile(file, "utf8");
  } catch (error) {
    return [findingsAt("TLS_CA_FILE")("certificates", messageOf(error), "Name a readable PEM file.")];
  }
  return Promise.all(
    addresses.map(async ({ service, url }) => {
      const finding = findingsAt(url);
      if (!URL.canParse(url))
        return finding(service, "it is not an absolute URL", "Set an address such as http://host:9090.");
      return finding(service, await probeHealth(url, ca === undefined ? {} : { ca }), REMEDY);
    }),
  );
}

const REMEDY = "Start the service, read its log, and check address, certificates and network policies.";

/** Returns each address of a service, as its configuration separates them. */
const addressesOf = (env: Env, name: string): { service: string; url: string }[] =>
  (env[`${name}_URL`] ?? "")
    .split(",")
    .map((url) => url.trim())
    .filter(Boolean)
    .map((url) => ({ service: name.toLowerCase().replaceAll("_", "-"), url }));
