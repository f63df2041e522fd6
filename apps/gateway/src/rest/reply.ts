import type { Readable } from "node:stream";
import { PAGE_HEADERS } from "./security-headers.ts";

/** Headers of a response. Only `set-cookie` has several values. */
export type ReplyHeaders = Readonly<Record<string, string | string[]>>;

/** A response other than JSON with the declared status. */
export class Reply {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: unknown;

  constructor(status: number, body?: unknown, headers: ReplyHeaders = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** Returns a JSON response with the given status and headers. */
export const json = (status: number, body: unknown, headers: ReplyHeaders = {}): Reply =>
  new Reply(status, body, headers);

/** Returns a 302. The target must accept requests without the Authorization header of the API. */
export const redirect = (url: string, headers: ReplyHeaders = {}): Reply =>
  new Reply(302, null, { ...headers, location: url });

/** Returns an HTML page. */
export const html = (status: number, page: string, headers: ReplyHeaders = {}): Reply =>
  new Reply(status, page, { ...PAGE_HEADERS, ...headers });

/** Returns a response that streams `body`. The stream is destroyed when the client disconnects. */
export const stream = (contentType: string, body: Readable, headers: ReplyHeaders = {}, status = 200): Reply =>
  new Reply(status, body, { ...headers, "content-type": contentType });
