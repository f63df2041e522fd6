import type { Caller } from "@millwright/caller";
import type { TeamUid } from "@millwright/ids";
import type { PageLinks } from "../pages/page-links.ts";

/**
 * Returns a function that returns the caller of a session link: it can view what belongs to the run's owner, and
 * nothing more. The REST layer accepts it for requests that read the run of the link only.
 */
export const linkViewer =
  ({ openView }: Pick<PageLinks, "openView">) =>
  (token: string, runUid: string, requestId: string): Caller | undefined => {
    const view = openView(token, runUid);
    if (!view) return undefined;
    const isOfUser = view.ownerType === "user";
    return {
      principal: { type: "user", uid: isOfUser ? view.ownerUid : `link-${view.runUid}` },
      teams: isOfUser ? [] : [{ teamUid: view.ownerUid as TeamUid, verbs: ["run.view"] }],
      ...(isOfUser ? { personal: ["run.view"] as const } : {}),
      platformAdmin: false,
      requestId,
    };
  };
