import { readFile } from "node:fs/promises";
import { probeHealth } from "@millwright/rpc";
import { findingsAt, messageOf, type Finding } from "./finding.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Services whose addresses a service's environment names. */
const SERVICES = ["GATEWAY", "ORCHESTRATOR", "FACTORIES", "SCHEDULER", "SCORING", "METRICS", "WEBHOOK_INGRESS"];

/** The variables with addresses of services. */
export const SERVICE_VARIABLES: readonly string[] = SERVICES.map((name) => `${name}_URL`);

const TIMEOUT_MS = 5_000;

/**
 * Checks what the environment names of each service: its RPC addresses (`_URL`) through plain gRPC health, and the
 * addresses of its public keys (`_JWKS_URL`). A service's environment has the former of the services that it calls, and
 * the latter also of those that only call it. Never rejects.
 */
export async function checkServices(env: Env): Promise<Finding[]> {
  const found = await Promise.all([checkHealth(env), checkKeys(env)]);
  return found.flat();
}

async function checkHealth(env: Env): Promise<Finding[]> {
  const addresses = addressesIn(env, "_URL");
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
      if (!URL.canParse(url)) return finding(service, NO_URL, "Set an address such as http://host:9090.");
      return finding(service, await probeHealth(url, ca === undefined ? {} : { ca }), REMEDY);
    }),
  );
}

const checkKeys = (env: Env): Promise<Finding[]> =>
  Promise.all(
    addressesIn(env, "_JWKS_URL").map(async ({ service, url }) => {
      const finding = findingsAt(url);
      if (!URL.canParse(url))
        return finding(`${service} keys`, NO_URL, "Set an address such as http://host:9091/jwks.json.");
      return finding(`${service} keys`, await problemOfKeys(url), REMEDY);
    }),
  );

/** Returns what is wrong with a document of public keys, undefined if it has keys. */
async function problemOfKeys(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) return `the server returns status ${response.status}`;
    const { keys } = (await response.json()) as { readonly keys?: unknown };
    return Array.isArray(keys) && keys.length > 0 ? undefined : "the document has no keys";
  } catch (error) {
    return messageOf((error as { cause?: unknown }).cause ?? error);
  }
}

const NO_URL = "it is not an absolute URL";
const REMEDY = "Start the service, read its log, and check address, certificates and network policies.";

/** Returns the addresses of services in the variables with an ending, as their configuration separates them. */
const addressesIn = (env: Env, ending: string): { service: string; url: string }[] =>
  SERVICES.flatMap((name) =>
    (env[`${name}${ending}`] ?? "")
      .split(",")
      .map((url) => url.trim())
      .filter(Boolean)
      .map((url) => ({ service: name.toLowerCase().replaceAll("_", "-"), url })),
  );
