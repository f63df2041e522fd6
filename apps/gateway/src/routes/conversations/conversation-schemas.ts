import { z } from "zod";
import { timestamp } from "../../rest/index.ts";

const Category = z
  .enum(["command", "files", "search", "integration", "documents", "computer", "review", "skill"])
  .meta({ id: "ActionCategory" });
const message_id = z.string().optional();

const Block = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text"), text: z.string(), message_id }),
    z.object({
      type: z.literal("action"),
      id: z.string(),
      category: Category,
      name: z.string(),
      input: z.looseObject({}),
      message_id,
    }),
    z.object({
      type: z.literal("action_result"),
      action_id: z.string(),
      category: Category,
      name: z.string(),
      state: z.enum(["running", "completed", "failed", "denied"]),
      output: z.looseObject({}),
      message_id,
    }),
    z.object({ type: z.literal("event"), name: z.string(), data: z.looseObject({}), message_id }),
  ])
  .meta({ id: "ContentBlock" });

const Message = z
  .object({
    role: z.enum(["user", "assistant", "tool", "system"]),
    content: z.array(Block),
    timestamp: timestamp().optional(),
    message_ids: z.array(z.string()).optional(),
    request_id: z.string().optional(),
  })
  .meta({ id: "ConversationMessage" });

const Step = z
  .object({
    id: z.string(),
    messages: z.array(Message),
    get steps() {
      return z.array(Step);
    },
    description: z.string().optional(),
    summary: z.string().optional(),
    started_at: timestamp().optional(),
    completed_at: timestamp().optional(),
  })
  .meta({ id: "ConversationStep" });

/** A conversation. Steps can contain steps. */
export const Conversation = z
  .object({ conversation_id: z.string(), steps: z.array(Step) })
  .meta({ id: "Conversation" });
