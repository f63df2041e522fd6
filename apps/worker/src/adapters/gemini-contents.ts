import type { JsonObject } from "@bufbuild/protobuf";
import { omitUndefined } from "@millwright/json";
import { isAnObject, objectAt, textAt } from "../model/event-fields.ts";

/**
 * Adds a response to every unanswered tool call. Gemini CLI's contents contain interrupted calls without a response,
 * which the API rejects.
 */
export function withAllAnswers(body: JsonObject): JsonObject {
  const { contents } = body;
  if (!Array.isArray(contents) || !contents.every(isAnObject)) return body;
  return {
    ...body,
    contents: contents.flatMap((content, index) => [content, ...answersFor(content, contents[index + 1])]),
  };
}

function answersFor(content: JsonObject, next: JsonObject | undefined): JsonObject[] {
  const calls = content["role"] === "model" ? partsOf(content, "functionCall") : [];
  const answered = next ? partsOf(next, "functionResponse") : [];
  if (calls.length === 0 || answered.length > 0) return [];
  return [
    {
      role: "user",
      parts: calls.map((call) => ({
        functionResponse: omitUndefined({
          id: textAt(call, "id") || undefined,
          name: textAt(call, "name"),
          response: { error: "It was interrupted; its effect is unknown." },
        }),
      })),
    },
  ];
}

const partsOf = ({ parts }: JsonObject, name: string): JsonObject[] =>
  (Array.isArray(parts) ? parts.filter(isAnObject) : [])
    .filter((part) => isAnObject(part[name]))
    .map((part) => objectAt(part, name));
