import { setTimeout as pause } from "node:timers/promises";
import { patience } from "@millwright/testing";
import type { Told } from "./patient.ts";

const RESUME_MS = 10_000;
const PAUSE_MS = 100;

/**
 * Reads a stream of server-sent events until it has said that it ends. With `mayBreak` a broken one is taken up again after the
 * last whole event, as clients do; what was read is told as one stream.
 */
export async function readStream(url: string, init: RequestInit, mayBreak: boolean): Promise<Told> {
  const headers = { ...(init.headers as Record<string, string>) };
  let text = "";
  for (let deadline = Date.now() + RESUME_MS * patience(); ; await pause(PAUSE_MS)) {
    try {
      const response = await fetch(url, { ...init, headers });
      const seen = await readBlocks(response, mayBreak);
      text += seen;
      if (seen !== "") deadline = Date.now() + RESUME_MS * patience();
      const isWhole = response.status !== 200 ? response.status < 500 : text.endsWith("event: end\ndata: {}\n\n");
      if (!mayBreak || isWhole || Date.now() > deadline) return { status: response.status, headers: response.headers, text, bytes: Buffer.from(text) };
    } catch (error) {
      if (!mayBreak || Date.now() > deadline) throw error;
    }
    const lastId = [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1];
    if (lastId !== undefined) headers["last-event-id"] = lastId;
  }
}

/** The whole blocks of an answer, with `mayBreak` also of one that broke off. */
async function readBlocks(response: Response, mayBreak: boolean): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true });
  } catch (error) {
    if (!mayBreak || !text.includes("\n\n")) throw error;
    return text.slice(0, text.lastIndexOf("\n\n") + 2);
  }
  return text;
}
