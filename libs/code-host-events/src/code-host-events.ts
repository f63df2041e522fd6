import type { CodeHostDelivery, CodeHostEvent } from "./event.ts";
import { githubEvents } from "./github.ts";
import { gitlabEvents } from "./gitlab.ts";
import { payloadOf } from "./payload.ts";

/**
 * Returns the trigger events of a delivery; none if no trigger can match it. Never throws: a payload may be anything.
 */
export function codeHostEventsOf(delivery: CodeHostDelivery): CodeHostEvent[] {
  const payload = payloadOf(delivery);
  const own = plainLogin(delivery.botLogin);
  const isPlatform = (login: string): boolean => own !== "" && plainLogin(login) === own;
  if (delivery.provider === "github")
    return githubEvents(delivery.headers["x-github-event"] ?? "", payload, isPlatform);
  return delivery.provider === "gitlab" ? gitlabEvents(payload, isPlatform) : [];
}

/** GitHub's apps act as `name[bot]` and are mentioned as `@name`. */
const plainLogin = (login: string): string =>
  login
    .replace(/^@/, "")
    .replace(/\[bot\]$/i, "")
    .toLowerCase();
