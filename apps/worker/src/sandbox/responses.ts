import { z } from "zod";
import {
  CHUNK_BYTES_MAX,
  LIST_ENTRIES_MAX,
  OUTPUT_BYTES_MAX,
  type ResponseMessage,
  type ExecValue,
  type HelloValue,
  type ListValue,
  type OpenValue,
  type OutputValue,
  type ReadValue,
  type StatValue,
  type TakeValue,
  type WriteValue,
} from "./init/protocol.ts";

/**
 * The schemas of everything that a sandbox sends. Processes of the agent run as the same user as `sandbox-init` and
 * could write to its output. Every line is therefore treated as untrusted: only its validated shape and sizes are used.
 */
const PATH_CHARACTERS_MAX = 8_192;
const path = z.string().max(PATH_CHARACTERS_MAX);
const count = z.number().int().nonnegative();
const fileType = z.enum(["file", "directory", "link", "other", "absent"]);

const responseMessage: z.ZodType<ResponseMessage> = z.union([
  z.object({ id: count, ok: z.literal(true), value: z.unknown() }),
  z.object({ id: count, ok: z.literal(false), code: z.string().max(64), message: z.string().max(16_384) }),
]);

const hello: z.ZodType<HelloValue> = z.object({ pid: count, shell: path });
const exitCode = z.number().int().min(0).max(255);
const exec: z.ZodType<ExecValue> = z.object({
  exitCode: exitCode.nullable(),
  signal: z.string().max(16).nullable(),
  timedOut: z.boolean(),
  stopped: z.boolean(),
  output: z.string().max(OUTPUT_BYTES_MAX + 1_024),
  truncated: z.boolean(),
  cwd: path,
});
const output: z.ZodType<OutputValue> = z.object({
  output: z.string().max(OUTPUT_BYTES_MAX + 1_024),
  truncated: z.boolean(),
  running: z.boolean(),
});
const open: z.ZodType<OpenValue> = z.object({
  exitCode: exitCode.nullable(),
  signal: z.string().max(16).nullable(),
  errors: z.string().max(OUTPUT_BYTES_MAX + 1_024),
});
const chunk = z.string().max(Math.ceil(CHUNK_BYTES_MAX / 3) * 4 + 4);
const take: z.ZodType<TakeValue> = z.object({ data: chunk, ended: z.boolean() });
const read: z.ZodType<ReadValue> = z.object({ data: chunk, sizeBytes: count });
const write: z.ZodType<WriteValue> = z.object({ created: z.boolean() });
const stat: z.ZodType<StatValue> = z.object({ type: fileType, sizeBytes: count });
const list: z.ZodType<ListValue> = z.object({
  entries: z.array(z.object({ path, type: fileType, sizeBytes: count })).max(LIST_ENTRIES_MAX),
  truncated: z.boolean(),
});

export const RESPONSES = {
  hello,
  exec,
  read,
  write,
  stat,
  list,
  stop: z.object({ stopped: z.boolean() }),
  output,
  open,
  put: z.object({}),
  take,
  close: z.object({}),
  terminate: z.object({}),
} as const;

/** Parses one line. Throws if it is not a response of the protocol. */
export const parseResponse = (line: string): ResponseMessage => responseMessage.parse(JSON.parse(line));
