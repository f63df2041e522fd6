import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import { isMember, isPlatformAdmin } from "@millwright/caller";
import type { metrics } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { toDollars, toMicros } from "@millwright/money";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  instant,
  pageInfo,
  PageInfo,
  pageLimit,
  pathUid,
  route,
  timestamp,
  type Route,
} from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { Actor, actorRecord, dollarAmount } from "./prices.ts";

const CreditGrant = z
  .object({
    uid: z.string(),
    amount_usd: z.number(),
    note: z.string(),
    granted_at: timestamp(),
    expires_at: timestamp().nullable().meta({ description: "Exclusive; null: never." }),
    created_by: Actor,
  })
  .meta({ id: "CreditGrant" });

const Credits = z
  .object({
    granted_usd: z.number(),
    spent_usd: z
      .number()
      .meta({ description: "Spend of runs of the team's factories since the UTC day of the first grant." }),
    expired_usd: z.number().meta({ description: "Unspent amount of grants at their expiry." }),
    remaining_usd: z.number(),
    overdrawn_usd: z.number().meta({
      description: "Spend that no grant covers. granted + overdrawn = spent + expired + remaining.",
    }),
    as_of: timestamp().meta({ description: "Spend is complete up to this time." }),
    grants: z.array(CreditGrant),
    page_info: PageInfo,
  })
  .meta({ id: "TeamCredits" });

export type CreditRoutesDeps = {
  readonly upstreams: Pick<Upstreams, "prices">;
  /** Returns whether a team with this uid exists. */
  readonly hasTeam: (uid: string) => Promise<boolean>;
};

const params = z.object({ uid: pathUid("team") });
const PATH = "/team/{uid}/credits";

/** Returns the routes of teams' credits. Millwright extension. */
export function creditRoutes({ upstreams: { prices }, hasTeam }: CreditRoutesDeps): Route[] {
  return [
    route({
      method: "GET",
      path: PATH,
      extension: true,
      summary: "Read a team's credit balance and grants",
      description:
        "Grants are listed newest first. The spend of a day is deducted from the grants valid on that day, earliest expiry first. Credits " +
        "do not limit spend: see budgets.",
      verbs: ["run.view"],
      errors: [403],
      params,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: Credits,
      handler: async (input) => {
        const { limit, cursor: pageToken = "" } = input.query;
        const teamUid = input.params.uid;
        if (!isMember(input.caller, teamUid)) throw notFound("team");
        const [balance, page] = await Promise.all([
          prices.getCreditBalance({ teamUid }, onBehalf(input)),
          prices.listCreditGrants({ teamUid, pageSize: limit, pageToken }, onBehalf(input)),
        ]);
        return {
          granted_usd: toDollars(balance.grantedMicros),
          spent_usd: toDollars(balance.spentMicros),
          expired_usd: toDollars(balance.expiredMicros),
          remaining_usd: toDollars(balance.remainingMicros),
          overdrawn_usd: toDollars(balance.overdrawnMicros),
          as_of: isoTime(balance.asOf!),
          grants: page.grants.map(grantRecord),
          page_info: pageInfo(page.nextPageToken),
        };
      },
    }),
    route({
      method: "POST",
      path: PATH,
      extension: true,
      summary: "Grant credits to a team (platform administrators)",
      description: "For any team. Grants are immutable.",
      errors: [403, 409],
      idempotent: true,
      status: 201,
      params,
      body: z.object({
        amount_usd: dollarAmount(0.000_001, 1_000_000_000),
        note: z.string().max(500).optional(),
        expires_at: instant().optional().meta({ description: "Must be in the future. Absent: never." }),
      }),
      response: CreditGrant,
      handler: async (input) => {
        const { body, caller, request } = input;
        const teamUid = input.params.uid;
        const isKnown = isMember(caller, teamUid) || (isPlatformAdmin(caller) && (await hasTeam(teamUid)));
        if (!isKnown) throw notFound("team");
        const granted = await prices.grantCredits(
          {
            teamUid,
            micros: toMicros(body.amount_usd),
            note: body.note ?? "",
            ...omitUndefined({ expiresAt: body.expires_at && timestampFromDate(body.expires_at) }),
            idempotencyKey: request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return grantRecord(granted.grant!);
      },
    }),
  ];
}

const grantRecord = ({ uid, micros, note, grantedAt, expiresAt, createdBy }: metrics.CreditGrant) => ({
  uid,
  amount_usd: toDollars(micros),
  note,
  granted_at: isoTime(grantedAt!),
  expires_at: expiresAt ? isoTime(expiresAt) : null,
  created_by: actorRecord(createdBy!),
});
