import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject } from "../event-fields.ts";

/** A model id that selects whichever model an OpenAI-compatible server offers. */
const DEFAULT = "default";
const LIST_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Returns a `fetch` for calls to an OpenAI-compatible server. In request bodies, it replaces the model `default` by the
 * first model that the server lists (`GET <baseUrl>/models`); the list is read once. If the list request fails, its
 * response is returned as the response of the call, so that it is retried and reported in the same way.
 */
export function withDefaultModel(reach: typeof fetch, baseUrl: string): typeof fetch {
  let model: string | undefined;
  return async (url, init = {}) => {
    const body = typeof init.body === "string" ? parseObject(init.body) : undefined;
    if (body?.["model"] !== DEFAULT) return reach(url, init);
    if (model === undefined) {
      const authorization = new Headers(init.headers).get("authorization");
      const response = await reach(`${baseUrl.replace(/\/+$/, "")}/models`, {
        headers: authorization === null ? {} : { authorization },
        signal: init.signal ?? null,
      });
      if (!response.ok) return response;
      model = firstListed(await textOf(response));
      if (model === undefined) return NO_MODEL();
    }
    return reach(url, { ...init, body: JSON.stringify({ ...body, model }) });
  };
}

/** Returns the first listed model, or `default` if the server lists a model of that name. */
function firstListed(text: string): string | undefined {
  const listed = parseObject(text)?.["data"];
  const ids = (Array.isArray(listed) ? listed : []).flatMap((model) =>
    isAnObject(model) && typeof model["id"] === "string" && model["id"] !== "" ? [model["id"]] : [],
  );
  return ids.includes(DEFAULT) ? DEFAULT : ids[0];
}

/** Returns the text of a response, or "" if it is too long. */
async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += (chunk as Uint8Array).length;
    if (size > LIST_BYTES_MAX) return "";
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString();
}

const NO_MODEL = (): Response =>
  Response.json(
    {
      error: { message: "The server lists no model (GET /models). Name one of its models as openai-compatible/<id>." },
    },
    { status: 404 },
  );

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return isAnObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
