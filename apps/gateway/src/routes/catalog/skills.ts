import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { EXTENSION, queryBoolean, route, timestamp, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

/** Repositories whose last read is too old are read during the request. */
const READ_TIMEOUT_MS = 60_000;

const Variant = z
  .object({
    id: z.string().meta({
      description:
        "Identifies the skill in runs and filters: `owner/repo:path`, or `factory/<uid>:path` for a skill of a factory's definition.",
    }),
    description: z.string(),
    base_prompt: z.string(),
    source: z.object({
      owner: z.string().meta({
        ...EXTENSION,
        description: "`factory` for a skill of a factory's definition, with the factory's uid as `name`.",
      }),
      name: z.string(),
      skill_path: z.string(),
      worker_host: z.string().optional(),
    }),
    environments: z.array(z.object({ uid: z.string(), name: z.string() })),
    last_run_timestamp: timestamp().nullable(),
    error: z.string().optional(),
  })
  .meta({ id: "AgentSkillVariant" });

const AgentSkill = z.object({ name: z.string(), variants: z.array(Variant) }).meta({ id: "AgentSkill" });

/** Returns the route that lists skills for agents. */
export const skillRoutes = ({ catalog }: Pick<Upstreams, "catalog">): Route[] => [
  route({
    method: "GET",
    path: "/agent",
    summary: "List agent skills",
    verbs: ["run.view"],
    description:
      "From `.agents/skills`, `.claude/skills` and `skills` of the repositories of environments and factories, from factories' definitions and from connected workers. " +
      "Repositories are read at most every ten minutes unless `refresh` is set. Concurrent refreshes of a repository share one read.",
    teamHeader: true,
    timeoutMs: READ_TIMEOUT_MS,
    query: z.object({
      repo: z
        .string()
        .regex(/^[A-Za-z0-9._-]{1,100}\/[A-Za-z0-9._-]{1,100}$/, "expected owner/repo")
        .optional(),
      refresh: queryBoolean().optional(),
      sort_by: z
        .enum(["name", "last_run"])
        .default("name")
        .meta({ description: "`last_run`: the newest run first, skills that were never run last." }),
      include_malformed_skills: queryBoolean().optional(),
    }),
    response: z.object({ agents: z.array(AgentSkill) }),
    handler: async (input) => {
      const {
        repo = "",
        refresh = false,
        sort_by: sortBy,
        include_malformed_skills: includeMalformed = false,
      } = input.query;
      const upstreamRequest = { teamUid: input.caller.activeTeamUid ?? "", repo, refresh, sortBy, includeMalformed };
      const { skills } = await catalog.listSkills(upstreamRequest, onBehalf(input, { timeoutMs: READ_TIMEOUT_MS }));
      return { agents: skills.map(({ name, variants }) => ({ name, variants: variants.map(variantRecord) })) };
    },
  }),
];

const variantRecord = ({
  id,
  description,
  basePrompt,
  owner,
  repo,
  path,
  workerHost,
  environments,
  lastRunTimestamp,
  error,
}: orchestrator.SkillVariant): z.input<typeof Variant> => ({
  ...{ id, description, base_prompt: basePrompt },
  source: { owner, name: repo, skill_path: path, ...omitUndefined({ worker_host: workerHost || undefined }) },
  environments: environments.map(({ uid, name }) => ({ uid, name })),
  last_run_timestamp: lastRunTimestamp ? isoTime(lastRunTimestamp) : null,
  ...omitUndefined({ error: error || undefined }),
});
