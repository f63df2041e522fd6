import { HEADER_NAME, SIGNATURE_SCHEMES, WEBHOOK_AUTH_MODES } from "../rules.ts";
import { BOOLEAN, closed, document, enumOf, TEXT } from "./json-schema.ts";

/** webhooks/<name>.yaml */
export const WEBHOOK = document(
  "webhook.schema.json",
  "webhooks/<name>.yaml",
  "An endpoint for senders of deliveries.",
  closed(
    {
      authMode: { ...(enumOf(WEBHOOK_AUTH_MODES) as object), default: "token" },
      signatureScheme: enumOf(SIGNATURE_SCHEMES),
      secretName: { ...(TEXT as object), description: "A managed secret of the team." },
      deliveryIdHeader: { type: "string", pattern: HEADER_NAME.source },
      enabled: BOOLEAN,
    },
    {
      required: ["secretName"],
      more: {
        if: { properties: { authMode: { const: "signature" } }, required: ["authMode"] },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: { required: ["signatureScheme"] },
        else: { properties: { signatureScheme: false } },
      },
    },
  ),
);
