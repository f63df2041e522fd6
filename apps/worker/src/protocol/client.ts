import { createClient, type Client, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { worker } from "@millwright/contracts";
import { currentScope, formatTraceparent, inSpan, TRACEPARENT } from "@millwright/telemetry";
import { platformError } from "./platform-error.ts";
import type { Session } from "./session.ts";

export type WorkerClient = Client<typeof worker.WorkerService>;

/** Returns a transport for Connect over HTTP/1.1, which passes every proxy and also supports server streams. */
const transport = (url: string, interceptors: Interceptor[]) =>
  createConnectTransport({ baseUrl: `${url}/rpc`, httpVersion: "1.1", interceptors });

/** Returns a client for Register only. */
export const registrarClient = (url: string): WorkerClient => createClient(worker.WorkerService, transport(url, []));

/**
 * Returns the client for all other calls. Each call carries the session token. If the session is invalid, the client
 * registers again and repeats the call once.
 */
export const workerClient = (url: string, session: Session): WorkerClient =>
  createClient(worker.WorkerService, transport(url, [inTrace, withSession(session)]));

/** Makes calls on behalf of an execution part of its trace. */
const inTrace: Interceptor = (next) => (request) => {
  const send = () => {
    const scope = currentScope();
    if (scope) request.header.set(TRACEPARENT, formatTraceparent(scope.trace));
    return next(request);
  };
  if (request.stream) return send();
  const name = `${request.service.typeName}/${request.method.name}`;
  return inSpan(
    name,
    { kind: "client", attributes: { "rpc.system.name": "connectrpc", "rpc.method": name } },
    async (span) => {
      try {
        return await send();
      } catch (error) {
        span.fail(platformError(error).reason);
        throw error;
      }
    },
  );
};

function withSession(session: Session): Interceptor {
  return (next) => async (request) => {
    for (let isRepeated = false; ; isRepeated = true) {
      const { token } = await session.current(request.signal);
      request.header.set("authorization", `Bearer ${token}`);
      try {
        return await next(request);
      } catch (error) {
        if (platformError(error).reason !== "session_invalid") throw error;
        await session.invalidate(token);
        if (isRepeated || request.stream) throw error;
      }
    }
  };
}
