import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { z } from "zod";
import { Problem } from "./records.ts";

const problem = (description: string) => ({
  description,
  content: { "application/problem+json": { schema: Problem } },
});

const deliver = (path: string, summary: string, params: z.ZodObject): RouteConfig => ({
  method: "post",
  path,
  operationId: path.endsWith("{token}") ? "deliverToWebhookWithUrlToken" : "deliverToWebhook",
  summary,
  description:
    "For senders, at the webhook's `ingress_url`, whose origin can differ from this document's. The body is any JSON value of at most 262144 bytes, with any Content-Type.",
  tags: ["Webhooks"],
  security: [],
  request: {
    params,
    headers: z.object({
      "X-Service-Delivery-Id": z.string().optional().meta({
        description: "The sender's id of the event. A delivery with a repeated id is a duplicate and starts no run.",
      }),
    }),
    body: {
      required: true,
      content: { "application/json": { schema: z.unknown().meta({ description: "Any JSON value" }) } },
    },
  },
  responses: {
    202: {
      description: "Accepted for evaluation, or a duplicate",
      content: { "application/json": { schema: z.object({ delivery_id: z.string() }) } },
    },
    400: problem("The body is not JSON, or the request ended before the body was complete"),
    401: problem("The credential is missing or wrong"),
    404: problem("No such webhook, or it is disabled"),
    413: problem("The body is too large"),
    429: problem("Too many deliveries, or too many failed attempts; see Retry-After"),
  },
});

const webhook = { webhook_uid: z.string() };

/**
 * The endpoints to which senders deliver webhooks, for the OpenAPI document. The webhook ingress serves these paths,
 * not the gateway.
 */
export const ingressOperations: readonly RouteConfig[] = [
  deliver(
    "/webhooks/w/{webhook_uid}",
    "Deliver to a webhook with bearer-token or signature authentication",
    z.object(webhook),
  ),
  deliver(
    "/webhooks/w/{webhook_uid}/{token}",
    "Deliver to a webhook with its secret in the URL",
    z.object({ ...webhook, token: z.string() }),
  ),
];
