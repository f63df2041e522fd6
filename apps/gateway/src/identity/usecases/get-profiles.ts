import { isUuid } from "@millwright/ids";
import type { Tx } from "../store/identity-db.ts";
import { findProfiles, type Profile } from "../store/profile-store.ts";

export type ProfileQuery = { uids: readonly string[]; emails: readonly string[]; teamUids?: readonly string[] };

/**
 * Returns profiles by uid or e-mail address, without unknown ones. If `teamUids` is given, only members and agents of
 * these teams are returned.
 */
export const getProfiles = ({ sql }: Pick<Tx, "sql">, { uids, emails, teamUids }: ProfileQuery): Promise<Profile[]> =>
  findProfiles(sql, { uids: uids.filter(isUuid), emails: emails.map((email) => email.toLowerCase()), teamUids });
