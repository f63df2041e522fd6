import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { isDomainError } from "@millwright/errors";
import { html, pathUid, type Reply, route, type RequestInfo, type Route } from "../rest/index.ts";
import { onBehalf, type Upstreams } from "../clients/upstreams.ts";
import { scheduleJson, slotJson } from "../routes/triggers/schedules.ts";
import { decisionRecord } from "../routes/triggers/automation-schemas.ts";
import { eventPage } from "./event-page.ts";
import type { PageLinks } from "./page-links.ts";
import { schedulePage } from "./schedule-page.ts";
import { cookieCaller, signInPage, type SignInDeps } from "./sign-in.ts";

export type PageDeps = {
  upstreams: Pick<Upstreams, "schedules" | "automations">;
  links: PageLinks;
  signIn: SignInDeps;
};

/** Returns the routes of pages that the console does not have yet. Runs link to them. */
export function pageRoutes({ upstreams: { schedules, automations }, links, signIn }: PageDeps): Route[] {
  /** Shows a page to a signed-in caller that can see it, and the sign-in page to all others. */
  const shown = async (request: RequestInfo, show: (caller: Caller) => Promise<Reply>): Promise<Reply> => {
    const caller = await cookieCaller(signIn, request.headers.cookie, request.requestId);
    if (!caller) return html(401, signInPage(request.path));
    try {
      return await show(caller);
    } catch (error) {
      if (isDomainError(error) && error.kind === "not_found")
        return html(404, signInPage(request.path, "There is no such page, or this key may not see it."));
      throw error;
    }
  };
  return [
    route({
      method: "GET",
      path: "/schedules/{scheduleId}",
      root: true,
      auth: "none",
      summary: "Page of a schedule: its settings and slots",
      params: z.object({ scheduleId: pathUid("schedule") }),
      handler: ({ params: { scheduleId }, request }) =>
        shown(request, async (caller) => {
          const options = onBehalf({ caller, request });
          const [{ schedule }, { slots }] = await Promise.all([
            schedules.getSchedule({ uid: scheduleId }, options),
            schedules.listSlots({ scheduleUid: scheduleId, pageSize: 50 }, options),
          ]);
          return html(
            200,
            schedulePage({
              schedule: scheduleJson(schedule!),
              slots: slots.map(slotJson),
              runUrl: (runUid) => links.runUrl(runUid),
            }),
          );
        }),
    }),
    route({
      method: "GET",
      path: "/factories/{uid}/events/{eventUid}",
      root: true,
      auth: "none",
      summary: "Page of an event: what automations decided about it",
      params: z.object({ uid: pathUid("factory"), eventUid: pathUid("event") }),
      handler: ({ params: { uid: factoryUid, eventUid }, request }) =>
        shown(request, async (caller) => {
          const { decisions } = await automations.listDecisions(
            { factoryUid, eventUid, pageSize: 100 },
            onBehalf({ caller, request }),
          );
          return html(
            200,
            eventPage({ eventUid, decisions: decisions.map(decisionRecord), runUrl: (runUid) => links.runUrl(runUid) }),
          );
        }),
    }),
  ];
}
