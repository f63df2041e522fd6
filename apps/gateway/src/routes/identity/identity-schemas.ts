import { z } from "zod";
import { VERBS } from "@millwright/caller";
import { ROLES, type Invitation, type Key, type Member, type Secret, type Team } from "../../identity/index.ts";
import { timestamp } from "../../rest/index.ts";

/**
 * An e-mail address. The pattern is permissive, because self-hosted installations use addresses such as
 * `owner@localhost`. Addresses are case-insensitive.
 */
export const emailAddress = () =>
  z
    .string()
    .max(254)
    .regex(/^[^\s@]+@[^\s@]+$/, "expected an e-mail address")
    .meta({ format: "email" });

export const TeamRecord = z
  .object({
    uid: z.string(),
    name: z.string(),
    capabilities: z.object({ factory_branches: z.boolean(), metadata_filter: z.boolean() }),
    concurrency_limit: z.int().meta({ description: "Maximum concurrent executions; 0 = the platform's default." }),
    queue_weight: z.number().meta({
      description:
        "Weight of the team's share of workers while several teams have queued runs. Only platform administrators can change it.",
    }),
    queue_paused: z.boolean().meta({ description: "true: its runs stay queued. Active runs continue." }),
    agent_defaults: z
      .record(z.string(), z.unknown())
      .meta({ description: "The team's level of run configuration: keys of AgentConfigSnapshot." }),
    created_at: timestamp(),
    updated_at: timestamp(),
  })
  .meta({ id: "Team" });

export const MemberRecord = z
  .object({
    uid: z.string(),
    email: z.string(),
    display_name: z.string(),
    role: z.enum(ROLES),
    created_at: timestamp(),
  })
  .meta({ id: "Member" });

export const KeyRecord = z
  .object({
    uid: z.string(),
    name: z.string(),
    kind: z.enum(["api", "worker"]),
    prefix: z.string().meta({ description: "The beginning of the key; the rest is not stored." }),
    user_uid: z.string().optional(),
    agent_uid: z.string().optional(),
    all_teams: z.boolean(),
    personal: z.boolean().meta({
      description:
        "Whether the key grants access to its user's personal runs, schedules and environments, within its scopes. false for the key created with a new member.",
    }),
    scopes: z
      .array(z.enum(VERBS))
      .meta({ description: "Permissions that the key is limited to. Empty = all permissions of the role." }),
    created_at: timestamp(),
    expires_at: timestamp().nullable(),
    last_used_at: timestamp().nullable(),
  })
  .meta({ id: "ApiKey" });

export const NewMemberRecord = MemberRecord.extend({
  api_key: z.string().meta({
    description:
      "The person's first key, with permissions in this team only. Returned only in this response. The first key that the person creates with it also grants access to their personal resources.",
  }),
}).meta({ id: "NewMember" });

export const InvitationRecord = z
  .object({
    uid: z.string(),
    team: z.object({ uid: z.string(), name: z.string() }),
    email: z.string(),
    role: z.enum(ROLES),
    invited_by: z.string().meta({ description: "E-mail address of the inviter." }),
    created_at: timestamp(),
    expires_at: timestamp(),
  })
  .meta({ id: "Invitation" });

export const IssuedKey = z
  .object({ key: KeyRecord, api_key: z.string().meta({ description: "The key. Returned only in this response." }) })
  .meta({ id: "IssuedApiKey" });

export const SecretRecord = z
  .object({ name: z.string(), version: z.int(), created_at: timestamp(), updated_at: timestamp() })
  .meta({ id: "ManagedSecret", description: "Values are never readable." });

export const teamRecord = (team: Team): z.input<typeof TeamRecord> => ({
  uid: team.uid,
  name: team.name,
  capabilities: { factory_branches: team.factoryBranches, metadata_filter: team.metadataFilter },
  concurrency_limit: team.concurrencyLimit,
  queue_weight: team.queueWeight,
  queue_paused: team.queuePaused,
  agent_defaults: team.agentDefaults as Record<string, unknown>,
  created_at: team.createdAt.toISOString(),
  updated_at: team.updatedAt.toISOString(),
});

export const memberRecord = ({ user, role, createdAt }: Member): z.input<typeof MemberRecord> => ({
  uid: user.uid,
  email: user.email,
  display_name: user.displayName,
  role,
  created_at: createdAt.toISOString(),
});

export const invitationRecord = ({
  uid,
  team,
  email,
  role,
  inviter,
  createdAt,
  expiresAt,
}: Invitation): z.input<typeof InvitationRecord> => ({
  uid,
  team: { uid: team.uid, name: team.name },
  email,
  role,
  invited_by: inviter.email,
  created_at: createdAt.toISOString(),
  expires_at: expiresAt.toISOString(),
});

export const keyRecord = (key: Key): z.input<typeof KeyRecord> => ({
  uid: key.uid,
  name: key.name,
  kind: key.kind,
  prefix: key.prefix,
  user_uid: key.userUid ?? undefined,
  agent_uid: key.agentUid ?? undefined,
  all_teams: key.allTeams,
  personal: key.personal,
  scopes: key.scopes as z.input<typeof KeyRecord>["scopes"],
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt?.toISOString() ?? null,
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
});

export const secretRecord = (secret: Secret): z.input<typeof SecretRecord> => ({
  name: secret.name,
  version: secret.version,
  created_at: secret.createdAt.toISOString(),
  updated_at: secret.updatedAt.toISOString(),
});
