import { EXTENSION } from "./extension.ts";
import { z } from "zod";

/** RFC 3339, UTC, milliseconds; handlers answer `date.toISOString()`. */
export const timestamp = () => z.iso.datetime().meta({ format: "date-time" });

/** fields-runs §1.2. */
export const PageInfo = z
  .object({ has_next_page: z.boolean(), next_cursor: z.string().optional() })
  .meta({ id: "PageInfo" });

/** What every paged list carries beside its rows. */
export const pageInfo = (nextCursor: string | undefined): z.infer<typeof PageInfo> =>
  nextCursor ? { has_next_page: true, next_cursor: nextCursor } : { has_next_page: false };

/** fields-runs §3.3. */
export const UserProfile = z
  .object({
    type: z.enum(["user", "service_account"]).optional(),
    uid: z.string().optional(),
    display_name: z.string().optional(),
    email: z.string().optional(),
    photo_url: z.string().optional(),
  })
  .meta({ id: "UserProfile" });

/** fields-runs §3.4. */
export const Scope = z.object({ type: z.enum(["User", "Team"]), uid: z.string() }).meta({ id: "Scope" });

/** fields-runs §2.1. `reason` is ours: finer than the code, stable. */
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
      .meta({ ...EXTENSION, description: "Everything that is wrong with a definition, by path, line and column." }),
  })
  .meta({ id: "Problem" });
