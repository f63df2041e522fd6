import type { IncomingMessage } from "node:http";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { containsCredential, PAGE_HEADERS, type Authenticate, type Mount } from "../rest/index.ts";
import { page } from "./layout.ts";
import type { BrowserSessions } from "../sessions/browser-sessions.ts";
import { markup } from "./markup.ts";

const FORM_BYTES_MAX = 8 * 1024;

export type SignInDeps = { authenticate: Authenticate; sessions: BrowserSessions };

/** Returns the sign-in form, which replaces a page that the reader cannot see yet. */
export const signInPage = (next: string, problem?: string): string =>
  page(
    "Sign in",
    markup`<h1>Sign in to see this page</h1>${problem !== undefined && markup`<p class="FAILED">${problem}</p>`}
<form method="post" action="/sign-in/"><input type="hidden" name="next" value="${next}">
<p><input name="key" type="password" placeholder="API key" autocomplete="off" autofocus required> <button>Sign in</button></p></form>`,
  );

/**
 * Handles the sign-in form. The key is stored encrypted in a cookie that only our pages receive, and authenticated
 * again on every use.
 */
export const signInMount = (deps: SignInDeps): Mount => ({
  prefix: "/sign-in/",
  listener: (request, response) => {
    void respond(deps, request).then(({ status, headers, body }) =>
      response.writeHead(status, { ...PAGE_HEADERS, ...headers }).end(body),
    );
  },
});

type PageResponse = { status: number; headers?: Record<string, string>; body?: string };

async function respond({ authenticate, sessions }: SignInDeps, request: IncomingMessage): Promise<PageResponse> {
  if (request.method !== "POST") return { status: 405, headers: { allow: "POST" } };
  const form = await readForm(request);
  if (!form) return { status: 400, headers: { connection: "close" }, body: signInPage("/", "The form is not valid.") };
  const next = safeNext(form.get("next"));
  const key = form.get("key") ?? "";
  const caller = await authenticate({ bearer: key, teamUid: undefined, requestId: newUid() }).catch(() => undefined);
  if (!caller) return { status: 401, body: signInPage(next, "That key is not valid.") };
  return { status: 303, headers: { location: next, "set-cookie": sessions.cookie(key) } };
}

/** Returns the signed-in caller of a page request, or undefined without a valid cookie. */
export async function cookieCaller(
  { authenticate, sessions }: SignInDeps,
  cookies: string | undefined,
  requestId: string,
): Promise<Caller | undefined> {
  const bearer = sessions.credential(cookies);
  if (bearer === undefined) return undefined;
  return authenticate({ bearer, teamUid: undefined, requestId }).catch(() => undefined);
}

/** Returns the path to redirect to. Only paths of our own pages are allowed, to prevent open redirects. */
const safeNext = (next: string | null): string =>
  next !== null && /^\/runs\/[\w./?=%~-]*$/.test(next) && !containsCredential(next) ? next : "/";

/** Returns the fields of the form, or undefined if the body is too long or incomplete. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  let text = "";
  try {
    for await (const chunk of request) {
      text += String(chunk);
      if (text.length > FORM_BYTES_MAX) return undefined;
    }
  } catch {
    return undefined;
  }
  return new URLSearchParams(text);
}
