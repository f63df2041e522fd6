import type { z } from "zod";
import type { UserProfile } from "../../rest/index.ts";

export type Profile = z.infer<typeof UserProfile>;

/** Returns the profiles of users and agents by uid. Unknown uids are omitted. */
export type FindProfiles = (uids: readonly string[]) => Promise<ReadonlyMap<string, Profile>>;
