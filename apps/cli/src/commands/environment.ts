import { table } from "@millwright/terminal";
import { textOption, textOptions, UsageError, type Command, nonEmpty } from "../command.ts";

type Config = { name?: string; github_repos?: { owner: string; repo: string }[] };
type Environment = { uid: string; config: Config; last_updated: string; scope?: { type: string } };

function repositoryOf(text: string): { owner: string; repo: string } {
  const [owner, repo, ...more] = text.split("/");
  if (!owner || !repo || more.length > 0)
    throw new UsageError(`--repo must be OWNER/REPO (got ${JSON.stringify(text)}).`);
  return { owner, repo };
}

/** Environments: where runs work. */
export const environmentCommands: Command[] = [
  {
    words: "environment create",
    args: ["NAME"],
    options: {
      description: { type: "string" },
      repo: { type: "string", multiple: true },
      image: { type: "string" },
      setup: { type: "string", multiple: true },
      secret: { type: "string", multiple: true },
      "allow-host": { type: "string", multiple: true },
      personal: { type: "boolean" },
    },
    summary:
      "Create an environment; --repo OWNER/REPO, --setup COMMAND, --secret NAME and --allow-host HOST may be repeated.",
    run: async (cli, [name], values) => {
      const hosts = textOptions(values, "allow-host");
      const config = {
        name,
        description: textOption(values, "description"),
        docker_image: textOption(values, "image"),
        github_repos: textOptions(values, "repo").map(repositoryOf),
        setup_commands: textOptions(values, "setup"),
        secrets: textOptions(values, "secret").map((secret) => ({ name: secret })),
        allowed_hosts: nonEmpty(hosts),
      };
      const body = { config, team: values["personal"] === true ? false : undefined };
      const made = await cli.api().post<Environment>("/agent/environments", body);
      cli.show(made, () => `environment ${made.uid} (${made.config.name ?? ""})`);
    },
  },
  {
    words: "environment list",
    args: [],
    summary: "List environments, newest change first.",
    run: async (cli) => {
      const { environments } = await cli.api().get<{ environments: Environment[] }>("/agent/environments");
      const repositories = (config: Config) =>
        (config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(" ");
      const rows = environments.map(({ uid, config, last_updated: updated, scope }) => [
        uid,
        config.name ?? "",
        scope?.type ?? "",
        repositories(config),
        updated,
      ]);
      cli.show(environments, () => table(["ENVIRONMENT", "NAME", "OF", "REPOSITORIES", "UPDATED"], rows));
    },
  },
  {
    words: "environment share",
    args: ["ENVIRONMENT"],
    options: { user: { type: "string" } },
    summary: "Share an environment with a team (--team UID) or a user (--user UID).",
    ignoresTeam: true,
    run: async (cli, [uid], values) => {
      const [team, user] = [textOption(values, "team"), textOption(values, "user")];
      if ((team === undefined) === (user === undefined))
        throw new UsageError("Name one team with --team UID, or one user with --user UID.");
      const grant = await cli
        .api()
        .post<{ uid: string }>(
          `/agent/environments/${uid}/grants`,
          team === undefined ? { user_uid: user } : { team_uid: team },
        );
      cli.show(grant, () => `grant ${grant.uid}`);
    },
  },
];
