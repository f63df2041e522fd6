import { createClient, type Client, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { worker } from "@millwright/contracts";
import { platformError } from "./platform-error.ts";
import type { Session } from "./session.ts";

export type WorkerClient = Client<typeof worker.WorkerService>;

/** Connect over HTTP/1.1: passes every proxy, and a server stream works on it too. */
const transport = (url: string, interceptors: Interceptor[]) => createConnectTransport({ baseUrl: `${url}/rpc`, httpVersion: "1.1", interceptors });

/** A client for Register alone. */
export const registrarClient = (url: string): WorkerClient => createClient(worker.WorkerService, transport(url, []));

/** The client for everything else: each call carries the session; one that finds it invalid registers again and is repeated once. */
export const workerClient = (url: string, session: Session): WorkerClient => createClient(worker.WorkerService, transport(url, [withSession(session)]));

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
