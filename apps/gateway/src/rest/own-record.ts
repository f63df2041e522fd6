/* oxlint-disable no-underscore-dangle -- zod names its extension points with an underscore */
import { z } from "zod";

/** A zod record that also parses the key `__proto__`. zod's own record drops this key, although it is valid in JSON. */
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
    if (key instanceof Promise || value instanceof Promise) throw new Error("Schemas of records must be synchronous.");
    parsed.issues.push(...z.core.util.prefixIssues("__proto__", [...key.issues, ...value.issues]));
    // An assignment would set the prototype of the object.
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

/** A JSON object with keys of the client's choice, including `__proto__`. */
export const recordOf = <K extends z.core.$ZodRecordKey, V extends z.core.$ZodType>(
  key: K,
  value: V,
): z.ZodRecord<K, V> =>
  new OwnRecord({ type: "record", keyType: key, valueType: value }) as unknown as z.ZodRecord<K, V>;
