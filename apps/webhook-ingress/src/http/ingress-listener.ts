import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { asDomainError, DomainError, notFound, problemOf } from "@millwright/errors";
import { inScope } from "@millwright/telemetry";
import { receiveCodeHostDelivery, type ReceiveCodeHostDeliveryDeps } from "../usecases/receive-code-host-delivery.ts";
import {
  receiveDelivery,
  type InboundDelivery,
  type ReadBody,
  type ReceiveDeliveryDeps,
  type Reception,
} from "../usecases/receive-delivery.ts";
import type { Semaphore } from "./semaphore.ts";
import { drain, readBody, readLargeBody } from "./read-body.ts";
import { senderAddress, type TrustedProxies } from "./sender-address.ts";
import { observeRequest, type RequestObservers } from "./observe-request.ts";

export type IngressListenerDeps = ReceiveDeliveryDeps &
  ReceiveCodeHostDeliveryDeps &
  RequestObservers & {
    publicUrl: string;
    proxies: TrustedProxies;
    /** Reading a body is given up after this time. */
    bodyTimeoutMs: number;
    /** How long the rest of a refused body is read after the response. */
    drainMs: number;
    /** Limits the large bodies of code hosts in memory. */
    largeBodies: Semaphore;
  };

/** `path`: the part that may be logged and returned; the rest may be a credential. */
type Target = {
  readonly kind: "webhook" | "code_host";
  readonly route: string;
  readonly path: string;
  readonly uid: string;
  readonly token: string | undefined;
};

/**
 * Serves untrusted senders: `POST /webhooks/w/<uid>[/<token>]` for webhooks of factories, `POST /webhooks/c/<uid>` for
 * code hosts. Bodies are raw bytes. Handles everything below `/webhooks/`.
 */
export function ingressListener(deps: IngressListenerDeps): RequestListener {
  return (req, res) => {
    const target = targetOf(req.url ?? "");
    let outcome = "failed";
    const { requestId, scope } = observeRequest(deps, req, res, target?.route ?? "/webhooks/", () => outcome);
    const respond = async (): Promise<void> => {
      try {
        const reception = await receive(deps, req, res, target, requestId);
        outcome = reception.outcome;
        if (reception.outcome !== "accepted" && reception.outcome !== "duplicate")
          throw REFUSALS[reception.outcome](reception);
        await send(
          deps,
          req,
          res,
          202,
          { "content-type": "application/json" },
          JSON.stringify({ delivery_id: reception.deliveryId }),
        );
      } catch (thrown) {
        const error = asDomainError(thrown);
        if (error.kind === "wrong_method") res.setHeader("allow", "POST");
        const problem = problemOf(error, {
          publicUrl: deps.publicUrl,
          path: target?.path ?? "/webhooks/",
          traceId: scope.trace.traceId,
          isUnrepeatable: false,
        });
        if (problem.status >= 500)
          deps.log.error({ operation: "POST /webhooks", reason: error.reason, error }, "request failed");
        await send(deps, req, res, problem.status, problem.headers, JSON.stringify(problem.body));
      }
    };
    void inScope(scope, respond);
  };
}

function receive(
  deps: IngressListenerDeps,
  req: IncomingMessage,
  res: ServerResponse,
  target: Target | undefined,
  requestId: string,
): Promise<Reception> {
  if (!target) throw notFound("webhook");
  if (req.method !== "POST")
    throw new DomainError({
      kind: "wrong_method",
      reason: "method_not_allowed",
      message: `The method must be POST (got ${req.method}).`,
    });
  let read: Promise<ReadBody> | undefined;
  const header: InboundDelivery["header"] = (name) => {
    const value = req.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  const inbound: Omit<InboundDelivery, "webhookUid" | "token"> = {
    requestId,
    header,
    address: senderAddress(req.socket.remoteAddress, header("x-forwarded-for"), deps.proxies),
    body: (bytesMax) =>
      (read ??=
        target.kind === "webhook"
          ? readBody(req, bytesMax, deps.bodyTimeoutMs)
          : readLargeBody(req, res, deps.largeBodies, bytesMax, deps.bodyTimeoutMs)),
  };
  if (target.kind === "code_host") return receiveCodeHostDelivery(deps, { ...inbound, codeHostUid: target.uid });
  return receiveDelivery(deps, { ...inbound, webhookUid: target.uid, token: target.token });
}

/** Status and text of each refusal; the labels of the log are those of the use case. */
const REFUSALS: Readonly<
  Record<Exclude<Reception["outcome"], "accepted" | "duplicate">, (reception: Reception) => DomainError>
> = {
  unknown: () => notFound("webhook"),
  rejected_auth: () =>
    new DomainError({
      kind: "unauthenticated",
      reason: "webhook_authentication_failed",
      message: "The credential of this delivery is missing or wrong. Check the secret and the authentication mode.",
    }),
  limited: (reception) =>
    new DomainError({
      kind: "rate_limited",
      reason: "too_many_deliveries",
      message: "Too many deliveries or failed attempts; retry after the time in the Retry-After header.",
      retryAfterSeconds: "retryAfterSeconds" in reception ? reception.retryAfterSeconds : undefined,
    }),
  rejected_too_large: () =>
    new DomainError({
      kind: "too_large",
      reason: "body_too_large",
      message: "The body must have at most 262144 bytes (26214400 bytes from a code host).",
    }),
  rejected_invalid_json: () =>
    new DomainError({ kind: "invalid_argument", reason: "malformed_json", message: "The body must be valid JSON." }),
  body_incomplete: () =>
    new DomainError({
      kind: "invalid_argument",
      reason: "body_incomplete",
      message: "Timed out or disconnected while reading the request body. Send it again.",
    }),
};

/** Parses `/webhooks/w/<uid>[/<token>]` or `/webhooks/c/<uid>`; a trailing slash and a query are ignored. */
function targetOf(url: string): Target | undefined {
  const [, kind, uid = "", token, ...rest] = url.split("?")[0]!.replace(/\/$/, "").split("/").slice(1);
  if (uid === "" || rest.length > 0) return undefined;
  const target = { uid: uid.toLowerCase(), path: `/webhooks/${kind}/${uid.toLowerCase()}` };
  if (kind === "c" && token === undefined)
    return { ...target, kind: "code_host", route: "/webhooks/c/{code_host_uid}", token };
  if (kind !== "w") return undefined;
  const route = token === undefined ? "/webhooks/w/{webhook_uid}" : "/webhooks/w/{webhook_uid}/{token}";
  return { ...target, kind: "webhook", route, token: token === undefined ? undefined : decoded(token) };
}

/** Returns "" for a segment that cannot be decoded, which is a wrong token. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

async function send(
  { drainMs }: Pick<IngressListenerDeps, "drainMs">,
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<void> {
  if (res.destroyed) return;
  // The rest of an unread body must not be parsed as the next request.
  if (!req.complete) res.setHeader("connection", "close");
  res.writeHead(status, {
    ...headers,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  res.write(body);
  // The response is complete. Closing now would reset the connection of a sender that is still writing, which may lose the response.
  if (!req.complete) await drain(req, drainMs);
  res.end();
}
