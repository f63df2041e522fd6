import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
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
  const fault = await http2Fault(url, ca, timeoutMs);
  if (fault !== undefined) return fault;
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

/**
 * Returns why there is no HTTP/2 server at an address, such as the HTTP/1.1 port of a service. A session of Connect with
 * such a server emits an error that no caller can handle, so this session comes before it.
 */
async function http2Fault(url: string, ca: string | undefined, timeoutMs: number): Promise<string | undefined> {
  let session: ClientHttp2Session | undefined;
  try {
    session = connect(url, ca === undefined ? {} : { ca });
    session.on("error", () => {}); // a second one may follow the one that is returned
    await once(session, "remoteSettings", { signal: AbortSignal.timeout(timeoutMs) });
    return undefined;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === "ABORT_ERR") return `timed out after ${timeoutMs} ms`;
    return code === "ERR_HTTP2_ERROR" ? `the server does not speak HTTP/2 (${message})` : message;
  } finally {
    session?.destroy();
  }
}
