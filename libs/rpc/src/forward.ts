import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl, Transport } from "@connectrpc/connect";
import { clientFor } from "./client.ts";
import { requestContextOf } from "./context.ts";

type Call = (request: unknown, options: object) => unknown;

/**
 * Serves a service by asking an upstream service for every call, streams from the server included. The credential of the call goes
 * along as it came: the upstream service decides. Deadlines and clients that go away are passed on.
 */
export function forwardService(router: ConnectRouter, service: DescService, transport: Transport): void {
  const client = clientFor(service, transport) as unknown as Readonly<Record<string, Call>>;
  const forward = (localName: string) => (request: unknown, context: HandlerContext) =>
    client[localName]?.(request, {
      headers: headersOf(context),
      signal: context.signal,
      timeoutMs: context.timeoutMs(),
    });
  const methods = service.methods.filter(
    ({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming",
  );
  router.service(
    service,
    Object.fromEntries(methods.map(({ localName }) => [localName, forward(localName)])) as unknown as Partial<
      ServiceImpl<DescService>
    >,
  );
}

function headersOf(context: HandlerContext): Headers {
  const headers = new Headers();
  const credential = context.requestHeader.get("authorization");
  if (credential !== null) headers.set("authorization", credential);
  headers.set("x-request-id", requestContextOf(context).requestId);
  return headers;
}
