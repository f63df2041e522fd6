import { z } from "zod";
import { recordOf } from "../../rest/index.ts";

const texts = (form: RegExp) => recordOf(z.string().regex(form), z.string().regex(/^[^\0\r\n]*$/, "must be one line"));

/** An MCP server: a reference to a managed server, a command that runs in the sandbox, or a URL. */
export const McpServer = z
  .object({
    warp_id: z.string().trim().min(1),
    command: z.string().trim().min(1),
    args: z.array(z.string()),
    url: z.string().regex(/^https?:\/\//, "must be an http or https URL"),
    headers: texts(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
    env: texts(/^[A-Za-z_][A-Za-z0-9_]*$/),
  })
  .partial()
  .meta({
    id: "McpServerConfig",
    description:
      "Exactly one of `warp_id`, `command` and `url`. `${NAME}` in `args`, `env`, `url` and `headers` is replaced by a variable or secret of the run.",
  });

const exactlyOne = (server: z.infer<typeof McpServer>): boolean =>
  [server.warp_id, server.command, server.url].filter((each) => each !== undefined).length === 1;

/** MCP servers by name. */
export const McpServers = recordOf(
  z.string().min(1).max(100),
  McpServer.refine(exactlyOne, "expected exactly one of warp_id, command and url"),
).refine((servers) => Object.keys(servers).length <= 20, "at most 20 servers");
