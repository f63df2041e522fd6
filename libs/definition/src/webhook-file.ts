import { omitUndefined } from "@millwright/json";
import type { WebhookPart } from "./definition.ts";
import type { Problems } from "./diagnostics.ts";
import { Fields } from "./fields.ts";
import { HEADER_NAME, isCredentialHeader, SIGNATURE_SCHEMES, WEBHOOK_AUTH_MODES } from "./rules.ts";
import { parseYaml } from "./yaml-document.ts";

/** Reads webhooks/<name>.yaml; undefined if it is not valid YAML. */
export function readWebhookFile(name: string, path: string, text: string, problems: Problems): WebhookPart | undefined {
  const parsed = parseYaml(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, [
    "authMode",
    "signatureScheme",
    "secretName",
    "deliveryIdHeader",
    "enabled",
  ]);
  const mode = fields.oneOf("authMode", WEBHOOK_AUTH_MODES) ?? "token";
  const scheme = fields.oneOf("signatureScheme", SIGNATURE_SCHEMES);
  if (mode === "signature") fields.require("signatureScheme");
  else if (fields.has("signatureScheme"))
    fields.error(
      fields.keyAt("signatureScheme"),
      "FF_CONFLICTING_FIELDS",
      "signatureScheme belongs to the authMode signature only.",
    );
  fields.require("secretName");
  const secret = fields.text("secretName");
  const header = fields.text("deliveryIdHeader", {
    pattern: HEADER_NAME,
    hint: "be the name of a header, of at most 100 characters",
  });
  if (header !== undefined && isCredentialHeader(header))
    fields.error(
      fields.valueAt("deliveryIdHeader"),
      "FF_INVALID_VALUE",
      "deliveryIdHeader must not name a header of credentials.",
    );
  const enabled = fields.boolean("enabled") ?? true;
  return {
    name,
    auth_mode: mode,
    ...omitUndefined({ signature_scheme: scheme }),
    secret_name: secret ?? "",
    ...omitUndefined({ delivery_id_header: header }),
    enabled,
  };
}
