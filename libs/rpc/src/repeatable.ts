import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";

const KEYS = new Set(["idempotencyKey", "causeKey"]);

/**
 * Returns whether a call with an unknown outcome may be retried: its contract permits it, and a request that can have
 * an idempotency key has one.
 */
export function isRepeatable(method: DescMethod, input: unknown): boolean {
  if (method.idempotency === Level.NO_SIDE_EFFECTS) return true;
  return method.idempotency === Level.IDEMPOTENT && isKeyed(method.input, input);
}

function isKeyed(message: DescMessage, input: unknown): boolean {
  const values = (input ?? {}) as Readonly<Record<string, unknown>>;
  const keys = message.fields.filter(({ localName }) => KEYS.has(localName));
  if (keys.length > 0) return keys.some(({ localName }) => Boolean(values[localName]));
  return message.fields.every(
    (field) =>
      !isKeyedList(field) ||
      ((values[field.localName] ?? []) as unknown[]).every((item) => isKeyed(field.message, item)),
  );
}

/** A list of requests, each with its own key. */
const isKeyedList = (field: DescField): field is DescField & { fieldKind: "list"; message: DescMessage } =>
  field.fieldKind === "list" &&
  field.listKind === "message" &&
  field.message.fields.some(({ localName }) => KEYS.has(localName));
