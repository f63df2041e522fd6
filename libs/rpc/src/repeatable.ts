import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";

const KEYS = new Set(["idempotencyKey", "causeKey"]);

/**
 * Whether asking a second time does no harm when nobody knows what became of the first: the contract says so, and a request
 * that can carry a key against repetition carries one.
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
      !holdsKeyed(field) || ((values[field.localName] ?? []) as unknown[]).every((one) => isKeyed(field.message, one)),
  );
}

/** A list of requests, each with a key of its own. */
const holdsKeyed = (field: DescField): field is DescField & { fieldKind: "list"; message: DescMessage } =>
  field.fieldKind === "list" &&
  field.listKind === "message" &&
  field.message.fields.some(({ localName }) => KEYS.has(localName));
