import type { RequestListener } from "node:http";
import type { Lifecycle } from "@millwright/lifecycle";
import type { PublicKey } from "@millwright/rpc";
import type { Metrics } from "@millwright/telemetry";

export type Operations = {
  readonly lifecycle: Lifecycle;
  /** Served at `/metrics`; absent: 404. */
  readonly metrics?: Metrics;
  /** Served at `/jwks.json`; absent: 404. */
  readonly keys?: () => readonly PublicKey[];
  /** Handles every other path; absent: 404. */
  readonly others?: RequestListener;
};

/** Serves health, readiness, metrics and public keys of a process, over plain HTTP/1.1. */
export function handleOperations({ others = notFound, ...operations }: Operations): RequestListener {
  return (request, response) => {
    const respond = RESPONSES[(request.url ?? "").split("?")[0] ?? ""];
    const isServed =
      respond &&
      !(respond === RESPONSES["/jwks.json"] && !operations.keys) &&
      !(respond === RESPONSES["/metrics"] && !operations.metrics);
    if (!isServed) return others(request, response);
    return void respond(operations).then(({ status, type, body }) =>
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body),
    );
  };
}

type OperationsResponse = { status: number; type: string; body: string };

const RESPONSES: Readonly<Record<string, (operations: Operations) => Promise<OperationsResponse>>> = {
  "/healthz": async () => json(200, { status: "ok" }),
  "/readyz": async ({ lifecycle }) => {
    const { ready, checks } = await lifecycle.ready();
    return json(ready ? 200 : 503, { ready, checks });
  },
  "/metrics": async ({ metrics }) => ({ status: 200, type: metrics!.contentType, body: await metrics!.text() }),
  "/jwks.json": async ({ keys }) => json(200, { keys: keys?.() ?? [] }),
};

const json = (status: number, body: object): OperationsResponse => ({
  status,
  type: "application/json",
  body: JSON.stringify(body),
});

const notFound: RequestListener = (_request, response) => void response.writeHead(404).end();
