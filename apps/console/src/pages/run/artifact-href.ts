import { viewToken } from "../../api/client.ts";

/** Returns the address of a file or screenshot on this server. It opens with a session. */
export const artifactContentUrl = (artifactUid: string): string => `/api/v1/agent/artifacts/${artifactUid}/content`;

/** Returns the address of an artifact's content. It opens with a session and with the session link of its run. */
export function artifactHref(runId: string, artifactUid: string): string {
  const view = viewToken();
  return `/runs/${runId}/artifacts/${artifactUid}${view === undefined ? "" : `?view=${encodeURIComponent(view)}`}`;
}
