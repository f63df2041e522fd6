import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, type Command } from "../command.ts";
import { teamOf } from "./access.ts";

type Invitation = {
  uid: string;
  team: { uid: string; name: string };
  email: string;
  role: string;
  invited_by: string;
  expires_at: string;
};

const listed = (invitations: readonly Invitation[]): string =>
  table(
    ["INVITATION", "TEAM", "EMAIL", "ROLE", "INVITED BY", "EXPIRES"],
    invitations.map((invitation) => [
      invitation.uid,
      invitation.team.name,
      invitation.email,
      invitation.role,
      invitation.invited_by,
      invitation.expires_at,
    ]),
  );

/** Invitations of people who already use the platform. */
export const invitationCommands: Command[] = [
  {
    words: "invitation create",
    args: ["EMAIL"],
    options: { role: { type: "string", choices: CHOICES.roles } },
    summary: "Invite a person to the team (--role, by default member); they join with `invitation accept`.",
    run: async (cli, [email], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      const invitation = await cli
        .api()
        .post<Invitation>(`/team/${team}/invitations`, { email, role: textOption(values, "role") ?? "member" });
      cli.show(
        invitation,
        () =>
          `${invitation.email} is invited as ${invitation.role} until ${invitation.expires_at}: invitation ${invitation.uid}`,
      );
    },
  },
  {
    words: "invitation list",
    args: [],
    options: { mine: { type: "boolean" } },
    summary: "List the team's invitations; with --mine those that you received.",
    run: async (cli, _args, values) => {
      const path = values["mine"]
        ? "/invitations"
        : `/team/${await teamOf(cli, textOption(values, "team"))}/invitations`;
      const { invitations } = await cli.api().get<{ invitations: Invitation[] }>(path);
      cli.show(invitations, () => listed(invitations));
    },
  },
  {
    words: "invitation accept",
    args: ["INVITATION"],
    summary: "Join the team that invites you; needs a key that you created yourself.",
    run: async (cli, [uid]) => {
      const accepted = await cli
        .api()
        .post<{ team: Invitation["team"]; member: { role: string } }>(`/invitations/${uid}/accept`);
      const next = "A key for all your teams: millwright key create NAME --all-teams --team UID";
      cli.show(
        accepted,
        () => `You are now ${accepted.member.role} of team ${accepted.team.uid} (${accepted.team.name}).\n${next}`,
      );
    },
  },
  {
    words: "invitation decline",
    args: ["INVITATION"],
    summary: "Decline an invitation.",
    run: async (cli, [uid]) => {
      await cli.api().request("DELETE", `/invitations/${uid}`);
      cli.show({ uid, declined: true }, () => `invitation ${uid} is declined.`);
    },
  },
  {
    words: "invitation revoke",
    args: ["INVITATION"],
    summary: "Revoke an invitation of the team.",
    run: async (cli, [uid], values) => {
      const team = await teamOf(cli, textOption(values, "team"));
      await cli.api().request("DELETE", `/team/${team}/invitations/${uid}`);
      cli.show({ uid, revoked: true }, () => `invitation ${uid} is revoked.`);
    },
  },
];
