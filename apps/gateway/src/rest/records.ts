import { EXTENSION } from "./extension.ts";
import { z } from "zod";

/** An RFC 3339 time in UTC with milliseconds, as `date.toISOString()` returns it. */
export const timestamp = () => z.iso.datetime().meta({ format: "date-time" });

export const PageInfo = z
  .object({ has_next_page: z.boolean(), next_cursor: z.string().optional() })
  .meta({ id: "PageInfo" });

/** Returns the `page_info` of a list response. */
export const pageInfo = (nextCursor: string | undefined): z.infer<typeof PageInfo> =>
  nextCursor ? { has_next_page: true, next_cursor: nextCursor } : { has_next_page: false };

/** A user or an agent, as responses refer to them. */
export const UserProfile = z
  .object({
    type: z.enum(["user", "service_account"]).optional(),
    uid: z.string().optional(),
    display_name: z.string().optional(),
    email: z.string().optional(),
    photo_url: z.string().optional(),
  })
  .meta({ id: "UserProfile" });

/** The owner of a resource: a user or a team. */
export const Scope = z.object({ type: z.enum(["User", "Team"]), uid: z.string() }).meta({ id: "Scope" });

/**
 * The body of an error response. `reason` is a Millwright extension: a stable identifier, more specific than
 * `error_code`.
 */
export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    error: z.string(),
    detail: z.string().optional(),
    instance: z.string().optional(),
    retryable: z.boolean(),
    trace_id: z.string(),
    error_code: z.string(),
    reason: z.string(),
    diagnostics: z
      .array(z.unknown())
      .optional()
      .meta({ ...EXTENSION, description: "All problems of a definition, with path, line and column." }),
  })
  .meta({ id: "Problem" });
