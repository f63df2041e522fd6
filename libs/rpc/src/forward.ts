import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext, ServiceImpl, Transport } from "@connectrpc/connect";
import { REQUEST_ID_HEADER } from "./caller-token.ts";
import { clientFor } from "./client.ts";
import { requestContextOf } from "./context.ts";

type Call = (request: unknown, options: object) => unknown;

/**
 * Implements a service by forwarding every call, including server streams, to an upstream service. The call's
 * credential is forwarded unchanged: the upstream service authorizes. Deadlines and cancellations are forwarded too.
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
  headers.set(REQUEST_ID_HEADER, requestContextOf(context).requestId);
  return headers;
}
