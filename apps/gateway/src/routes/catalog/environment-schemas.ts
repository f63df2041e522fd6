import { z } from "zod";
import { EXTENSION, pathText, Scope, timestamp, UserProfile } from "../../rest/index.ts";
import { RUN_STATES } from "../runs/run-schemas.ts";

/**
 * Configuration of an environment. `allowed_hosts` is a Millwright extension: it restricts network access to these
 * hosts among those that the worker allows. Absent: all hosts that the worker allows.
 */
export const EnvironmentConfig = z
  .object({
    name: z.string(),
    description: z.string().nullable(),
    docker_image: z.string(),
    github_repos: z.array(z.object({ owner: z.string(), repo: z.string() })),
    setup_commands: z.array(z.string()),
    providers: z.looseObject({}),
    secrets: z.array(z.object({ name: z.string() })),
    allowed_hosts: z.array(z.string()),
    failure_session_retention_minutes: z.int().min(1).max(60).nullable(),
  })
  .partial()
  .meta({ id: "EnvironmentConfig" });

export const Environment = z
  .object({
    uid: z.string(),
    config: EnvironmentConfig,
    last_updated: timestamp(),
    setup_failed: z.boolean(),
    last_task_run_timestamp: timestamp().nullable().optional(),
    last_task_created: z
      .object({
        id: z.string(),
        title: z.string(),
        state: z.enum(RUN_STATES),
        created_at: timestamp(),
        updated_at: timestamp(),
        started_at: timestamp().nullable(),
      })
      .optional()
      .meta({ description: "The newest run in the environment that the caller may view." }),
    link_sharing: z.boolean().meta({
      ...EXTENSION,
      description: "True: anyone who knows the uid can use the environment. It then appears in their list.",
    }),
    access: z.enum(["owned", "granted", "link"]).meta({ ...EXTENSION, description: "How the caller obtained access." }),
    scope: Scope.optional(),
    creator: UserProfile.optional(),
    last_editor: UserProfile.optional(),
  })
  .meta({ id: "Environment" });

export const environmentParams = z.object({ uid: pathText("environment", /^[A-Za-z0-9]{22}$/) });

export const EnvironmentBody = z.object({
  config: EnvironmentConfig,
  team: z.boolean().optional(),
  link_sharing: z.boolean().optional(),
});
