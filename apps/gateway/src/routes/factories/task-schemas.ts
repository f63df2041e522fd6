import { z } from "zod";
import { TASK_STAGES } from "@millwright/definition";
import { timestamp, UserProfile } from "../../rest/index.ts";
import { ArtifactItem } from "../runs/artifact-schemas.ts";
import { RunState } from "../runs/run-schemas.ts";

export const CurrentRun = z
  .object({ run_id: z.string(), state: RunState, is_run_type_cancellable: z.boolean() })
  .meta({ id: "TaskCurrentRun" });

export const Stage = z.enum(TASK_STAGES).meta({ id: "TaskStage" });

export const Task = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    conversation_id: z.string(),
    run_id: z.string(),
    title: z.string(),
    description: z.string().nullable(),
    stage: Stage,
    author: UserProfile.optional(),
    created_at: timestamp(),
    updated_at: timestamp(),
    outputs: z.array(ArtifactItem).optional(),
    ticket_source: z.string().optional(),
    ticket_id: z.string().optional(),
    current_run: CurrentRun.optional(),
  })
  .meta({ id: "FactoryTask" });
