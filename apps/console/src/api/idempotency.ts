import { useRef } from "react";
import { idempotencyKey } from "./client.ts";

/** Returns the headers of a create. They stay the same while the body does, so that a repeated submit creates once. */
export function useIdempotencyKey(body: unknown): { "Idempotency-Key": string } {
  const text = JSON.stringify(body);
  const last = useRef<{ text: string; header: { "Idempotency-Key": string } }>(undefined);
  if (last.current?.text !== text) last.current = { text, header: idempotencyKey() };
  return last.current.header;
}
