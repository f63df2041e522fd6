import { table } from "@millwright/terminal";
import { checkedId, numberOf, textOption, type Cli, type Command, type Values } from "../command.ts";
import { listAll } from "../list-all.ts";
import { dollarsText } from "../metrics-text.ts";
import { teamOf } from "./access.ts";

type Price = {
  version: number;
  vcpu_hour_usd: number;
  gb_hour_usd: number;
  platform_run_usd: number;
  effective_from: string;
  repricing: { status: string; correction_count: number; corrected_usd: number };
};
type Grant = { amount_usd: number; note: string; granted_at: string; expires_at: string | null };
type Credits = Record<"granted_usd" | "spent_usd" | "expired_usd" | "remaining_usd" | "overdrawn_usd", number> & {
  as_of: string;
  grants: Grant[];
};

const PRICES = "/platform/compute-prices";
const creditsPath = (teamUid: string): string => `/team/${teamUid}/credits`;
const ownTeam = (cli: Cli, values: Values): Promise<string> => teamOf(cli, textOption(values, "team"));

function creditsText(credits: Credits): string {
  const sums = (["granted", "spent", "expired", "remaining", "overdrawn"] as const).map((name) => [
    name,
    dollarsText(credits[`${name}_usd`]),
  ]);
  const rows = credits.grants.map(({ granted_at, expires_at, amount_usd, note }) => [
    ...[granted_at, expires_at ?? "never", dollarsText(amount_usd), note],
  ]);
  const grants = table(["GRANTED", "EXPIRES", "AMOUNT", "NOTE"], rows);
  return [`credits, complete up to ${credits.as_of}`, table(["CREDITS", "DOLLARS"], sums), grants].join("\n");
}

/** The price book of compute and the platform, and credits of teams. */
export const priceCommands: Command[] = [
  {
    words: "price list",
    args: [],
    summary:
      "List the versions of the price book of compute and the platform, newest first, with what each has corrected.",
    run: async (cli) => {
      const prices = await listAll<Price>(cli, PRICES, "prices", { limit: "100" });
      const rows = prices.map(({ version, effective_from: from, repricing, ...price }) => [
        ...[String(version), from, `$${price.vcpu_hour_usd}`, `$${price.gb_hour_usd}`, `$${price.platform_run_usd}`],
        ...[repricing.status, String(repricing.correction_count), dollarsText(repricing.corrected_usd)],
      ]);
      const headings = ["VERSION", "FROM", "VCPU HOUR", "GB HOUR", "RUN", "RE-PRICING", "CORRECTIONS", "CORRECTED"];
      cli.show(prices, () => table(headings, rows));
    },
  },
  {
    words: "price add",
    args: ["VCPU_HOUR_USD", "GB_HOUR_USD", "PLATFORM_RUN_USD"],
    options: { from: { type: "string" } },
    summary:
      "Add a version to the price book (--from TIME, by default now; an earlier time corrects what has been charged since). For platform administrators.",
    run: async (cli, [vcpu, gb, run], values) => {
      const price = await cli.api().post<Price>(PRICES, {
        vcpu_hour_usd: numberOf(vcpu, "VCPU_HOUR_USD"),
        gb_hour_usd: numberOf(gb, "GB_HOUR_USD"),
        platform_run_usd: numberOf(run, "PLATFORM_RUN_USD"),
        effective_from: textOption(values, "from"),
      });
      cli.show(price, () => `version ${price.version} of the price book applies from ${price.effective_from} on.`);
    },
  },
  {
    words: "credit show",
    args: [],
    summary: "Show what a team was granted, has spent and has left, with its newest grants.",
    run: async (cli, _args, values) => {
      const credits = await cli.api().get<Credits>(creditsPath(await ownTeam(cli, values)));
      cli.show(credits, () => creditsText(credits));
    },
  },
  {
    words: "credit grant",
    args: ["AMOUNT_USD"],
    options: { to: { type: "string" }, note: { type: "string" }, expires: { type: "string" } },
    summary:
      "Grant credits to a team (--to TEAM, by default your own; --note TEXT; --expires TIME). For platform administrators.",
    run: async (cli, [amount], values) => {
      const to = textOption(values, "to");
      const teamUid = to === undefined ? await ownTeam(cli, values) : checkedId(to, "team");
      const grant = await cli.api().post<Grant>(creditsPath(teamUid), {
        amount_usd: numberOf(amount, "AMOUNT_USD"),
        note: textOption(values, "note"),
        expires_at: textOption(values, "expires"),
      });
      cli.show(grant, () => `granted ${dollarsText(grant.amount_usd)}, expires: ${grant.expires_at ?? "never"}.`);
    },
  },
];
