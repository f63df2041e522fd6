import { VERBS } from "@millwright/caller";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import type { TeamUid, UserUid } from "@millwright/ids";

/**
 * Returns a user with all verbs in one new team and on their own resources; override the fields that the test is about.
 */
export function aCaller(overrides: Partial<Caller> = {}): Caller {
  return {
    principal: { type: "user", uid: newUid<UserUid>() },
    teams: [{ teamUid: newUid<TeamUid>(), verbs: VERBS }],
    personal: VERBS,
    platformAdmin: false,
    requestId: newUid(),
    ...overrides,
  };
}
