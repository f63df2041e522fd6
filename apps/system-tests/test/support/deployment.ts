import { describe } from "@jest/globals";
import { timeoutFactor } from "@millwright/testing";
import {
  Cluster,
  ClusterUnderFire,
  Platform,
  SERVICES,
  type Deployment,
  type DeploymentOptions,
} from "../../src/index.ts";

/** What the suites run against; `MILLWRIGHT_SYSTEM` names one of these. */
const DEPLOYMENTS = {
  standalone: (options) => Platform.start(options),
  cluster: (options) => Cluster.start(options),
  processes: (options) => Cluster.start({ replicas: 1, workers: 1, ...options }),
  "processes-under-fire": (options) => ClusterUnderFire.start("processes", brisk(options)),
  "services-under-fire": (options) => ClusterUnderFire.start("services", brisk(options)),
  "nats-under-fire": (options) => ClusterUnderFire.start("nats", options),
} satisfies Record<string, (options: DeploymentOptions) => Promise<Deployment>>;

export type DeploymentName = keyof typeof DEPLOYMENTS;

const nameOf = (): string => process.env["MILLWRIGHT_SYSTEM"] ?? "standalone";

/** For what one process for everything has, such as a terminal to print to. */
export const isStandalone = (): boolean => nameOf() === "standalone";

/** Declares a suite on each of these deployments, or on the one that `MILLWRIGHT_SYSTEM` names. */
export function onDeployments(names: readonly DeploymentName[], suite: (name: string) => void): void {
  if (process.env["MILLWRIGHT_SYSTEM"] !== undefined) return suite(nameOf());
  for (const name of names) {
    describe(`${name}:`, () => {
      suite(name);
    });
  }
}

/** A lost worker is missed within seconds; one that shares two cores with processes that start is not given up. */
const brisk = (options: DeploymentOptions): DeploymentOptions => ({
  ...options,
  timeScale: Math.min(options.timeScale ?? 5, 5),
});

let started: Deployment | undefined;

/** The platform of this test file. */
export async function startPlatform(options: DeploymentOptions = {}, name = nameOf()): Promise<Deployment> {
  if (!Object.hasOwn(DEPLOYMENTS, name))
    throw new Error(`MILLWRIGHT_SYSTEM is one of ${Object.keys(DEPLOYMENTS).join(", ")}.`);
  return (started = await DEPLOYMENTS[name as DeploymentName](options));
}

/** The platform under fire that this test file has started. */
export function burning(): ClusterUnderFire {
  if (!(started instanceof ClusterUnderFire)) throw new Error("No platform under fire has been started.");
  return started;
}

/** The addresses of its processes where metrics are told. */
export function metricsUrls(platform: Deployment): readonly string[] {
  if (platform instanceof Platform) return [platform.url];
  const cluster = platform instanceof ClusterUnderFire ? platform.cluster : (platform as Cluster);
  return SERVICES.flatMap((service) => cluster.opsUrls(service));
}

/** For what may take as long as a whole test: bounds hanging, not speed. */
export const SLOW_MS = 300_000 * timeoutFactor();
