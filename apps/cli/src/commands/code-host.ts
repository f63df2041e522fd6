import { text as readAll } from "node:stream/consumers";
import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { EXIT, textOption, textOptions, type Cli, type Command, type Values } from "../command.ts";
import { FACTORY, factoryUid } from "../which-factory.ts";
import { teamOf } from "./access.ts";
import { replayText, type Replayed } from "./automation.ts";

type CodeHost = { uid: string; name: string; kind: string; base_url: string; root: string; owners: string[] };
type Webhook = { ingress_url: string; enabled: boolean; bot_login: string | null; secret?: string };
type Delivery = {
  uid: string;
  event: string | null;
  action: string | null;
  label: string;
  delivery_id: string | null;
  size_bytes: number;
  received_at: string;
  payload?: unknown;
};

const paths = async (cli: Cli, values: Values) => `/team/${await teamOf(cli, textOption(values, "team"))}/code-hosts`;
const pathOf = async (cli: Cli, values: Values, uid: string | undefined) => `${await paths(cli, values)}/${uid}`;

const describe = ({ ingress_url: url, enabled, bot_login: bot, secret }: Webhook): string =>
  [
    `the code host POSTs to ${url}${enabled ? "" : " (disabled)"}`,
    ...(bot ? [`the platform is ${bot} there`] : []),
    ...(secret ? [`secret, shown once: ${secret}`] : []),
  ].join("\n");

const eventLabel = ({ event, action }: Delivery): string => [event, action].filter((word) => word !== null).join(" ");

/** Code-host connections, their webhooks and deliveries. */
export const codeHostCommands: Command[] = [
  {
    words: "code-host connect",
    args: ["NAME"],
    options: {
      kind: { type: "string", choices: CHOICES.codeHosts },
      "base-url": { type: "string" },
      root: { type: "string" },
      "secret-name": { type: "string" },
      owner: { type: "string", multiple: true },
    },
    summary: "Connect a code host (--kind github, gitlab or local; --secret-name of the token; --owner, repeatable).",
    run: async (cli, [name], values) => {
      const body = {
        name,
        kind: textOption(values, "kind") ?? "github",
        base_url: textOption(values, "base-url"),
        root: textOption(values, "root"),
        secret_name: textOption(values, "secret-name"),
        owners: textOptions(values, "owner"),
      };
      const made = await cli.api().post<CodeHost>(await paths(cli, values), body);
      cli.show(made, () => `code host ${made.uid} (${made.name})`);
    },
  },
  {
    words: "code-host list",
    args: [],
    summary: "List a team's code hosts.",
    run: async (cli, _args, values) => {
      const { code_hosts: hosts } = await cli.api().get<{ code_hosts: CodeHost[] }>(await paths(cli, values));
      cli.show(hosts, () =>
        table(
          ["CODE HOST", "NAME", "KIND", "AT", "OWNERS"],
          hosts.map((host) => [host.uid, host.name, host.kind, host.base_url || host.root, host.owners.join(" ")]),
        ),
      );
    },
  },
  {
    words: "code-host remove",
    args: ["CODE_HOST"],
    summary: "Remove a connection; its webhooks get 404 immediately.",
    run: async (cli, [uid], values) => {
      await cli.api().request("DELETE", await pathOf(cli, values, uid));
      cli.show({ uid, deleted: true }, () => `code host ${uid} is removed.`);
    },
  },
  {
    words: "code-host webhook",
    args: ["CODE_HOST"],
    options: { "bot-login": { type: "string" }, enable: { type: "boolean" }, disable: { type: "boolean" } },
    summary:
      "Open the webhook address of a connection, or change its settings (--bot-login, --enable, --disable); a new secret is printed once.",
    run: async (cli, [uid], values) => {
      const body = {
        enabled: values["disable"] ? false : values["enable"] ? true : undefined,
        bot_login: textOption(values, "bot-login"),
      };
      const webhook = await cli.api().request<Webhook>("PUT", `${await pathOf(cli, values, uid)}/webhook`, { body });
      cli.show(webhook, () => describe(webhook));
    },
  },
  {
    words: "code-host rotate",
    args: ["CODE_HOST"],
    options: { "secret-stdin": { type: "boolean" } },
    summary: "Replace the secret of a connection's address immediately: generated, or with --secret-stdin your own.",
    run: async (cli, [uid], values) => {
      const body = values["secret-stdin"] ? { secret: (await readAll(process.stdin)).replace(/\n$/, "") } : {};
      const webhook = await cli.api().post<Webhook>(`${await pathOf(cli, values, uid)}/webhook/rotate`, body);
      cli.show(webhook, () => describe(webhook));
    },
  },
  {
    words: "code-host deliveries",
    args: ["CODE_HOST"],
    summary: "List the deliveries of a connection, newest first.",
    run: async (cli, [uid], values) => {
      const { deliveries } = await cli
        .api()
        .get<{ deliveries: Delivery[] }>(`${await pathOf(cli, values, uid)}/webhook/deliveries`);
      cli.show(deliveries, () =>
        table(
          ["DELIVERY", "RECEIVED", "OUTCOME", "EVENT", "BYTES", "DELIVERY ID"],
          deliveries.map((delivery) => [
            delivery.uid,
            delivery.received_at,
            delivery.label,
            eventLabel(delivery),
            String(delivery.size_bytes),
            delivery.delivery_id ?? "",
          ]),
        ),
      );
    },
  },
  {
    words: "code-host delivery",
    args: ["CODE_HOST", "DELIVERY"],
    summary: "Show one delivery with its payload.",
    run: async (cli, [uid, deliveryUid], values) => {
      const delivery = await cli
        .api()
        .get<Delivery>(`${await pathOf(cli, values, uid)}/webhook/deliveries/${deliveryUid}`);
      cli.show(
        delivery,
        () =>
          `${delivery.label}  ${delivery.received_at}  ${eventLabel(delivery)}  ${delivery.delivery_id ?? ""}\n${delivery.payload === undefined ? "" : JSON.stringify(delivery.payload, null, 2)}`,
      );
    },
  },
  {
    words: "code-host replay",
    args: ["CODE_HOST", "DELIVERY", "AUTOMATION"],
    options: { ...FACTORY, "dry-run": { type: "boolean" } },
    summary:
      "Evaluate a delivery again with an automation (--factory names its factory) and start a run if it matches; exit code 1 if it does not.",
    run: async (cli, [uid, delivery, automation], values) => {
      const body = {
        factory_uid: await factoryUid(cli, values),
        automation_uid: automation,
        dry_run: values["dry-run"] === true,
      };
      const replayed = await cli
        .api()
        .post<Replayed>(`${await pathOf(cli, values, uid)}/webhook/deliveries/${delivery}/replay`, body);
      cli.show(replayed, () => replayText(replayed));
      return replayed.would_trigger ? EXIT.done : EXIT.failed;
    },
  },
];
