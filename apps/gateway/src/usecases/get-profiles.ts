import { isUuid } from "@millwright/ids";
import type { Tx } from "../store/identity-db.ts";
import { findProfiles, type Profile } from "../store/profile-store.ts";

export type ProfileQuery = { uids: readonly string[]; emails: readonly string[]; teamUids?: readonly string[] };

/** Profiles by uid or e-mail address, of members and agents of some teams when given; unknown ones are left out. */
export const getProfiles = ({ sql }: Pick<Tx, "sql">, { uids, emails, teamUids }: ProfileQuery): Promise<Profile[]> =>
  findProfiles(sql, { uids: uids.filter(isUuid), emails: emails.map((email) => email.toLowerCase()), teamUids });
