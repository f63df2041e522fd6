import { setTimeout as pause } from "node:timers/promises";
import type { ConnectRouter } from "@connectrpc/connect";
import { health } from "@millwright/contracts";
import { notFound } from "@millwright/errors";

const { HealthCheckResponse_ServingStatus: Status } = health;

/** How often a watcher's status is polled. */
const LOOK_MS = 1_000;

/** Implements gRPC's health protocol: every service of this server is as ready as the process. Needs no caller. */
export function healthRoutes(router: ConnectRouter, isReady: () => Promise<boolean>): void {
  const served = new Set(router.handlers.map(({ service }) => service.typeName));
  const statusOf = async () => ((await isReady()) ? Status.SERVING : Status.NOT_SERVING);
  const isKnown = (service: string) => service === "" || served.has(service);
  router.service(health.Health, {
    async check({ service }) {
      if (!isKnown(service)) throw notFound("service");
      return { status: await statusOf() };
    },
    async *watch({ service }, { signal }) {
      for (let last: number | undefined; !signal.aborted; await pause(LOOK_MS, undefined, { signal }).catch(() => {})) {
        const status = isKnown(service) ? await statusOf() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
      }
    },
  });
}
