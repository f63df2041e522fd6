/* oxlint-disable no-underscore-dangle -- zod's name for what schemas are extended by */
import { z } from "zod";

/** zod's record leaves out the key `__proto__`, which is a legal key like any other. This one reads it too. */
const OwnRecord = z.core.$constructor("OwnRecord", (schema: z.ZodRecord, definition: z.core.$ZodRecordDef) => {
  z.ZodRecord.init(schema, definition);
  const parseOthers = schema._zod.parse.bind(schema._zod);
  schema._zod.parse = (payload, context) => {
    const input = payload.value;
    const parsed = parseOthers(payload, context);
    if (!isObject(input) || !Object.hasOwn(input, "__proto__") || parsed instanceof Promise) return parsed;
    const key = definition.keyType._zod.run({ value: "__proto__", issues: [] }, context);
    const value = definition.valueType._zod.run(
      { value: Object.getOwnPropertyDescriptor(input, "__proto__")?.value, issues: [] },
      context,
    );
    if (key instanceof Promise || value instanceof Promise) throw new Error("Records are read synchronously.");
    parsed.issues.push(...z.core.util.prefixIssues("__proto__", [...key.issues, ...value.issues]));
    // An assignment would set the prototype instead.
    Object.defineProperty(parsed.value, "__proto__", {
      value: value.value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
    return parsed;
  };
});

const isObject = (value: unknown): value is object =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** A JSON object whose keys the client chooses, with no key left out. */
export const recordOf = <K extends z.core.$ZodRecordKey, V extends z.core.$ZodType>(
  key: K,
  value: V,
): z.ZodRecord<K, V> =>
  new OwnRecord({ type: "record", keyType: key, valueType: value }) as unknown as z.ZodRecord<K, V>;
