import type { IncomingMessage, ServerResponse } from "node:http";
import { containsCredential } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { openScope, parseTraceparent, TRACEPARENT, type Tracer } from "@millwright/telemetry";

const REQUEST_ID = /^[\w.-]{1,64}$/;

/**
 * Starts a request of a public port: sets its id (the client's if well-formed) on the response, continues the client's
 * trace, and opens its span.
 */
export function openRequest(
  tracer: Tracer | undefined,
  req: IncomingMessage,
  res: ServerResponse,
): { readonly requestId: string } & ReturnType<typeof openScope> {
  const given = req.headers["x-request-id"];
  const requestId =
    typeof given === "string" && REQUEST_ID.test(given) && !containsCredential(given) ? given : newUid();
  const traceparent = req.headers[TRACEPARENT];
  res.setHeader("x-request-id", requestId);
  return {
    requestId,
    ...openScope("HTTP", {
      tracer,
      kind: "server",
      parent: parseTraceparent(typeof traceparent === "string" ? traceparent : undefined),
      fields: { requestId },
    }),
  };
}
