import { createClient, ConnectError } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { health } from "@millwright/contracts";

const { HealthCheckResponse_ServingStatus: Status, HealthCheckResponse_ServingStatusSchema: statusSchema } = health;

const TIMEOUT_MS = 3_000;

export type ProbeOptions = {
  /** CA certificates (PEM) for `https:` addresses; those of the system when absent. */
  readonly ca?: string;
  readonly timeoutMs?: number;
};

/**
 * Checks one address through plain gRPC health (`grpc.health.v1`), as a load balancer does, without a caller. Returns
 * what is wrong, or undefined if the server is serving. Never rejects.
 */
export async function probeHealth(
  url: string,
  { ca, timeoutMs = TIMEOUT_MS }: ProbeOptions = {},
): Promise<string | undefined> {
  const sessions = new Http2SessionManager(url, {}, ca === undefined ? {} : { ca });
  try {
    const client = createClient(health.Health, createGrpcTransport({ baseUrl: url, sessionManager: sessions }));
    const { status } = await client.check({}, { timeoutMs });
    return status === Status.SERVING ? undefined : `the server reports ${statusSchema.value[status]?.name ?? status}`;
  } catch (error) {
    return ConnectError.from(error).rawMessage;
  } finally {
    sessions.abort();
  }
}
