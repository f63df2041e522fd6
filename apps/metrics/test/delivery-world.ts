import type { metrics } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { urlKey } from "../src/domain/url-key.ts";
import { NOW, OWNER, TEAM, type World } from "./setup.ts";

/** What tests of deliveries do to a world. */
export const deliveryWorld = (world: World) => ({
  github: (event: string, payload: unknown, receivedAt: Date = NOW): string =>
    world.webhookIngress.deliver({ teamUid: TEAM, provider: "github", event, action: "", body: payload, receivedAt }),

  gitlab: (event: string, payload: unknown, receivedAt: Date = NOW): string =>
    world.webhookIngress.deliver({ teamUid: TEAM, provider: "gitlab", event, action: "", body: payload, receivedAt }),

  /** Reads every delivery; fails if one was given up. */
  settle: async (): Promise<void> => {
    await world.settle();
    await world.service.work.drain();
    const left = await world.rows("SELECT key, state, last_error FROM stream.work_items WHERE state <> 'done'");
    if (left.length > 0) throw new Error(`Deliveries were not recorded: ${JSON.stringify(left)}`);
  },

  /** Has a run of the factory produce a pull request, as the refresher stores it. */
  produced: async (
    factoryUid: string,
    url: string,
    followUps = 0,
    repo = "named/by-run",
    number = 1,
    provider = "GITHUB",
  ): Promise<void> => {
    const runUid = newUid();
    await world.rows(
      `INSERT INTO run_facts
       VALUES ($1, $2, $3, $1, NULL, $1, '2019-05-15T15:00:00Z', NULL, 1, 'SUCCEEDED', 'API', '', '', '', '', '', 'API', 'user', '', $4)`,
      [runUid, TEAM, factoryUid, followUps],
    );
    await world.rows(
      `INSERT INTO produced_pull_requests
       VALUES ($1, $2, $3, $4, $1, $5, $9, $7, $8, 'Named by a run', $6, '2019-05-15T15:00:00Z', NULL, NULL, NULL, NULL)`,
      [runUid, urlKey(url), TEAM, factoryUid, url, "2019-05-15T15:10:00Z", repo, number, provider],
    );
  },

  /** Returns the only record of a factory, as the API has it. */
  record: async (factoryUid: string): Promise<metrics.PullRequest> => {
    const { data } = await world.metrics.listPullRequests({ factoryUid }, call(OWNER));
    if (data.length !== 1) throw new Error(`The factory has ${data.length} pull requests.`);
    return data[0]!;
  },

  /** Returns what is stored of the activities, in the order of their keys. */
  activities: () =>
    world.rows<{ kind: string; actor_login: string; is_person: boolean; is_dismissed: boolean; occurred_at: Date }>(
      "SELECT kind, actor_login, is_person, is_dismissed, occurred_at FROM pull_request_activities ORDER BY url_key, activity_key",
    ),
});
