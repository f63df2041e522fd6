import type { RestResponse } from "../context/platform-client.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * Returns the object in the response of a public API call. Throws `ToolFailure` with the message of the problem body.
 */
export function objectOf({ status, body }: RestResponse, what: string): Record<string, unknown> {
  const fields =
    typeof body === "object" && body !== null && !Array.isArray(body) ? (body as Record<string, unknown>) : {};
  if (status >= 200 && status < 300) return fields;
  const message = [fields["detail"], fields["title"], fields["error"]].find(
    (value) => typeof value === "string" && value !== "",
  );
  throw new ToolFailure(
    `${what}: ${typeof message === "string" ? message : "the platform refused it"} (status ${status})`,
  );
}
