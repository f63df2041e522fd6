import { z } from "zod";
import { EXTENSION } from "../../rest/index.ts";
import { AgentConfigSnapshot } from "./agent-config-schemas.ts";
import { NewMetadata, PROMPT_LIMIT, RunMode, RunState } from "./run-schemas.ts";

const ATTACHMENT_BYTES_MAX = 10_000_000;
const ATTACHMENTS_MAX = 5;
const decodedBytes = (base64: string): number => (base64.length / 4) * 3 - (/=*$/.exec(base64)?.[0].length ?? 0);

/** An attachment of at most 10 MB after decoding. */
const Attachment = z
  .object({
    file_name: z.string().min(1),
    mime_type: z.string().min(1),
    data: z
      .base64()
      .refine((text) => decodedBytes(text) <= ATTACHMENT_BYTES_MAX, `at most ${ATTACHMENT_BYTES_MAX} bytes`),
  })
  .meta({ id: "AttachmentInput" });

/** The body that creates a run. `agent_name` is a Millwright extension: a child run names an agent of its factory. */
export const CreateRunRequest = z
  .object({
    prompt: z.string().optional().meta({ description: PROMPT_LIMIT }),
    title: z.string().max(500).optional(),
    config: AgentConfigSnapshot.optional(),
    skill: z.string().optional(),
    mode: RunMode.optional(),
    team: z.boolean().optional(),
    agent_identity_uid: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "The agent that executes the run. Default with an agent's API key: that agent." }),
    on_behalf_of: z.string().min(1).optional().meta({
      description:
        "E-mail address or uid of a team member who becomes the run's creator. Requires the API key of an agent with `on_behalf_of_enabled`; otherwise 403.",
    }),
    agent_name: z
      .string()
      .min(1)
      .optional()
      .meta({
        ...EXTENSION,
        description:
          "Name of an agent of the parent run's factory. Default: a child run is executed by its parent's agent.",
      }),
    conversation_id: z.string().min(1).optional(),
    parent_run_id: z.string().min(1).optional(),
    interactive: z.boolean().optional(),
    attachments: z.array(Attachment).max(ATTACHMENTS_MAX).optional(),
    images: z
      .array(Attachment.partial({ file_name: true }).meta({ id: "ImageInput" }))
      .max(ATTACHMENTS_MAX)
      .optional()
      .meta({ description: "Like attachments, but file names are optional." }),
    metadata: NewMetadata.optional(),
  })
  .refine(
    ({ attachments = [], images = [] }) => attachments.length + images.length <= ATTACHMENTS_MAX,
    `attachments and images: at most ${ATTACHMENTS_MAX} in total`,
  )
  .meta({ id: "RunAgentRequest" });

export const CreatedRun = z
  .object({ run_id: z.string(), task_id: z.string(), state: RunState, at_capacity: z.boolean().optional() })
  .meta({ id: "RunAgentResponse" });
