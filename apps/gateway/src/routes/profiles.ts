import type { z } from "zod";
import type { UserProfile } from "../rest/index.ts";

export type Profile = z.infer<typeof UserProfile>;

/** Profiles of users and agents by uid; unknown uids are left out. */
export type FindProfiles = (uids: readonly string[]) => Promise<ReadonlyMap<string, Profile>>;
