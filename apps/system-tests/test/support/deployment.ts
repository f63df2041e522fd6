import { describe } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import {
  ChaosCluster,
  Cluster,
  type Deployment,
  type DeploymentOptions,
  Platform,
  SERVICES,
} from "@millwright/test-platform";

/** Deployments that the suites can run against; `MILLWRIGHT_SYSTEM` selects one. */
const DEPLOYMENTS = {
  standalone: (options) => Platform.start(options),
  cluster: (options) => Cluster.start(options),
  processes: (options) => Cluster.start({ replicas: 1, workers: 1, ...options }),
  "processes-chaos": (options) => ChaosCluster.start("processes", brisk(options)),
  "services-chaos": (options) => ChaosCluster.start("services", brisk(options)),
  "nats-chaos": (options) => ChaosCluster.start("nats", options),
  existing: async () => existingPlatform(false),
  "existing-chaos": async () => existingPlatform(true),
} satisfies Record<string, (options: DeploymentOptions) => Promise<Deployment>>;

export type DeploymentName = keyof typeof DEPLOYMENTS;

const nameOf = (): string => process.env["MILLWRIGHT_SYSTEM"] ?? "standalone";

/**
 * Returns whether the platform is a single process. Some tests need a feature that only a single process has, such as a
 * terminal to print to.
 */
export const isStandalone = (): boolean => nameOf() === "standalone";

/** Returns whether workers are killed during the suite. A run that loses its worker may repeat its last steps. */
export const losesWorkers = (): boolean => ["processes-chaos", "existing-chaos"].includes(nameOf());

/** Declares a suite for each of these deployments, or only for the one selected by `MILLWRIGHT_SYSTEM`. */
export function onDeployments(names: readonly DeploymentName[], suite: (name: string) => void): void {
  if (process.env["MILLWRIGHT_SYSTEM"] !== undefined) return suite(nameOf());
  for (const name of names) {
    describe(`${name}:`, () => {
      suite(name);
    });
  }
}

/**
 * Limits the time scale to 5: leases of lost workers expire within seconds, but a worker that shares two cores with
 * starting processes keeps its lease.
 */
const brisk = (options: DeploymentOptions): DeploymentOptions => ({
  ...options,
  timeScale: Math.min(options.timeScale ?? 5, 5),
});

/**
 * Returns the platform that runs at `MILLWRIGHT_SYSTEM_URL`, whose owner's key is `OWNER_KEY`. Tests that start, stop or
 * kill the platform, or need its files, cannot run on it.
 */
function existingPlatform(hasChaos: boolean): Deployment {
  const url = process.env["MILLWRIGHT_SYSTEM_URL"];
  if (!url) throw new Error("MILLWRIGHT_SYSTEM_URL is not set: it is the URL of the platform to test.");
  const refuse = (): never => {
    throw new Error("This test cannot run on an existing platform.");
  };
  return {
    url,
    hasChaos,
    timeScale: 1,
    get dir() {
      return refuse();
    },
    path: refuse,
    output: () => "",
    killEverything: refuse,
    start: refuse,
    stop: refuse,
    remove: async () => {},
  };
}

/** The platform of this test file. A test may start another one beside it. */
let first: Deployment | undefined;

/** Starts a platform. */
export async function startPlatform(options: DeploymentOptions = {}, name = nameOf()): Promise<Deployment> {
  if (!Object.hasOwn(DEPLOYMENTS, name))
    throw new Error(`MILLWRIGHT_SYSTEM is one of ${Object.keys(DEPLOYMENTS).join(", ")}.`);
  const started = await DEPLOYMENTS[name as DeploymentName](options);
  first ??= started;
  return started;
}

/** Returns the platform of this test file, whose processes are killed repeatedly. Throws if there is none. */
export function chaosCluster(): ChaosCluster {
  if (!(first instanceof ChaosCluster)) throw new Error("No platform with chaos has been started.");
  return first;
}

/** Returns the addresses that serve metrics. */
export function metricsUrls(platform: Deployment): readonly string[] {
  if (platform instanceof Platform) return [platform.url];
  const cluster = platform instanceof ChaosCluster ? platform.cluster : (platform as Cluster);
  return SERVICES.flatMap((service) => cluster.opsUrls(service));
}

/** Timeout of tests that take long. It detects tests that hang; it does not measure speed. */
export const SLOW_MS = 300_000 * timeoutFactor();
