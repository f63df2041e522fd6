import type { IncomingMessage } from "node:http";
import type { Caller } from "@millwright/caller";
import { isDomainError } from "@millwright/errors";
import { assertSameOrigin, PAGE_HEADERS, type Authenticate, type Mount } from "../rest/index.ts";
import type { BrowserSessions } from "../sessions/browser-sessions.ts";
import { returnPath } from "../sessions/return-path.ts";
import { page } from "./layout.ts";
import { markup } from "./markup.ts";

const FORM_BYTES_MAX = 8 * 1024;

export type SignInDeps = { authenticate: Authenticate; sessions: BrowserSessions; publicUrl: string };

/** Returns the sign-in form, which replaces a page that the reader cannot see yet. */
export const signInPage = (next: string, problem?: string): string =>
  page(
    "Sign in",
    markup`<h1>Sign in to see this page</h1>${problem !== undefined && markup`<p class="FAILED">${problem}</p>`}
<form method="post" action="/sign-in/"><input type="hidden" name="next" value="${next}">
<p><input name="key" type="password" placeholder="API key" autocomplete="off" autofocus required> <button>Sign in</button></p></form>`,
  );

/** Returns the page that leads from the provider to the page that was opened first. */
export const signedInPage = (next: string): string =>
  page("Signed in", markup`<h1>You are signed in</h1><p><a href="${next}">Continue</a></p>`);

/** Returns the page that states why signing in with the provider has failed. */
export const signInProblemPage = (problem: string, next: string): string =>
  page(
    "Sign in",
    markup`<h1>You are not signed in</h1><p class="FAILED">${problem}</p>
<p><a href="/session/oidc?again=true&amp;next=${encodeURIComponent(next)}">Sign in again</a> · <a href="${next}">Other ways to sign in</a></p>`,
  );

/** Returns the page of a link that signs a person in once. */
export const linkPage = (name: string): string =>
  page(
    "Sign in",
    markup`<h1>Sign in as ${name}</h1><form method="post"><p><button autofocus>Sign in</button></p></form>`,
  );

/** The page of a link that is used, expired or unknown. */
export const linkProblemPage: string = page(
  "Sign in",
  markup`<h1>You are not signed in</h1><p class="FAILED">This link was used already, or has expired. It works once, within 30 minutes.</p>
<p><a href="/">Sign in with an API key</a></p>`,
);

/** Handles the sign-in form: starts a session and redirects to the page that asked for it. */
export const signInMount = (deps: SignInDeps): Mount => ({
  prefix: "/sign-in/",
  listener: (request, response) => {
    void respond(deps, request).then(({ status, headers, body }) =>
      response.writeHead(status, { ...PAGE_HEADERS, ...headers }).end(body),
    );
  },
});

type PageResponse = { status: number; headers?: Record<string, string>; body?: string };

async function respond({ sessions, publicUrl }: SignInDeps, request: IncomingMessage): Promise<PageResponse> {
  if (request.method !== "POST") return { status: 405, headers: { allow: "POST" } };
  const form = await readForm(request);
  if (!form) return { status: 400, headers: { connection: "close" }, body: signInPage("/", "The form is not valid.") };
  const next = returnPath(form.get("next"));
  const { headers } = request;
  try {
    assertSameOrigin(headers, publicUrl);
    const cookie = await sessions.signIn(form.get("key") ?? "", headers.cookie);
    return { status: 303, headers: { location: next, "set-cookie": cookie } };
  } catch (error) {
    const kind = isDomainError(error) ? error.kind : undefined;
    if (kind === "unauthenticated") return { status: 401, body: signInPage(next, "That key is not valid.") };
    if (kind === "permission_denied")
      return { status: 403, body: signInPage(next, "The form must be sent by a page of this server. Send it again.") };
    return { status: 503, body: signInPage(next, "The platform could not check the key. Try again in a moment.") };
  }
}

/** Returns the signed-in caller of a page request, or undefined without a valid cookie. */
export async function cookieCaller(
  { authenticate, sessions }: Pick<SignInDeps, "authenticate" | "sessions">,
  cookies: string | undefined,
  requestId: string,
): Promise<Caller | undefined> {
  const bearer = sessions.credential(cookies);
  if (bearer === undefined) return undefined;
  return authenticate({ bearer, teamUid: undefined, requestId }).catch(() => undefined);
}

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
