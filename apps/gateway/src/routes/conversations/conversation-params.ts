import { z } from "zod";
import { pathUid } from "../../rest/index.ts";

export const conversationParams = z.object({ conversationId: pathUid("conversation") });
