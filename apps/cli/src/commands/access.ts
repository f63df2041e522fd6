import { text as readAll } from "node:stream/consumers";
import { ApiClient } from "@millwright/api-client";
import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import {
  checkedId,
  checkedUrl,
  textOption,
  textOptions,
  UsageError,
  type Cli,
  type Command,
  nonEmpty,
} from "../command.ts";
import { writeLogin } from "../login-file.ts";

type WhoAmI = {
  principal: { type: string; uid: string; display_name?: string; email?: string };
  teams: { uid: string; name?: string; role?: string }[];
};
type Key = { uid: string; name: string; kind: string; prefix: string; created_at: string; expires_at?: string | null };

/** The team named with --team, else the only one the caller has. */
export async function teamOf(cli: Cli, named: string | undefined): Promise<string> {
  if (named) return checkedId(named, "team");
  const me = await cli.api().get<WhoAmI>("/whoami");
  if (me.teams.length === 0) throw new UsageError("You are a member of no team. Accept an invitation, or ask for one.");
  if (me.teams.length > 1) throw new UsageError("You are a member of several teams. Select one: --team UID.");
  return me.teams[0]!.uid;
}

/** Who may call: login, teams, users, keys, secrets. */
export const accessCommands: Command[] = [
  {
    words: "login",
    args: ["URL", "API_KEY"],
    summary: "Check an API key and store it for later commands.",
    ignoresTeam: true,
    run: async (cli, [url, apiKey]) => {
      const me = await new ApiClient({ url: checkedUrl(url!), apiKey: apiKey! }).get<WhoAmI>("/whoami");
      const file = writeLogin(cli.env, { url: url!, apiKey: apiKey! });
      cli.show(
        me,
        () => `Signed in as ${me.principal.email ?? me.principal.display_name ?? me.principal.uid}; stored in ${file}.`,
      );
    },
  },
  {
    words: "whoami",
    args: [],
    summary: "Show the owner of the key and its teams.",
    run: async (cli) => {
      const me = await cli.api().get<WhoAmI>("/whoami");
      cli.show(
        me,
        () =>
          `${me.principal.type} ${me.principal.email ?? me.principal.display_name ?? me.principal.uid}\n${table(
            ["TEAM", "NAME", "ROLE"],
            me.teams.map((team) => [team.uid, team.name ?? "", team.role ?? ""]),
          )}`,
      );
    },
  },
  {
    words: "team create",
    args: ["NAME"],
    options: { owner: { type: "string" } },
    summary: "Create a team (platform administrators); prints its first key once.",
    run: async (cli, [name], values) => {
      const owner = textOption(values, "owner");
      if (!owner) throw new UsageError("Name the owner with --owner EMAIL.");
      const made = await cli
        .api()
        .post<{ team: { uid: string; name: string }; api_key: string }>("/team", { name, owner_email: owner });
      cli.show(
        made,
        () => `team ${made.team.uid} (${made.team.name})\nAPI key of its owner, shown once: ${made.api_key}`,
      );
    },
  },
  {
    words: "team list",
    args: [],
    summary: "List your teams.",
    run: async (cli) => {
      const { teams } = await cli.api().get<{ teams: { uid: string; name: string }[] }>("/team");
      cli.show(teams, () =>
        table(
          ["TEAM", "NAME"],
          teams.map((team) => [team.uid, team.name]),
        ),
      );
    },
  },
  {
    words: "user add",
    args: ["EMAIL"],
    options: { role: { type: "string", choices: CHOICES.roles } },
    summary:
      "Add a person who is new to the platform (--role, by default member); prints their first key once. Others: `invitation create`.",
    run: async (cli, [email], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const member = await cli.api().post<{ role: string; api_key: string }>(`/team/${team}/members`, {
        email,
        role: textOption(values, "role") ?? "member",
      });
      cli.show(
        member,
        () =>
          `${email} is now ${member.role} of team ${team}.\nTheir first API key, shown once: ${member.api_key}\nWith it they create a key of their own: millwright key create NAME`,
      );
    },
  },
  {
    words: "user list",
    args: [],
    summary: "List the team's members.",
    run: async (cli, _args, values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const { members } = await cli
        .api()
        .get<{ members: { uid: string; email: string; role: string }[] }>(`/team/${team}/members`);
      cli.show(members, () =>
        table(
          ["USER", "EMAIL", "ROLE"],
          members.map((member) => [member.uid, member.email, member.role]),
        ),
      );
    },
  },
  {
    words: "key create",
    args: ["NAME"],
    options: {
      worker: { type: "boolean" },
      agent: { type: "string" },
      "all-teams": { type: "boolean" },
      scope: { type: "string", choices: CHOICES.scopes, multiple: true },
      "expires-at": { type: "string" },
    },
    summary:
      "Create an API key for yourself (--all-teams: for every team you are in), an agent (--agent UID) or workers (--worker); printed once.",
    run: async (cli, [name], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const scopes = textOptions(values, "scope");
      const made = await cli.api().post<{ key: Key; api_key: string }>(`/team/${team}/keys`, {
        name,
        kind: values["worker"] ? "worker" : "api",
        agent_uid: textOption(values, "agent") || undefined,
        all_teams: values["all-teams"] ? true : undefined,
        scopes: nonEmpty(scopes),
        expires_at: textOption(values, "expires-at") || undefined,
      });
      cli.show(made, () => `key ${made.key.uid}, shown once: ${made.api_key}`);
    },
  },
  {
    words: "key list",
    args: [],
    summary: "List the team's keys.",
    run: async (cli, _args, values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const { keys } = await cli.api().get<{ keys: Key[] }>(`/team/${team}/keys`);
      cli.show(keys, () =>
        table(
          ["KEY", "NAME", "KIND", "PREFIX", "CREATED", "EXPIRES"],
          keys.map((key) => [key.uid, key.name, key.kind, key.prefix, key.created_at, key.expires_at ?? "never"]),
        ),
      );
    },
  },
  {
    words: "key revoke",
    args: ["KEY"],
    summary: "Revoke a key; takes effect immediately.",
    run: async (cli, [key], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      await cli.api().request("DELETE", `/team/${team}/keys/${key}`);
      cli.show({ uid: key, revoked: true }, () => `key ${key} is revoked.`);
    },
  },
  {
    words: "secret set",
    args: ["SECRET"],
    summary: "Store a managed secret; its value is read from standard input.",
    run: async (cli, [name], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const value = (await readAll(process.stdin)).replace(/\n$/, "");
      await cli.api().request("PUT", `/team/${team}/secrets/${name}`, { body: { value } });
      cli.show({ name, stored: true }, () => `secret ${name} is stored.`);
    },
  },
  {
    words: "secret list",
    args: [],
    summary: "List the names of the team's secrets; values are never returned.",
    run: async (cli, _args, values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const { secrets } = await cli
        .api()
        .get<{ secrets: { name: string; updated_at: string }[] }>(`/team/${team}/secrets`);
      cli.show(secrets, () =>
        table(
          ["SECRET", "CHANGED"],
          secrets.map((secret) => [secret.name, secret.updated_at]),
        ),
      );
    },
  },
  {
    words: "secret delete",
    args: ["SECRET"],
    summary: "Delete a managed secret.",
    run: async (cli, [name], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      await cli.api().request("DELETE", `/team/${team}/secrets/${name}`);
      cli.show({ name, deleted: true }, () => `secret ${name} is deleted.`);
    },
  },
];
