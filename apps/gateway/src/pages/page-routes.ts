import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { isDomainError, notFound } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import { html, pathText, pathUid, redirect, Reply, route, type RequestInfo, type Route } from "../rest/index.ts";
import { onBehalf, type Upstreams } from "../clients/upstreams.ts";
import { isoTime } from "../routes/formats/json-values.ts";
import type { FindProfiles } from "../routes/identity/profiles.ts";
import { scheduleJson, slotJson } from "../routes/triggers/schedules.ts";
import { runRecords } from "../routes/runs/run-record.ts";
import { decisionRecord } from "../routes/triggers/automation-schemas.ts";
import { eventPage } from "./event-page.ts";
import type { PageLinks, View } from "./page-links.ts";
import { asText } from "./markup.ts";
import { pullRequestPage } from "./pull-request-page.ts";
import { runPage, type RunPageData } from "./run-page.ts";
import { schedulePage } from "./schedule-page.ts";
import { cookieCaller, signInPage, type SignInDeps } from "./sign-in.ts";

export type PageDeps = {
  upstreams: Pick<Upstreams, "runs" | "conversations" | "artifacts" | "schedules" | "automations">;
  findProfiles: FindProfiles;
  links: PageLinks;
  signIn: SignInDeps;
};

const viewQuery = z.object({ view: z.string().optional() });

/** Returns the routes of pages for people, outside `/api/v1`. Every link that the platform prints opens here. */
export function pageRoutes({
  upstreams: { runs, conversations, artifacts, schedules, automations },
  findProfiles,
  links,
  signIn,
}: PageDeps): Route[] {
  /**
   * Shows a page to a caller that can see the run, through a session link or a sign-in cookie. All others get the
   * sign-in page, whether or not the run exists.
   */
  const shown = async (
    request: RequestInfo,
    runUid: string,
    view: string | undefined,
    show: (caller: Caller) => Promise<Reply>,
  ): Promise<Reply> => {
    const permitted = view === undefined ? undefined : links.openView(view, runUid);
    const caller = permitted
      ? viewer(permitted, request.requestId)
      : await cookieCaller(signIn, request.headers.cookie, request.requestId);
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
      path: "/runs/{runId}",
      root: true,
      auth: "none",
      summary: "Page of a run",
      params: z.object({ runId: pathUid("run") }),
      query: viewQuery,
      handler: ({ params, query, request }) =>
        shown(request, params.runId, query.view, async (caller) => {
          const options = onBehalf({ caller, request });
          const [{ run }, timeline, conversation] = await Promise.all([
            runs.getRun({ runUid: params.runId }, options),
            conversations.getTimeline({ runUid: params.runId }, options),
            conversations.getConversation({ runUid: params.runId }, options),
          ]);
          const [record] = await runRecords([run!], findProfiles, links, caller);
          return html(
            200,
            runPage({
              run: record!,
              timeline: timeline.events.map((event) => ({
                event_type: event.eventType,
                occurred_at: isoTime(event.occurredAt!),
              })),
              steps: conversation.steps as unknown as RunPageData["steps"],
              runUrl: links.runUrl(params.runId),
              viewQuery: queryOf(query.view),
            }),
          );
        }),
    }),
    route({
      method: "GET",
      path: "/schedules/{scheduleId}",
      root: true,
      auth: "none",
      summary: "Page of a schedule: what it starts and what became of its slots",
      params: z.object({ scheduleId: pathUid("schedule") }),
      handler: ({ params: { scheduleId }, request }) =>
        shown(request, "", undefined, async (caller) => {
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
        shown(request, "", undefined, async (caller) => {
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
    route({
      method: "GET",
      path: "/runs/{runId}/artifacts/{artifactUid}",
      root: true,
      auth: "none",
      summary: "A run's plan as text, its files and screenshots as a download",
      params: z.object({ runId: pathUid("run"), artifactUid: pathUid("artifact") }),
      query: viewQuery,
      handler: ({ params, query, request }) =>
        shown(request, params.runId, query.view, async (caller) => {
          const { artifact, data, downloadUrl } = await artifacts.getArtifact(
            { artifactUid: params.artifactUid },
            onBehalf({ caller, request }),
          );
          if (artifact!.runUid !== params.runId) throw notFound("artifact");
          return downloadUrl
            ? redirect(downloadUrl)
            : new Reply(200, asText(data?.["content"]), { "content-type": "text/plain; charset=utf-8" });
        }),
    }),
    route({
      method: "GET",
      path: "/runs/{runId}/pull-requests/{pullRequest}",
      root: true,
      auth: "none",
      summary: "Page of a local repository's pull request; its diff with `.diff` appended",
      params: z.object({ runId: pathUid("run"), pullRequest: pathText("pull_request", /^[0-9a-f-]{36}(\.diff)?$/) }),
      query: viewQuery,
      handler: ({ params, query, request }) =>
        shown(request, params.runId, query.view, async (caller) => {
          const [uid, diff] = params.pullRequest.split(".");
          const pr = await artifacts.getPullRequest({ pullRequestUid: uid! }, onBehalf({ caller, request }));
          // a session link gives access to its own run, not to other runs of the team
          if (pr.runUid !== params.runId) throw notFound("pull_request");
          if (diff) return new Reply(200, pr.diff, { "content-type": "text/plain; charset=utf-8" });
          return html(200, pullRequestPage(pr, links.runUrl(pr.runUid) + queryOf(query.view)));
        }),
    }),
  ];
}

const queryOf = (view: string | undefined): string => (view === undefined ? "" : `?view=${encodeURIComponent(view)}`);

/**
 * Returns the caller of a session link: it can view what belongs to the run's owner, and nothing more. The page checks
 * the run itself.
 */
const viewer = (view: View, requestId: string): Caller => ({
  principal: { type: "user", uid: view.ownerType === "user" ? view.ownerUid : `link-${view.runUid}` },
  teams: view.ownerType === "team" ? [{ teamUid: view.ownerUid as TeamUid, verbs: ["run.view"] }] : [],
  ...(view.ownerType === "user" ? { personal: ["run.view"] as const } : {}),
  platformAdmin: false,
  requestId,
});
