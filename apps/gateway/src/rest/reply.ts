import type { Readable } from "node:stream";
import { PAGE_HEADERS } from "./security-headers.ts";

/** An answer that is not simply the JSON of the declared status. */
export class Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;

  constructor(status: number, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** JSON with a status or headers of its own. */
export const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply =>
  new Reply(status, body, headers);

/** 302. The target must work without our Authorization header. */
export const redirect = (url: string, headers: Readonly<Record<string, string>> = {}): Reply =>
  new Reply(302, null, { ...headers, location: url });

/** A server-rendered page. */
export const html = (status: number, page: string, headers: Readonly<Record<string, string>> = {}): Reply =>
  new Reply(status, page, { ...PAGE_HEADERS, ...headers });

/** Bytes as they come; destroyed when the client goes away. */
export const stream = (
  contentType: string,
  body: Readable,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): Reply => new Reply(status, body, { ...headers, "content-type": contentType });
